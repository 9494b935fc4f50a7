import LifelineClientTestSupport
import LifelineCore
import LifelineTestSupport
import LifelineTransport
import Testing

@testable import LifelineOlderFramings

/// Requests over fixed headers on a scripted transport and a manual clock.
@Suite(.timeLimit(.minutes(1))) struct RequestSendingTests {
    private struct Scene {
        let client: FixedHeaderClient
        let transport: ScriptedTransport
        let clock: ManualClock

        /// The client's frames up to the request for a url.
        func written(by peer: ScriptedPeer, until url: UInt32) async throws -> [FixedHeader.Request] {
            var heads: [FixedHeader.Request] = []
            try await until(heads.last?.url == url) { try heads += requestHeads(in: peer.read()) }
            return heads
        }

        private func until(_ condition: @autoclosure () -> Bool, _ body: () throws -> Void) async throws {
            while !condition() {
                try Task.checkCancellation()
                try body()
                await Task.yield()
            }
        }
    }

    private func withScene(
        takesPushes: Bool = true,
        sendsHeartbeats: Bool = true,
        _ body: (Scene) async throws -> Void
    ) async throws {
        let (transport, clock) = (ScriptedTransport(), ManualClock())
        var requests = RequestConfiguration()
        requests.takesPushes = takesPushes
        requests.sendsHeartbeats = sendsHeartbeats
        let client = FixedHeaderClient(
            .fixedHeader,
            to: .unix(path: "/scripted"),
            configuration: ClientConfiguration(),
            requests: requests,
            logger: TestLog().logger,
            environment: ClientEnvironment(transport: transport, clock: clock, network: ManualNetwork(), seed: 1)
        )
        async let running: Void = client.run()
        try await body(Scene(client: client, transport: transport, clock: clock))
        await client.close()
        try await running
    }

    private func ready(_ scene: Scene) async throws -> ScriptedPeer {
        let peer = try await scene.transport.nextAttempt().accept()
        // It is ready first, and then accepts requests.
        try await until { scene.client.state == .ready && peer.resumeCount > 0 }
        return peer
    }

    /// Sends a request, and waits until it is written.
    private func ask(_ scene: Scene, _ peer: ScriptedPeer, url: UInt32 = 0x500) async throws -> (
        Task<FixedHeaderResponse, any Error>, UInt32
    ) {
        let task = Task { try await scene.client.request(url: url) }
        let head = try #require(try await scene.written(by: peer, until: url).last)
        // The framing's layer reports this before it writes; a scripted connection has no layer.
        scene.client.exchange.wroteRequest(tag: head.serial)
        return (task, head.serial)
    }

    private func response(_ url: UInt32, _ serial: UInt32, count: Int = 0) throws -> [UInt8] {
        let head = FixedHeader.Response(url: url, serial: serial)
        let frame = try CarriedFrame.bytes(head: head, content: [UInt8](repeating: 0, count: count))
        let range = try #require(frame.withUnsafeBytes { CarriedFrame.nextPayload(in: $0, from: 0) })
        return Array(frame[range])
    }

    // MARK: Requests that no connection has taken

    @Test func cancelledWhileItWaitsForAConnection() async throws {
        try await withScene { scene in
            let task = Task { try await scene.client.request(url: 0x500) }
            try await until { scene.client.statistics.waitingCount == 1 }
            task.cancel()
            #expect(await task.requestError?.code == .cancelled)
            let peer = try await ready(scene)
            let marker = Task { try await scene.client.request(url: 0x501) }
            #expect(try await scene.written(by: peer, until: 0x501).map(\.url) == [0x501])
            peer.close(nil)
            _ = await marker.result
        }
    }

    @Test(arguments: [RequestError.Code.cancelled, .timedOut])
    func endedWhileItWaitsForRoom(code: RequestError.Code) async throws {
        try await withScene { scene in
            let peer = try await ready(scene)
            // Over the high-water mark: the next request waits.
            try await scene.client.notify(9, content: [UInt8](repeating: 0, count: 300 << 10))
            let task = Task { try await scene.client.request(url: 0x500, timeout: .seconds(5)) }
            try await until { scene.client.statistics.waitingCount == 1 }
            if code == .cancelled { task.cancel() } else { scene.clock.advance(by: .seconds(5)) }
            #expect(await task.requestError?.code == code)
            #expect(scene.client.statistics.waitingCount == 0)
            let marker = Task { try await scene.client.request(url: 0x501) }
            #expect(try await scene.written(by: peer, until: 0x501).map(\.url) == [9, 0x501])
            peer.close(nil)
            _ = await marker.result
        }
    }

    // MARK: Why no answer comes

    @Test func causesOfRegularEnds() async throws {
        try await withScene { scene in
            var peer = try await ready(scene)
            let (first, _) = try await ask(scene, peer)
            peer.finish()
            let error = await first.requestError
            #expect(error?.code == .connectionLost)
            #expect((error?.cause as? ConnectionError)?.code == .closedByPeer)

            scene.client.reconnect()
            peer = try await ready(scene)
            let (second, _) = try await ask(scene, peer)
            await scene.client.close()
            let closed = await second.requestError
            #expect(closed?.code == .connectionLost)
            #expect((closed?.cause as? ConnectionError)?.code == .closedLocally)
        }
    }

    @Test func closingWhileARequestWaitsForAConnection() async throws {
        try await withScene { scene in
            let task = Task { try await scene.client.request(url: 0x500) }
            try await until { scene.client.statistics.waitingCount == 1 }
            await scene.client.close()
            let error = await task.requestError
            #expect(error?.code == .notSent, "the peer has not seen it")
            #expect((error?.cause as? ConnectionError)?.code == .closedLocally)
        }
    }

    // MARK: Heartbeats

    @Test(arguments: [true, false]) func heartbeatsAreNoPushes(takesPushes: Bool) async throws {
        try await withScene(takesPushes: takesPushes) { scene in
            let peer = try await ready(scene)
            let (task, serial) = try await ask(scene, peer)
            #expect(peer.ping(1) == [8, 0, 0, 0, 1, 0, 0, 4, 1])
            // A pong, an unrequested one, a push, the answer, and a very late pong.
            _ = peer.send([
                try response(1, 0x401), try response(1, 1), try response(7, 7), try response(0x500, serial),
                try response(1, 0x9999),
            ])
            #expect(try await task.value.url == 0x500)
            let statistics = scene.client.statistics
            #expect(statistics.droppedPushCount == (takesPushes ? 0 : 1))
            #expect(statistics.lateAnswerCount == 0 && statistics.unknownAnswerCount == 0)
            guard takesPushes else { return }
            _ = peer.send([try response(8, 8)])
            var pushes = scene.client.pushes.makeAsyncIterator()
            #expect(try await pushes.next()?.url == 7)
            #expect(try await pushes.next()?.url == 8)
        }
    }

    @Test func noHeartbeatsAreSentThatAreNotWanted() async throws {
        try await withScene(sendsHeartbeats: false) { scene in
            let peer = try await ready(scene)
            #expect(peer.ping(1) == nil)
            // The server's own frames are still taken out.
            _ = peer.send([try response(1, 1), try response(7, 7)])
            var pushes = scene.client.pushes.makeAsyncIterator()
            #expect(try await pushes.next()?.url == 7)
        }
    }

    /// Answers take no room from pushes, whatever arrives with them.
    @Test func costsOfAnswersBehindHeartbeats() async throws {
        try await withScene { scene in
            let peer = try await ready(scene)
            // Together they are far over the water mark.
            for _ in 0..<40 {
                let (task, serial) = try await ask(scene, peer)
                #expect(
                    peer.send([
                        try response(1, 0x401), try response(7, 7), try response(0x500, serial, count: 10_000),
                    ])
                )
                _ = try await task.value
            }
        }
    }

    // MARK: Pushes

    @Test func requestsGoOnWhenPushesAreTaken() async throws {
        try await withScene { scene in
            let peer = try await ready(scene)
            #expect(!peer.send([try response(7, 7, count: 300 << 10)]), "more than the high-water mark: not read on")
            let (task, serial) = try await ask(scene, peer)
            let resumeCount = peer.resumeCount
            var pushes = scene.client.pushes.makeAsyncIterator()
            #expect(try await pushes.next()?.url == 7)
            #expect(peer.resumeCount == resumeCount + 1)
            #expect(peer.send([try response(0x500, serial)]))
            #expect(try await task.value.url == 0x500)
        }
    }
}

/// The heads of requests in Lifeline's own frames.
private func requestHeads(in bytes: [UInt8]) throws -> [FixedHeader.Request] {
    try bytes.withUnsafeBytes { bytes in
        var heads: [FixedHeader.Request] = []
        var offset = 0
        while offset < bytes.count {
            let range = try #require(CarriedFrame.nextPayload(in: bytes, from: offset))
            let payload = UnsafeRawBufferPointer(rebasing: bytes[range])
            heads.append(try #require(FixedHeader.Request.carried(in: payload)).head)
            offset = range.upperBound
        }
        return heads
    }
}
