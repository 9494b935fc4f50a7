internal import Glibc
package import LifelineCore
internal import Synchronization

/// A client and a peer at the two ends of a network, and the fate of the messages between them.
package final class FaultScene: Sendable {
    package let network: TestNetwork
    package let family: TestNetwork.Family
    package let client: LineProgram

    private struct State {
        var peer: LineProgram
        /// The messages that ended peers have received.
        var earlierEvents: [FaultEvent] = []
        /// The number of send commands to the client.
        var sendCount = 0
    }

    private let state: Mutex<State>

    /// Runs `body` with a connected client.
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
                // Ends the programs before the network, because a namespace exists as long as a process is in it.
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

    /// The running peer, or the last one.
    package var peer: LineProgram { state.withLock { $0.peer } }

    package static let port = 7000

    /// Starts a peer in place of the last one. Returns the time at which it listened.
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

    /// Makes the client send. Returns the number of this send command.
    @discardableResult package func startSending(_ count: Int) throws -> Int {
        try client.tell("send \(count)")
        return state.withLock { state in
            state.sendCount += 1
            return state.sendCount
        }
    }

    /// Makes the client send, and waits until `send` has accepted all messages. Returns their ids.
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

    /// Waits until a peer has a message, and so all earlier ones of the same connection.
    @discardableResult package func waitUntilReceived(
        _ id: UInt64,
        within time: Duration = .seconds(20)
    ) async throws -> FaultEvent {
        try await peer.any("that it received message \(id)", within: time) { event in
            guard event.event == .received, let first = event.first, let last = event.last else { return false }
            return (first...last).contains(id)
        }
    }

    /// Waits until the client's kernel has no unsent and no unacknowledged bytes.
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

    /// The kernel's information about the connection.
    package func socket(at node: TestNetwork.Node) async throws -> String {
        let filter = ["state", "established", node == .client ? "dport" : "sport", "=", ":\(FaultScene.port)"]
        return try await network.run("ss", ["-Htni"] + filter, at: node).output
    }

    /// The fate of the messages that `send` accepted.
    package var messages: MessageCount { messages(upTo: .max) }

    /// The fate of messages with ids up to `lastID`.
    package func messages(upTo lastID: UInt64) -> MessageCount {
        MessageCount(client: client.events, peer: peerEvents, upTo: lastID)
    }

    /// The events of all peers.
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

/// The accepted messages that arrived.
package struct MessageCount: Hashable, Sendable {
    private struct Report: Hashable {
        /// The time at which the connection ended.
        let time: MonotonicTime
        let count: Int
    }

    /// The number of accepted messages.
    package private(set) var sent = 0
    /// How many of these never arrived.
    package private(set) var lost = 0
    /// How many the client reported as not acknowledged.
    package private(set) var reported = 0
    /// The same, for each end of a connection that it reported.
    private var reports: [Report] = []
    /// How many arrived more than once.
    package private(set) var doubled = 0

    package init(sent: Int, lost: Int = 0, reported: Int = 0, doubled: Int = 0) {
        (self.sent, self.lost, self.reported, self.doubled) = (sent, lost, reported, doubled)
    }

    /// Counts from the events of the client and all peers.
    ///
    /// The client's reports of lost messages have no ids, so only the number counts.
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

    /// How many of the reported messages belonged to connections that ended at this time or later.
    package func reported(since time: MonotonicTime) -> Int {
        reports.filter { $0.time >= time }.reduce(0) { $0 + $1.count }
    }
}
