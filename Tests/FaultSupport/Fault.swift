internal import Glibc
internal import LifelineCore
internal import LifelineRuntime
internal import LifelineTransport

/// A fault between a client and its peer, and its repair.
package struct Fault: Sendable {
    package let name: String
    private let applying: @Sendable (FaultScene) async throws -> Moment
    private let healing: (@Sendable (FaultScene) async throws -> Moment)?

    private init(
        _ name: String,
        apply: @escaping @Sendable (FaultScene) async throws -> Moment,
        heal: (@Sendable (FaultScene) async throws -> Moment)?
    ) {
        self.name = name
        self.applying = apply
        self.healing = heal
    }

    /// Causes the fault.
    package func apply(to scene: FaultScene) async throws -> Moment { try await applying(scene) }

    /// Repairs it; nil if there is nothing to do.
    @discardableResult package func heal(in scene: FaultScene) async throws -> Moment? { try await healing?(scene) }
}

extension Fault: CustomStringConvertible {
    package var description: String { name }
}

extension Fault {
    // MARK: Links and routes

    /// The client's interface is switched off. Its routes go with it, and are made again.
    package static let linkDown = Fault("link down") {
        try await $0.network.ip(["link set eth0 down"], at: .client)
    } heal: {
        try await $0.network.ip(["link set eth0 up"] + routes("add"), at: .client)
    }

    /// The cable is pulled: the client's interface stays up, and has no carrier.
    package static let carrierLoss = Fault("carrier loss") {
        try await $0.network.ip(["link set client down"], at: .router)
    } heal: {
        try await $0.network.ip(["link set client up"], at: .router)
    }

    /// The client has no default routes.
    package static let routeRemoval = Fault("route removal") {
        try await $0.network.ip(routes("delete"), at: .client)
    } heal: {
        try await $0.network.ip(routes("add"), at: .client)
    }

    private static func routes(_ verb: String) -> [String] {
        ["10.77.1.1", "fd77:1::1"].map { "route \(verb) default via \($0)" }
    }

    // MARK: Packets

    /// The router drops all packets, both ways.
    package static let blackHole = filtering("black hole", by: .dropAll)

    /// The router drops a part of all packets.
    package static func packetLoss(percent: Int) -> Fault {
        filtering("\(percent) % packet loss", by: .drop(percent: percent))
    }

    /// The router answers segments with resets. The side that sends first notices first.
    package static let reset = filtering("reset", by: .reset)

    private static func filtering(_ name: String, by rule: TestNetwork.PacketRule) -> Fault {
        Fault(name) {
            try await $0.network.filter(by: rule)
        } heal: {
            try await $0.network.stopFiltering()
        }
    }

    // MARK: Sockets

    /// The kernel destroys the client's socket.
    package static let clientSocketKilled = killingSocket("client's socket killed", "dport", at: .client)

    /// The kernel destroys the peer's socket, which resets the connection.
    package static let peerSocketKilled = killingSocket("peer's socket killed", "sport", at: .server)

    private static func killingSocket(_ name: String, _ side: String, at node: TestNetwork.Node) -> Fault {
        let apply: @Sendable (FaultScene) async throws -> Moment = { scene in
            // Kills only a connection: the peer still listens.
            let filter = ["state", "established", side, "=", ":\(FaultScene.port)"]
            let run = try await scene.network.run("ss", ["-HKtn"] + filter, at: node)
            // `ss` prints the killed sockets, and succeeds even if there was none.
            guard !run.output.isEmpty else { throw FaultFailure("ss found no socket to kill at the \(node).") }
            return run.moment
        }
        return Fault(name, apply: apply, heal: nil)
    }

    // MARK: The peer

    /// The peer is killed, and started again.
    package static let peerKilled = Fault("peer killed") {
        let peer = $0.peer
        let moment = try Moment.of { try peer.signal(SIGKILL) }
        try await peer.waitForEnd()
        return moment
    } heal: {
        try await $0.restartPeer()
    }

    /// The peer shuts down in order, and is started again.
    package static let peerShutDown = Fault("peer shut down") {
        let began = MonotonicTime.now()
        try await $0.peer.finish()
        return Moment(began: began, ended: .now())
    } heal: {
        try await $0.restartPeer()
    }

    /// The peer is stopped. Its kernel still acknowledges bytes.
    package static let peerStopped = Fault("peer stopped") { scene in
        let began = MonotonicTime.now()
        try await scene.peer.stop()
        return Moment(began: began, ended: .now())
    } heal: { scene in
        try Moment.of { try scene.peer.signal(SIGCONT) }
    }

    /// The peer stops reading: its receive window fills with messages.
    package static let peerNotReading = Fault("receive window full") {
        try await tell($0, "pause", awaiting: .paused)
    } heal: {
        try await tell($0, "resume", awaiting: .resumed)
    }

    private static func tell(
        _ scene: FaultScene,
        _ command: String,
        awaiting kind: FaultEvent.Kind
    ) async throws -> Moment {
        let began = MonotonicTime.now()
        try scene.peer.tell(command)
        let event = try await scene.peer.next("that it has done so: \(command)") { $0.event == kind }
        return Moment(began: began, ended: event.time)
    }
}
