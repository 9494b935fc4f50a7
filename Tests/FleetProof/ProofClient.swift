import FaultSupport
import FleetProofSupport
import Lifeline
import LifelineFleet
import LifelineProtos
import LifelineRuntime
import Logging
import Synchronization

/// A client that sends numbered messages, and records the received ones.
final class ProofClient: Sendable {
    private struct State {
        var report: ClientReport
        var isSending = false
        var joinCount = 0
        /// The number of sessions that were opened before the mark.
        var markedCount = 0
    }

    private let number: Int
    private let interval: Duration
    private let client: SessionClient
    private let state: Mutex<State>

    init(_ number: Int, of endpoint: Endpoint, every interval: Duration) {
        (self.number, self.interval) = (number, interval)
        var configuration = SessionClientConfiguration()
        configuration.name = "\(number)"
        // A fault may last for any time.
        configuration.client.backoff.maximumAttempts = nil
        client = SessionClient(to: endpoint, configuration: configuration, logger: .quiet)
        state = Mutex(State(report: ClientReport(client: number)))
    }

    // MARK: Commands

    var report: ClientReport { state.withLock { $0.report } }

    var isReady: Bool { state.withLock { $0.report.openingCount > $0.markedCount && $0.joinCount > 0 } }

    func begin() { state.withLock { $0.isSending = true } }

    func stop() {
        let now = MonotonicTime.now().nanoseconds
        state.withLock {
            $0.isSending = false
            $0.report.pause.end(at: now)
        }
    }

    func mark() {
        let now = MonotonicTime.now().nanoseconds
        state.withLock {
            $0.markedCount = $0.report.openingCount
            $0.report.pause.begin(at: now)
        }
    }

    func close() async { await client.close() }

    // MARK: Running

    /// Runs until the client is closed.
    func run() async throws {
        // Before the first push can arrive.
        let direct = client.pushes(FleetMethods.tell, of: FleetMessage.self)
        let groups = client.pushes(FleetMethods.push.name, of: FleetMessage.self)
        try await withThrowingDiscardingTaskGroup { tasks in
            tasks.addTask { await self.watch() }
            tasks.addTask {
                for try await message in direct {
                    let now = MonotonicTime.now().nanoseconds
                    self.state.withLock {
                        $0.report.direct.receive(message.number, of: message.from)
                        if FleetSample.contains(self.number) { $0.report.pause.delivered(at: now) }
                    }
                }
            }
            tasks.addTask {
                for try await push in groups.withMetadata { self.state.withLock { $0.report.receive(push) } }
            }
            tasks.addTask { try await self.stayInRoom() }
            let senders = ClientMethod.allCases.map { method in Task { await self.send(method) } }
            defer { for sender in senders { sender.cancel() } }
            try await client.run()
        }
    }

    private func stayInRoom() async throws {
        let room = FleetGroups.room(of: number)
        try await client.withGroup(room) { group in
            for try await join in group.joins {
                state.withLock {
                    $0.joinCount += 1
                    if !join.isRecovered { $0.report.groups[room, default: GroupCheck()].wasInterrupted() }
                }
            }
        }
    }

    private func watch() async {
        for await event in client.sessionEvents {
            state.withLock {
                if event.missedCount > 0 { $0.report.problems.append("missed \(event.missedCount) events") }
                switch event.kind {
                case .opened(let id, _): $0.report.opened(id)
                case .lost(let inDoubt):
                    $0.report.lost(automaticGroup: FleetGroups.automatic)
                    for message in inDoubt { $0.report.isInDoubt(message) }
                case .refused(let messages): $0.report.problems.append("refused \(messages.count) messages")
                case .expired(let messages): $0.report.problems.append("\(messages.count) messages have expired")
                case .ended(let error, let inDoubt):
                    for message in inDoubt { $0.report.isInDoubt(message) }
                    if let error { $0.report.problems.append("the session has ended: \(error)") }
                }
            }
        }
    }

    // MARK: Sending

    /// Sends until the client is closed or the task is cancelled.
    private func send(_ method: ClientMethod) async {
        try? await ticking(every: interval) {
            let message = state.withLock { state -> FleetMessage? in
                guard state.isSending else { return nil }
                // Counted before it is sent, because a call may be handled before it returns.
                state.report.sent[method, default: ClientReport.Sent()].count += 1
                return FleetMessage(from: "\(number)", state.report.sent[method]?.count ?? 0)
            }
            guard let message else { return }
            do throws(SessionError) {
                switch method {
                case .note: try await client.push(method.name, message)
                case .ask:
                    _ = try await client.call(method.name, message, returning: FleetMessage.self, timeout: nil)
                }
            } catch {
                if [.closedLocally, .cancelled].contains(error.code) { throw CancellationError() }
                state.withLock {
                    if error.code == .sessionLost {
                        $0.report.sent[method]?.inDoubt.insert(message.number)
                    } else {
                        $0.report.problems.append("\(method.name) \(message.number): \(error)")
                    }
                }
            }
        }
    }
}

extension ClientReport {
    fileprivate mutating func receive(_ push: SessionPush<FleetMessage>) {
        guard let mark = push.group else {
            problems.append("a message to a group names none")
            return
        }
        groups[mark.group, default: GroupCheck()].receive(
            push.message.number,
            of: push.message.from,
            epoch: mark.position.epoch,
            offset: mark.position.offset,
            followsGap: mark.followsGap
        )
    }

    /// Notes that a message was reported to the client as possibly lost.
    fileprivate mutating func isInDoubt(_ message: SessionMessageInDoubt) {
        guard let method = ClientMethod.allCases.first(where: { $0.name == message.method }) else { return }
        guard let content = try? FleetMessage(serializedBytes: message.payload) else {
            problems.append("a message in doubt is none that was sent")
            return
        }
        sent[method, default: Sent()].inDoubt.insert(content.number)
    }
}
