import Lifeline
import LifelineClientTestSupport
import LifelineFleet
import LifelineProtos
import LifelineRuntime
import LifelineTestSupport
import Logging
import NIOConcurrencyHelpers
import SampleServices
import Testing

/// Sessions that move from server to server, with their groups.
@Suite(.timeLimit(.minutes(1))) struct MovingTests {
    /// Servers with one engine, and a relay before them that connects to the first one.
    private func withServers(
        _ fleets: [Fleet],
        _ body: @Sendable ([SessionServer], [Int], CuttingRelay) async throws -> Void
    ) async throws {
        try await withServers(fleets[...], [], body)
    }

    private func withServers(
        _ fleets: ArraySlice<Fleet>,
        _ servers: [SessionServer],
        _ body: @Sendable ([SessionServer], [Int], CuttingRelay) async throws -> Void
    ) async throws {
        if let fleet = fleets.first {
            var configuration = SessionServerConfiguration()
            configuration.server.shutdownGracePeriod = .milliseconds(100)
            configuration.drainSpread = .zero
            return try await withSessionServer(
                listeningOn: anyPort,
                configuration: configuration,
                services: [fleet]
            ) { server in
                try await withServers(fleets.dropFirst(), servers + [server], body)
            }
        }
        var ports: [Int] = []
        for server in servers {
            guard case .tcp(_, let port) = try await server.boundEndpoints[0].address else { return }
            ports.append(Int(port))
        }
        let bound = ports
        try await CuttingRelay.run(
            to: bound[0],
            nextCut: { nil }
        ) { relay in
            try await body(servers, bound, relay)
        }
    }

    private func client(
        of relay: CuttingRelay,
        named name: String = "a"
    ) -> (Endpoint, SessionClientConfiguration) {
        var configuration = SessionClientConfiguration.named(name)
        configuration.client.backoff.initialDelay = .milliseconds(1)
        configuration.client.backoff.maximumAttempts = nil
        return (.tcp(host: "127.0.0.1", port: UInt16(relay.port)), configuration)
    }

    private func fleets(_ count: Int, _ engine: some FleetEngine) -> [Fleet] {
        var configuration = FleetConfiguration()
        configuration.automaticGroups = { _ in ["everybody"] }
        return (0..<count).map { _ in Fleet(engine: engine, configuration: configuration) }
    }

    /// The next pushes: their texts, and whether they report a gap or are history.
    private func take(
        _ count: Int,
        _ news: SessionPushes<News>.WithMetadata
    ) async throws -> (texts: [String], marks: Set<String>) {
        var texts: [String] = []
        var marks: Set<String> = []
        for try await push in news {
            texts.append(push.message.text)
            if push.group?.followsGap == true { marks.insert("gap") }
            if push.group?.isRecovered == true { marks.insert("recovered") }
            if texts.count == count { break }
        }
        return (texts, marks)
    }

    @Test func aMemberGoesFromServerToServer() async throws {
        let fleets = fleets(3, MemoryFleetEngine())
        try await withServers(fleets) { servers, ports, relay in
            let (endpoint, configuration) = client(of: relay)
            try await withSessionClient(to: endpoint, configuration: configuration) { client in
                let news = Sample_Room_V1_RoomClient(client).news.withMetadata
                let id = try await servers[0].session(of: "a").id
                try await until { fleets[0].memberCount(of: "everybody") == 1 }
                // Then it knows its session.
                try await fleets[0].say(["hello"], in: "everybody")
                #expect(try await take(1, news).texts == ["hello"])
                let texts = (1...300).map { "\($0)" }
                async let taken = take(texts.count, news)
                for (index, text) in texts.enumerated() {
                    try await fleets[index % 3].say([text], in: "everybody")
                    guard index % 50 == 25 else { continue }
                    // Its client connects to another server.
                    let next = index / 50 % 3 == 0 ? 1 : index / 50 % 3 == 1 ? 2 : 0
                    relay.redirect(to: ports[next])
                    relay.reset()
                    try await until { servers[next].session(named: "a") != nil }
                    #expect(try #require(servers[next].session(named: "a")).id == id)
                }
                let result = try await taken
                #expect(result.texts == texts)
                #expect(result.marks == [])
                #expect(servers.map { $0.sessions.count }.reduce(0, +) == 1)
            }
        }
    }

    @Test func aServerThatGoesAwayLeavesItsSessionsForTheOthers() async throws {
        let fleets = fleets(2, MemoryFleetEngine())
        try await withServers(fleets) { servers, ports, relay in
            let (endpoint, configuration) = client(of: relay)
            try await withSessionClient(to: endpoint, configuration: configuration) { client in
                let news = Sample_Room_V1_RoomClient(client).news.withMetadata
                _ = try await servers[0].session(of: "a")
                try await until { fleets[0].memberCount(of: "everybody") == 1 }
                try await fleets[0].say(["hello"], in: "everybody")
                #expect(try await take(1, news).texts == ["hello"])
                async let taken = take(20, news)
                for number in 1...10 { try await fleets[0].say(["\(number)"], in: "everybody") }
                relay.redirect(to: ports[1])
                await servers[0].shutdown(gracePeriod: .milliseconds(100))
                for number in 11...20 { try await fleets[1].say(["\(number)"], in: "everybody") }
                let result = try await taken
                #expect(result.texts == (1...20).map { "\($0)" })
                #expect(result.marks == [])
                #expect(servers[1].session(named: "a") != nil)
            }
        }
    }

    /// Nothing listens for a killed server.
    @Test func theSessionsOfADeadServerAreLost() async throws {
        let engine = MemoryFleetEngine()
        let fleets = fleets(2, engine)
        try await withServers(fleets) { servers, ports, relay in
            let (endpoint, configuration) = client(of: relay)
            try await withSessionClient(to: endpoint, configuration: configuration) { client in
                let news = Sample_Room_V1_RoomClient(client).news.withMetadata
                let session = try await servers[0].session(of: "a")
                try await session.push(Pushes.news.name, News.with { $0.text = "hello" })
                #expect(try await take(1, news).texts == ["hello"])
                engine.detach(fleets[0].nodeName)
                relay.redirect(to: ports[1])
                relay.reset()
                try await session.push(Pushes.news.name, News.with { $0.text = "lost" })
                let next = try await servers[1].session(of: "a")
                #expect(next.id != session.id)
                try await next.push(Pushes.news.name, News.with { $0.text = "new" })
                #expect(try await take(1, news).texts == ["new"])
            }
        }
    }

    /// Its later clients begin a new session at once.
    @Test func aDeadServerIsWaitedForOnce() async throws {
        let engine = MemoryFleetEngine()
        let clock = ManualClock()
        let second = Fleet(
            engine: engine,
            nodeName: nil,
            configuration: FleetConfiguration(),
            logger: Logger(label: "fleet"),
            clock: clock
        )
        let fleets = [Fleet(engine: engine), second]
        try await withServers(fleets) { servers, ports, relay in
            try await CuttingRelay.run(to: ports[0], nextCut: { nil }) { otherRelay in
                let (first, second) = (client(of: relay), client(of: otherRelay, named: "b"))
                try await withSessionClient(to: first.0, configuration: first.1) { client in
                    try await withSessionClient(to: second.0, configuration: second.1) { other in
                        try await settle(servers, client, "a")
                        try await settle(servers, other, "b")
                        engine.detach(fleets[0].nodeName)
                        relay.redirect(to: ports[1])
                        relay.reset()
                        let begin = clock.now
                        try await until {
                            if let time = clock.nextWakeUp { clock.advance(to: time) }
                            return servers[1].session(named: "a") != nil
                        }
                        let end = clock.now
                        #expect(end - begin >= .milliseconds(500))
                        otherRelay.redirect(to: ports[1])
                        otherRelay.reset()
                        _ = try await servers[1].session(of: "b")
                        #expect(clock.now == end)
                    }
                }
            }
        }
    }

    /// Waits until a client knows the session that it has at the first server.
    private func settle(_ servers: [SessionServer], _ client: SessionClient, _ name: String) async throws {
        let news = Sample_Room_V1_RoomClient(client).news.withMetadata
        let session = try await servers[0].session(of: name)
        try await session.push(Pushes.news.name, News.with { $0.text = "hello" })
        #expect(try await take(1, news).texts == ["hello"])
    }

    /// Moves a client from the first server to the second one, and checks that its session continues there.
    ///
    /// - Parameter drains: whether it moves because the first server shuts down.
    private func move(
        _ engine: some FleetEngine,
        drains: Bool = false,
        meanwhile: @Sendable @escaping () async throws -> Void = {}
    ) async throws {
        let fleets = fleets(2, engine)
        try await withServers(fleets) { servers, ports, relay in
            let (endpoint, configuration) = client(of: relay)
            try await withSessionClient(to: endpoint, configuration: configuration) { client in
                let news = Sample_Room_V1_RoomClient(client).news.withMetadata
                let session = try await servers[0].session(of: "a")
                try await until { fleets[0].memberCount(of: "everybody") == 1 }
                try await fleets[0].say(["hello"], in: "everybody")
                #expect(try await take(1, news).texts == ["hello"])
                relay.redirect(to: ports[1])
                async let shutdown: Void = drains ? servers[0].shutdown(gracePeriod: .seconds(10)) : relay.reset()
                try await meanwhile()
                let moved = try await servers[1].session(of: "a")
                #expect(moved.id == session.id)
                try await fleets[1].say(["here"], in: "everybody")
                let result = try await take(1, news)
                #expect(result.texts == ["here"])
                #expect(result.marks == [])
                await shutdown
            }
        }
    }

    private struct EngineFailure: Error {}

    /// Fails a few times at one step.
    private func failing(
        _ count: Int,
        at step: FaultyEngine.Step
    ) -> @Sendable (FaultyEngine.Step) async throws -> Void {
        let left = NIOLockedValueBox(count)
        return { present in
            guard present == step else { return }
            let fails = left.withLockedValue { left in
                left -= 1
                return left >= 0
            }
            if fails { throw EngineFailure() }
        }
    }

    @Test(arguments: [FaultyEngine.Step.park, .take, .confirm])
    func anEngineThatFailsIsAskedAgain(_ step: FaultyEngine.Step) async throws {
        try await move(FaultyEngine(before: failing(2, at: step)))
    }

    @Test(arguments: [FaultyEngine.Step.park, .take, .confirm])
    func anAnswerOfTheEngineThatIsLostCostsNothing(_ step: FaultyEngine.Step) async throws {
        try await move(FaultyEngine(after: failing(2, at: step)))
    }

    /// The client is at the other server before the engine has its session.
    @Test func aSessionThatIsOnItsWayIsWaitedFor() async throws {
        let (isParking, goOn) = (Latch<Void>(), Latch<Void>())
        let askCount = NIOLockedValueBox(0)
        let engine = FaultyEngine { step in
            switch step {
            case .park:
                isParking.open(with: ())
                await goOn.waitUninterrupted()
            case .take: askCount.withLockedValue { $0 += 1 }
            case .claim, .confirm: break
            }
        }
        try await move(engine, drains: true) {
            try await isParking.wait()
            // It has asked again, because it got no answer.
            try await until { askCount.withLockedValue { $0 } >= 3 }
            goOn.open(with: ())
        }
    }
}
