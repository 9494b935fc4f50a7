internal import Glibc
package import LifelineCore
internal import Synchronization

/// A client and a peer at the two ends of a network, and what becomes of the messages between them.
package final class FaultScene: Sendable {
    package let network: TestNetwork
    package let family: TestNetwork.Family
    package let client: LineProgram

    private struct State {
        var peer: LineProgram
        /// What peers have received that are no more.
        var earlierEvents: [FaultEvent] = []
        /// How many commands to send the client was given.
        var sendCount = 0
    }

    private let state: Mutex<State>

    /// Runs `body` with a client that is connected.
    package static func with<Result>(
        _ family: TestNetwork.Family = .ipv4,
        clientArguments: [String] = [],
        _ body: nonisolated(nonsending) (FaultScene) async throws -> Result
    ) async throws -> Result {
        try await TestNetwork.with { network in
            let (peer, _) = try await startPeer(in: network, family)
            let scene = try FaultScene(network: network, family: family, peer: peer, clientArguments: clientArguments)
            let ready = try await scene.client.next("that it is ready") { $0.to == "ready" }
            precondition(ready.event == .transition)
            do {
                let result = try await body(scene)
                try await scene.finish()
                return result
            } catch {
                // Before the network goes: a namespace lives as long as a process is in it.
                try? await scene.kill()
                throw error
            }
        }
    }

    private init(
        network: TestNetwork,
        family: TestNetwork.Family,
        peer: LineProgram,
        clientArguments: [String]
    ) throws {
        self.network = network
        self.family = family
        self.client = try LineProgram(
            product: "FaultClient",
            ["--to", FaultScene.endpoint(family, in: network)] + clientArguments,
            at: .client,
            of: network
        )
        self.state = Mutex(State(peer: peer))
    }

    // MARK: The peer

    /// The peer that runs, or ran last.
    package var peer: LineProgram { state.withLock { $0.peer } }

    package static let port = 7000

    /// Starts a peer where the last one has ended; when it listened.
    package func restartPeer() async throws -> Moment {
        let (peer, listening) = try await FaultScene.startPeer(in: network, family)
        state.withLock { state in
            state.earlierEvents += state.peer.events
            state.peer = peer
        }
        return Moment(began: listening, ended: listening)
    }

    private static func startPeer(
        in network: TestNetwork,
        _ family: TestNetwork.Family
    ) async throws -> (LineProgram, listening: MonotonicTime) {
        let peer = try LineProgram(
            product: "FaultPeer",
            ["--on", endpoint(family, in: network)],
            at: .server,
            of: network
        )
        let event = try await peer.next("that it listens") { $0.event == .listening }
        return (peer, event.time)
    }

    private static func endpoint(_ family: TestNetwork.Family, in network: TestNetwork) -> String {
        let address = network.serverAddress(family)
        return "tcp://\(family == .ipv6 ? "[\(address)]" : address):\(port)"
    }

    // MARK: Messages

    /// Has the client send; which of its commands to send that is.
    @discardableResult package func startSending(_ count: Int) throws -> Int {
        try client.tell("send \(count)")
        return state.withLock { state in
            state.sendCount += 1
            return state.sendCount
        }
    }

    /// Has the client send, and waits until `send` has accepted all; their ids.
    package func send(_ count: Int, within time: Duration = .seconds(30)) async throws -> ClosedRange<UInt64> {
        let number = try startSending(count)
        let done = try await client.any("that it has sent \(count) messages", within: time) { event in
            event.event == .done && event.attempt == number
        }
        guard let first = done.first, let last = done.last, done.count == count else {
            throw FaultFailure("The client could not send all of \(count) messages: \(done.line)")
        }
        return first...last
    }

    /// Waits until a peer has a message, and so all that came before it on the same connection.
    @discardableResult package func waitUntilReceived(
        _ id: UInt64,
        within time: Duration = .seconds(20)
    ) async throws -> FaultEvent {
        try await peer.any("that it received message \(id)", within: time) { event in
            guard event.event == .received, let first = event.first, let last = event.last else { return false }
            return (first...last).contains(id)
        }
    }

    /// Waits until the client's kernel has nothing more to send and nothing to be acknowledged.
    package func waitUntilAcknowledged(within time: Duration = .seconds(30)) async throws {
        let deadline = ContinuousClock.now + time
        while true {
            // Received and not read, and sent and not acknowledged, in bytes; the state is left out.
            let socket = try await socket(at: .client)
            let words = socket.split(whereSeparator: \.isWhitespace)
            if words.count > 2, words[1] == "0", !socket.contains("unacked:") { return }
            guard .now < deadline else { throw FaultFailure("Not acknowledged within \(time): \(socket)") }
        }
    }

    /// What the kernel knows of the connection.
    package func socket(at node: TestNetwork.Node) async throws -> String {
        let filter = ["state", "established", node == .client ? "dport" : "sport", "=", ":\(FaultScene.port)"]
        return try await network.run("ss", ["-Htni"] + filter, at: node).output
    }

    /// What became of the messages that `send` accepted.
    package var messages: MessageCount { messages(upTo: .max) }

    /// What became of those with ids up to `lastID`.
    package func messages(upTo lastID: UInt64) -> MessageCount {
        MessageCount(client: client.events, peer: peerEvents, upTo: lastID)
    }

    /// What all peers have said.
    package var peerEvents: [FaultEvent] { state.withLock { $0.earlierEvents + $0.peer.events } }

    // MARK: -

    private func finish() async throws {
        let client = try await client.finish()
        guard client == 0 else { throw FaultFailure("The client ended with status \(client).") }
        let peer = try await peer.finish()
        guard peer == 0 else { throw FaultFailure("The peer ended with status \(peer).") }
    }

    private func kill() async throws {
        for program in [client, peer] {
            try? program.signal(SIGKILL)
            try await program.waitForEnd()
        }
    }
}

/// Which of the messages that `send` accepted arrived.
package struct MessageCount: Hashable, Sendable {
    private struct Report: Hashable {
        /// When the connection ended.
        let time: MonotonicTime
        let count: Int
    }

    /// So many were accepted.
    package private(set) var sent = 0
    /// So many of these never arrived.
    package private(set) var lost = 0
    /// So many the client says were not acknowledged.
    package private(set) var reported = 0
    /// The same, by the ends of connections that it says so of.
    private var reports: [Report] = []
    /// So many arrived more than once.
    package private(set) var doubled = 0

    package init(sent: Int, lost: Int = 0, reported: Int = 0, doubled: Int = 0) {
        (self.sent, self.lost, self.reported, self.doubled) = (sent, lost, reported, doubled)
    }

    /// Counts in all that the client and all peers have said.
    ///
    /// What the client reported as lost has no ids: it is counted whole.
    package init(client: [FaultEvent], peer: [FaultEvent], upTo lastID: UInt64 = .max) {
        var received: Set<UInt64> = []
        for event in peer where event.event == .received {
            guard let first = event.first, let last = event.last else { continue }
            for id in first...last where !received.insert(id).inserted { doubled += 1 }
        }
        var lastStep = MonotonicTime(nanoseconds: 0)
        for event in client {
            switch event.event {
            case .transition: lastStep = event.time
            case .sent:
                guard let first = event.first, let last = event.last.map({ min($0, lastID) }), first <= last
                else { continue }
                sent += Int(last - first) + 1
                lost += (first...last).count { !received.contains($0) }
            case .lost:
                let report = Report(time: lastStep, count: event.count ?? 0)
                reported += report.count
                reports.append(report)
            default: break
            }
        }
    }

    /// So many of the reported ones were of connections that ended at this time or later.
    package func reported(since time: MonotonicTime) -> Int {
        reports.filter { $0.time >= time }.reduce(0) { $0 + $1.count }
    }
}
