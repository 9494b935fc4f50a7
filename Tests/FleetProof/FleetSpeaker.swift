import FaultSupport
import FleetProofSupport
import Lifeline
import LifelineFleet
import ServiceLifecycle
import Synchronization

/// Sends numbered messages to each session of a server. Also tells the group speaker whether to send.
final class FleetSpeaker: Sendable {
    private struct State {
        var isSpeaking = false
        var sessions: Set<String> = []
        var senderCount = 0
    }

    let name: String
    let interval: Duration
    let record: LineRecord
    private let state = Mutex(State())

    init(_ name: String, every interval: Duration, into record: LineRecord) {
        (self.name, self.interval, self.record) = (name, interval, record)
    }

    var isSpeaking: Bool { state.withLock { $0.isSpeaking } }

    func begin() { state.withLock { $0.isSpeaking = true } }

    func stop() { state.withLock { $0.isSpeaking = false } }

    /// Sends to a session from now on, until it refuses. Does nothing for a session that continues over another
    /// connection.
    func speak(to session: SessionServerEnd) {
        let sender = state.withLock { state -> String? in
            guard state.sessions.insert(session.id).inserted else { return nil }
            state.senderCount += 1
            return "\(name)/\(state.senderCount)"
        }
        guard let sender, let client = Int(session.name) else { return }
        // Detached, because a graceful shutdown must not end it: each session is served until it moves.
        Task.detached { [self] in
            var number = 0
            let interval = FleetSample.contains(client) ? min(interval, FleetSample.interval) : interval
            try await ticking(every: interval) {
                guard isSpeaking else { return }
                number += 1
                try await session.push(FleetMethods.tell, FleetMessage(from: sender, number))
                record.write(.told(sender: sender, client: client, session: session.id, number: number))
            }
        }
    }

    /// Notes that a session is over at this server.
    func forget(_ session: SessionServerEnd) { state.withLock { _ = $0.sessions.remove(session.id) } }
}

/// Sends numbered messages to all groups, until a graceful shutdown.
struct GroupSpeaker: Service {
    let speaker: FleetSpeaker
    let fleet: Fleet

    func run() async throws {
        await withDiscardingTaskGroup { tasks in
            for group in FleetGroups.all { tasks.addTask { await speak(to: group) } }
        }
    }

    private func speak(to group: String) async {
        var number = 0
        // It throws at the graceful shutdown.
        try? await ticking(every: speaker.interval) {
            guard speaker.isSpeaking else { return }
            number += 1
            do {
                try await fleet.push(FleetMethods.push, FleetMessage(from: speaker.name, number), to: group)
                speaker.record.write(.pushed(sender: speaker.name, group: group, number: number))
            } catch {
                speaker.record.write(.doubted(sender: speaker.name, group: group, number: number))
            }
        }
    }
}

/// Runs `body` repeatedly, first after a random part of the interval, so that the senders do not all send at once. Ends
/// between two runs when a graceful shutdown begins.
///
/// - Throws: `CancellationError`; any error of `body`.
func ticking(
    every interval: Duration,
    _ body: nonisolated(nonsending) () async throws -> Void
) async throws {
    var pause = interval * Double.random(in: 0..<1)
    while true {
        try await cancelWhenGracefulShutdown { [pause] in try await Task.sleep(for: pause) }
        try await body()
        pause = interval
    }
}
