internal import Glibc
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
    }

    private let state: Mutex<State>

    /// Runs `body` with a client that is connected.
    package static func with<Result>(
        _ family: TestNetwork.Family = .ipv4,
        clientArguments: [String] = [],
        _ body: nonisolated(nonsending) (FaultScene) async throws -> Result
    ) async throws -> Result {
        try await TestNetwork.with { network in
            let peer = try await startPeer(in: network, family)
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

    /// Starts a peer where the last one has ended.
    package func restartPeer() async throws -> Moment {
        let began = BootTime.now
        let peer = try await FaultScene.startPeer(in: network, family)
        let moment = Moment(began: began, ended: .now)
        state.withLock { state in
            state.earlierEvents += state.peer.events
            state.peer = peer
        }
        return moment
    }

    private static func startPeer(in network: TestNetwork, _ family: TestNetwork.Family) async throws -> LineProgram {
        let peer = try LineProgram(
            product: "FaultPeer",
            ["--on", endpoint(family, in: network)],
            at: .server,
            of: network
        )
        _ = try await peer.next("that it listens") { $0.event == .listening }
        return peer
    }

    private static func endpoint(_ family: TestNetwork.Family, in network: TestNetwork) -> String {
        let address = network.serverAddress(family)
        return "tcp://\(family == .ipv6 ? "[\(address)]" : address):\(port)"
    }

    // MARK: Messages

    /// Has the client send, and waits until `send` has accepted all; their ids.
    package func send(_ count: Int) async throws -> ClosedRange<UInt64> {
        try client.tell("send \(count)")
        let sent = try await client.next("that it has sent \(count) messages") { $0.event == .sent }
        guard let first = sent.first, let last = sent.last, sent.count == count else {
            throw FaultFailure("Of \(count) messages were accepted: \(sent)")
        }
        return first...last
    }

    /// Waits until the peer has a message, and so all that came before it on the same connection.
    package func waitUntilReceived(_ id: UInt64, within time: Duration = .seconds(20)) async throws {
        try await peer.any("that it received message \(id)", within: time) { event in
            guard event.event == .received, let first = event.first, let last = event.last else { return false }
            return (first...last).contains(id)
        }
    }

    /// What became of the messages that `send` accepted.
    package var messages: MessageCount { MessageCount(client: client.events, peer: peerEvents) }

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
    /// So many were accepted.
    package private(set) var sent = 0
    /// So many of these never arrived.
    package private(set) var lost = 0
    /// So many the client says were not acknowledged.
    package private(set) var reported = 0
    /// So many arrived more than once.
    package private(set) var doubled = 0

    package init(sent: Int, lost: Int = 0, reported: Int = 0, doubled: Int = 0) {
        (self.sent, self.lost, self.reported, self.doubled) = (sent, lost, reported, doubled)
    }

    /// Counts in all that the client and all peers have said.
    package init(client: [FaultEvent], peer: [FaultEvent]) {
        var received: Set<UInt64> = []
        for event in peer where event.event == .received {
            guard let first = event.first, let last = event.last else { continue }
            for id in first...last where !received.insert(id).inserted { doubled += 1 }
        }
        for event in client {
            switch event.event {
            case .sent:
                guard let first = event.first, let last = event.last else { continue }
                sent += Int(last - first) + 1
                lost += (first...last).count { !received.contains($0) }
            case .lost: reported += event.count ?? 0
            default: break
            }
        }
    }
}
