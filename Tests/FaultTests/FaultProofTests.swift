import FaultSupport
import Testing

/// Each fault does what its name says, and is repaired. The kernel's state and the received messages show it. The
/// client has no heartbeat and no monitor, so it does not influence the result.
@Suite(.serialized, .timeLimit(.minutes(2))) struct FaultProofTests {
    @Test(arguments: TestNetwork.Family.allCases) func withoutAFaultEverythingArrives(
        family: TestNetwork.Family
    ) async throws {
        try await withScene(family) { scene in
            try await expectEverythingArrives(in: scene)
            #expect(scene.messages == MessageCount(sent: 10))
        }
    }

    // MARK: Links and routes

    @Test func linkDown() async throws {
        try await withScene { scene in
            try await apply(.linkDown, to: scene) {
                let (link, routes) = (try await link(in: scene), try await routes(in: scene))
                #expect(link.contains("state DOWN"))
                #expect(routes.isEmpty)
            }
        }
    }

    @Test func carrierLoss() async throws {
        try await withScene { scene in
            try await apply(.carrierLoss, to: scene) {
                let (link, routes) = (try await link(in: scene), try await routes(in: scene))
                #expect(link.contains("NO-CARRIER") && link.contains(",UP"))
                // The kernel keeps the routes, which makes the fault hard to notice.
                #expect(routes.contains("default via 10.77.1.1"))
            }
        }
    }

    @Test func routeRemoval() async throws {
        try await withScene { scene in
            try await apply(.routeRemoval, to: scene) {
                let (link, routes) = (try await link(in: scene), try await routes(in: scene))
                #expect(link.contains("state UP"))
                #expect(!routes.contains("default"))
            }
        }
    }

    /// During the fault, a message is sent and nothing arrives at the router. Afterwards it reaches the peer.
    private func apply(
        _ fault: Fault,
        to scene: FaultScene,
        _ check: nonisolated(nonsending) () async throws -> Void
    ) async throws {
        try await expectEverythingArrives(in: scene)
        _ = try await fault.apply(to: scene)
        try await check()
        let before = try await scene.network.arrivedPacketCount()
        let sent = try await scene.send(1)
        try await eventually("the client's kernel tries again") {
            try await scene.socket(at: .client).contains("backoff:")
        }
        #expect(try await scene.network.arrivedPacketCount() == before)
        _ = try await fault.heal(in: scene)
        try await scene.waitUntilReceived(sent.lowerBound)
        #expect(scene.messages.lost == 0)
    }

    private func link(in scene: FaultScene) async throws -> String {
        try await scene.network.run("ip", ["link", "show", "eth0"], at: .client).output
    }

    private func routes(in scene: FaultScene) async throws -> String {
        try await scene.network.run("ip", ["route"], at: .client).output
    }

    // MARK: Packets

    @Test(arguments: TestNetwork.Family.allCases) func blackHole(family: TestNetwork.Family) async throws {
        try await withScene(family) { scene in
            try await expectEverythingArrives(in: scene)
            _ = try await Fault.blackHole.apply(to: scene)
            let sent = try await scene.send(1)
            try await eventually("packets vanish") { try await scene.network.affectedPacketCount() >= 2 }
            #expect(scene.messages.lost == 1)
            _ = try await Fault.blackHole.heal(in: scene)
            try await scene.waitUntilReceived(sent.lowerBound)
            let affected = try await scene.network.affectedPacketCount()
            try await expectEverythingArrives(in: scene)
            #expect(try await scene.network.affectedPacketCount() == affected)
        }
    }

    @Test func packetLoss() async throws {
        try await withScene { scene in
            _ = try await Fault.packetLoss(percent: 20).apply(to: scene)
            let script = "for ((i = 0; i < 2000; i++)); do echo >/dev/udp/10.77.2.2/9; done"
            try await scene.network.run("bash", ["-c", script], at: .client)
            try await eventually("all have arrived") { try await scene.network.arrivedPacketCount() >= 2000 }
            let (arrived, affected) = (
                try await scene.network.arrivedPacketCount(), try await scene.network.affectedPacketCount()
            )
            // Five standard deviations of 2,000 draws on either side.
            let percent = Double(affected) / Double(arrived) * 100
            #expect((15.5...24.5).contains(percent))
            try await expectEverythingArrives(in: scene)
        }
    }

    @Test(arguments: TestNetwork.Family.allCases) func reset(family: TestNetwork.Family) async throws {
        try await withScene(family) { scene in
            try await expectEverythingArrives(in: scene)
            _ = try await Fault.reset.apply(to: scene)
            _ = try await scene.send(1)
            let ended = try await scene.client.next("that it was reset") { $0.from == "ready" }
            #expect(ended.reason == "closedByPeer")
            #expect(try await scene.network.affectedPacketCount() >= 1)
            _ = try await Fault.reset.heal(in: scene)
            try await expectReconnected(in: scene)
        }
    }

    // MARK: Sockets

    @Test(arguments: TestNetwork.Family.allCases) func clientSocketKilled(family: TestNetwork.Family) async throws {
        try await withScene(family) { scene in
            _ = try await Fault.clientSocketKilled.apply(to: scene)
            let ended = try await scene.client.next("that it has no connection") { $0.from == "ready" }
            #expect(ended.to == "backingOff")
            try await scene.peer.any("that its client is gone") { $0.event == .ended }
            _ = try await Fault.clientSocketKilled.heal(in: scene)
            try await expectReconnected(in: scene)
        }
    }

    @Test func peerSocketKilled() async throws {
        try await withScene { scene in
            _ = try await Fault.peerSocketKilled.apply(to: scene)
            let ended = try await scene.client.next("that it was reset") { $0.from == "ready" }
            #expect(ended.reason == "closedByPeer")
            try await scene.peer.any("that its socket is gone") { $0.event == .ended }
            try await expectReconnected(in: scene)
        }
    }

    @Test func aSocketThatIsNotThereCannotBeKilled() async throws {
        try await withScene { scene in
            _ = try await Fault.peerKilled.apply(to: scene)
            _ = try await scene.client.next("that it has no connection") { $0.from == "ready" }
            await #expect(throws: FaultFailure.self) { try await Fault.peerSocketKilled.apply(to: scene) }
            _ = try await Fault.peerKilled.heal(in: scene)
        }
    }

    // MARK: The peer

    @Test(arguments: [Fault.peerKilled, .peerShutDown]) func peerGone(fault: Fault) async throws {
        try await withScene { scene in
            try await expectEverythingArrives(in: scene)
            let first = scene.peer
            _ = try await fault.apply(to: scene)
            _ = try await scene.client.next("that it has no connection") { $0.from == "ready" }
            _ = try await scene.client.next("that nobody listens") { $0.reason == "connectFailed" }
            #expect(throws: FaultFailure.self) { try first.signal(0) }
            _ = try await fault.heal(in: scene)
            try await expectReconnected(in: scene)
            #expect(scene.messages.lost == 0)
        }
    }

    @Test func peerStopped() async throws {
        try await withScene { scene in
            _ = try await Fault.peerStopped.apply(to: scene)
            #expect(try Set(scene.peer.threadStates) == ["T"])
            let sent = try await scene.send(1)
            try await eventually("the peer's kernel has the message") {
                try await unreadByteCount(in: scene) > 0
            }
            #expect(scene.messages.lost == 1)
            _ = try await Fault.peerStopped.heal(in: scene)
            try await scene.waitUntilReceived(sent.upperBound)
        }
    }

    @Test func peerNotReading() async throws {
        try await withScene(clientArguments: ["--size", "60000"]) { scene in
            _ = try await Fault.peerNotReading.apply(to: scene)
            // Far more than buffers hold: those of both kernels, 6 and 4 MiB by default, can grow to 32 MiB.
            try scene.client.tell("send 2000")
            var samples: [Int] = []
            try await eventually("the window is full, and nothing moves for twenty looks") {
                samples.append(try await unreadByteCount(in: scene))
                let latest = Set(samples.suffix(20))
                let isLimited = try await scene.socket(at: .client).contains("rwnd_limited:")
                return samples.count >= 20 && latest.count == 1 && latest != [0] && isLimited
            }
            let (sent, received) = (scene.client.events, scene.peerEvents)
            #expect(!sent.contains { $0.event == .sent })
            #expect(!received.contains { $0.event == .received })
            _ = try await Fault.peerNotReading.heal(in: scene)
            try await scene.waitUntilReceived(2000)
            _ = try await scene.client.next("that all are sent") { $0.event == .sent }
            #expect(scene.messages == MessageCount(sent: 2000))
        }
    }
}

// MARK: -

private func withScene<Result>(
    _ family: TestNetwork.Family = .ipv4,
    clientArguments: [String] = [],
    _ body: nonisolated(nonsending) (FaultScene) async throws -> Result
) async throws -> Result {
    try await FaultScene.with(family, clientArguments: clientArguments + ["--unwatched"], body)
}

private func expectEverythingArrives(in scene: FaultScene) async throws {
    let sent = try await scene.send(10)
    try await scene.waitUntilReceived(sent.upperBound)
}

private func expectReconnected(in scene: FaultScene) async throws {
    _ = try await scene.client.next("that it is ready again") { $0.to == "ready" }
    try await expectEverythingArrives(in: scene)
}

/// The bytes that the peer's kernel has received and the peer has not read: the first column after the state.
private func unreadByteCount(in scene: FaultScene) async throws -> Int {
    let words = try await scene.socket(at: .server).split(whereSeparator: \.isWhitespace)
    return words.first.flatMap { Int($0) } ?? 0
}

/// Polls until the condition holds.
func eventually(
    _ description: String,
    within time: Duration = .seconds(60),
    _ isSo: nonisolated(nonsending) () async throws -> Bool
) async throws {
    let deadline = ContinuousClock.now + time
    while try await !isSo() {
        guard .now < deadline else { throw FaultFailure("Not within \(time): \(description)") }
    }
}
