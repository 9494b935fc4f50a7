import Lifeline
import LifelineFleet
import LifelineFleetRedis
import LifelineProtos
import LifelineTestSupport
import LifelineTesting
import SampleServices
import Testing

/// With a real server.
@Suite(.timeLimit(.minutes(1))) struct RedisFleetEngineTests {
    private static func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    @Test(arguments: FleetEngineChecks.all) func keepsTheRules(_ check: FleetEngineCheck) async throws {
        try await withRedisServer { server in
            try await check.run {
                [try RedisFleetEngine(server.configuration), try RedisFleetEngine(server.configuration)]
            }
        }
    }

    // MARK: Data that Redis loses

    /// Data that was only in memory is lost: a group begins anew, and its members learn this.
    @Test(arguments: [["save \"\""], ["save \"\"", "appendonly yes", "appendfsync everysec"]])
    func aServerThatIsStartedAgainBeginsAnEpoch(_ settings: [String]) async throws {
        try await withRedisServer(settings) { server in
            let engine = try RedisFleetEngine(server.configuration)
            let first = try await engine.append(Self.bytes("one"), to: "g", keeping: GroupHistory())
            await server.kill()
            try await server.restart()
            let page = try await engine.read("g", after: 0)
            #expect(page.newest.epoch > first.epoch)
            #expect(page.newest.offset == 0)
            #expect(page.messages.isEmpty)
            let second = try await engine.append(Self.bytes("two"), to: "g", keeping: GroupHistory())
            #expect(second == GroupPosition(epoch: page.newest.epoch, offset: 1))
        }
    }

    @Test func aServerThatSynchronizesEverythingGoesOn() async throws {
        let settings = ["save \"\"", "appendonly yes", "appendfsync always"]
        try await withRedisServer(settings) { server in
            let engine = try RedisFleetEngine(server.configuration)
            let first = try await engine.append(Self.bytes("one"), to: "g", keeping: GroupHistory())
            await server.kill()
            try await server.restart()
            let second = try await engine.append(Self.bytes("two"), to: "g", keeping: GroupHistory())
            #expect(second == GroupPosition(epoch: first.epoch, offset: 2))
            #expect(try await engine.read("g", after: 0).messages.map(\.bytes) == ["one", "two"].map(Self.bytes))
        }
    }

    @Test func anEmptiedServerBeginsAnEpoch() async throws {
        try await withRedisServer { server in
            let engine = try RedisFleetEngine(server.configuration)
            let first = try await engine.append(Self.bytes("one"), to: "g", keeping: GroupHistory())
            try await withRedisClient(server.configuration) { client in
                _ = try await client.send(RedisCommand("FLUSHALL"))
            }
            let position = try await engine.newest(of: ["g"])[0]
            #expect(position.epoch > first.epoch)
            #expect(position.offset == 0)
        }
    }

    @Test func aServerThatHasForgottenTheScriptsGetsThemAgain() async throws {
        try await withRedisServer { server in
            let engine = try RedisFleetEngine(server.configuration)
            let first = try await engine.append(Self.bytes("one"), to: "g", keeping: GroupHistory())
            try await withRedisClient(server.configuration) { client in
                _ = try await client.send(RedisCommand("SCRIPT", "FLUSH"))
            }
            let second = try await engine.append(Self.bytes("two"), to: "g", keeping: GroupHistory())
            #expect(second == GroupPosition(epoch: first.epoch, offset: 2))
        }
    }

    /// The log of a group expires before its state.
    @Test func offsetsGoOnWhenTheHistoryIsTooOld() async throws {
        try await withRedisServer { server in
            let engine = try RedisFleetEngine(server.configuration)
            var history = GroupHistory()
            history.maximumAge = .milliseconds(500)
            history.maximumByteCount = 10
            let first = try await engine.append(Self.bytes("123456789"), to: "g", keeping: history)
            try await Task.sleep(for: .milliseconds(600))
            #expect(try await engine.read("g", after: 0).messages.isEmpty)
            let second = try await engine.append(Self.bytes("123456789"), to: "g", keeping: history)
            #expect(second == GroupPosition(epoch: first.epoch, offset: 2))
            #expect(try await engine.read("g", after: 0).messages.map(\.offset) == [2])
        }
    }

    /// Another program has stored another value there.
    @Test func aKeyOfAnotherKindIsAnError() async throws {
        try await withRedisServer { server in
            try await withRedisClient(server.configuration) { client in
                _ = try await client.send(RedisCommand("SET", "lifeline:{g}:state", "x"))
            }
            let engine = try RedisFleetEngine(server.configuration)
            let error = await redisError { _ = try await engine.append([], to: "g", keeping: GroupHistory()) }
            #expect(error?.code == .refused)
        }
    }

    // MARK: Fleets

    private nonisolated(nonsending) func withServer(
        _ engine: RedisFleetEngine,
        _ configure: (inout FleetConfiguration) -> Void = { _ in },
        _ body: nonisolated(nonsending) (Fleet, Endpoint) async throws -> Void
    ) async throws {
        var configuration = FleetConfiguration()
        configuration.mayJoin = { _, _ in }
        configuration.comparisonInterval = .milliseconds(50)
        configuration.presence = { _, session in GroupMember(session.name) }
        configure(&configuration)
        let fleet = Fleet(engine: engine, configuration: configuration)
        try await withThrowingTaskGroup { tasks in
            tasks.addTask { try await fleet.run() }
            defer { tasks.cancelAll() }
            let endpoint = Endpoint.tcp(host: "127.0.0.1", port: 0)
            try await withSessionServer(listeningOn: endpoint, services: [fleet]) { server in
                try await body(fleet, server.boundEndpoints[0])
            }
        }
    }

    private func push(_ text: String, to fleet: Fleet) async throws {
        try await fleet.push(Sample_Room_V1_RoomPushes.news, .with { $0.text = text }, to: "g")
    }

    /// Calls `body` with two servers, and the messages of a group that a client of the second one gets.
    private func withTwoServers(
        _ server: RedisServerProcess,
        _ body: @Sendable ([Fleet], SessionPushes<Sample_Room_V1_NewsItem>.WithMetadata) async throws -> Void
    ) async throws {
        let engines = [try RedisFleetEngine(server.configuration), try RedisFleetEngine(server.configuration)]
        try await withServer(engines[0]) { first, _ in
            try await withServer(engines[1]) { second, endpoint in
                try await withSessionClient(to: endpoint) { client in
                    let news = Sample_Room_V1_RoomClient(client).news.withMetadata
                    try await client.withGroup("g") { _ in try await body([first, second], news) }
                }
            }
        }
    }

    @Test func serversOnOneRedisServeTheSameGroups() async throws {
        try await withRedisServer { server in
            try await withTwoServers(server) { fleets, news in
                for number in 1...100 { try await push("\(number)", to: fleets[number % 2]) }
                var news = news.makeAsyncIterator()
                for number in 1...100 {
                    let item = try #require(try await news.next())
                    #expect(item.message.text == "\(number)")
                    #expect(item.group?.position.offset == UInt64(number))
                    #expect(item.group?.followsGap == false)
                }
            }
        }
    }

    /// Announcements are lost with the subscription. The nodes compare, and read the messages that they missed.
    @Test func lostNewsIsFoundInTheHistory() async throws {
        try await withRedisServer { server in
            try await withTwoServers(server) { fleets, news in
                try await withRedisClient(server.configuration) { client in
                    for number in 1...50 {
                        if number % 10 == 5 {
                            _ = try await client.send(RedisCommand("CLIENT", "KILL", "TYPE", "PUBSUB"))
                        }
                        try await push("\(number)", to: fleets[0])
                    }
                }
                var news = news.makeAsyncIterator()
                for number in 1...50 {
                    let item = try #require(try await news.next())
                    #expect(item.message.text == "\(number)")
                    #expect(item.group?.followsGap == false)
                }
            }
        }
    }

    @Test func aNodeIsAliveAgainWhenRedisHasLostItsLease() async throws {
        try await withRedisServer { server in
            let engine = try RedisFleetEngine(server.configuration)
            var configuration = FleetConfiguration()
            configuration.leaseDuration = .milliseconds(300)
            let fleet = Fleet(engine: engine, nodeName: "node", configuration: configuration)
            try await withThrowingTaskGroup { tasks in
                tasks.addTask { try await fleet.run() }
                while try await engine.liveNodes(among: ["node"]).isEmpty { await Task.yield() }
                try await server.restart()
                while try await engine.liveNodes(among: ["node"]).isEmpty { await Task.yield() }
                tasks.cancelAll()
                _ = await tasks.nextResult()
                #expect(try await engine.liveNodes(among: ["node"]).isEmpty)
            }
        }
    }

    // MARK: Presence

    private nonisolated(nonsending) func withMember<Result>(
        _ name: String,
        _ endpoint: Endpoint,
        _ body: nonisolated(nonsending) (SessionClient) async throws -> Result
    ) async throws -> Result {
        var configuration = SessionClientConfiguration()
        configuration.name = name
        return try await withSessionClient(to: endpoint, configuration: configuration) { client in
            try await client.withGroup("g") { _ in try await body(client) }
        }
    }

    /// The second server cannot reach Redis any more, like a killed one: its lease ends.
    @Test func theMembersOfAServerThatIsCutOffLeave() async throws {
        try await withRedisServer { server in
            try await withRedisClient(server.configuration) { client in
                @Sendable func run(_ name: String, _ arguments: RedisArgument...) async throws {
                    _ = try await client.send(RedisCommand(name, arguments))
                }
                try await run("ACL", "SETUSER", "second", "on", ">secret", "~*", "&*", "+@all")
                let second = try server.configuration(url: "redis://second:secret@127.0.0.1:\(server.port)")
                let engines = [try RedisFleetEngine(server.configuration), try RedisFleetEngine(second)]
                let configure: @Sendable (inout FleetConfiguration) -> Void = { configuration in
                    configuration.leaseDuration = .seconds(1)
                    configuration.presenceGrace = .milliseconds(100)
                }
                try await withServer(engines[0], configure) { fleet, firstEndpoint in
                    var events = fleet.presence(of: "g").makeAsyncIterator()
                    #expect(try await events.next() == .present([]))
                    try await withMember("ada", firstEndpoint) { _ in
                        #expect(try await events.next() == .joined(GroupMember("ada")))
                        try await withServer(engines[1], configure) { other, endpoint in
                            try await withMember("bob", endpoint) { bob in
                                #expect(try await events.next() == .joined(GroupMember("bob")))
                                let all: Set = [GroupMember("ada"), GroupMember("bob")]
                                #expect(try await Set(fleet.members(of: "g")) == all)
                                #expect(try await Set(other.members(of: "g")) == all)
                                try await run("ACL", "SETUSER", "second", "off")
                                try await run("CLIENT", "KILL", "USER", "second")
                                #expect(try await events.next() == .left(GroupMember("bob")))
                                #expect(try await fleet.members(of: "g") == [GroupMember("ada")])
                                // Redis is back.
                                try await run("ACL", "SETUSER", "second", "on")
                                #expect(try await events.next() == .joined(GroupMember("bob")))
                            }
                            #expect(try await events.next() == .left(GroupMember("bob")))
                        }
                    }
                }
            }
        }
    }

    /// Each node announces its members again before they count as having left.
    @Test func aRestartOfRedisIsNoEvent() async throws {
        try await withRedisServer { server in
            let engines = [try RedisFleetEngine(server.configuration), try RedisFleetEngine(server.configuration)]
            let configure: @Sendable (inout FleetConfiguration) -> Void = { $0.presenceGrace = .seconds(20) }
            try await withServer(engines[0], configure) { fleet, firstEndpoint in
                try await withServer(engines[1], configure) { _, endpoint in
                    try await withMember("bob", endpoint) { _ in
                        try await withMember("watcher", firstEndpoint) { watcher in
                            var events = watcher.presence(of: "g").makeAsyncIterator()
                            guard case .present(let members)? = try await events.next() else {
                                Issue.record("It begins without the members.")
                                return
                            }
                            #expect(members.contains(GroupMember("watcher")))
                            if members.count == 1 {
                                #expect(try await events.next() == .joined(GroupMember("bob")))
                            }
                            try await server.restart()
                            while try await engines[0].presence(of: "g", at: fleet.nodeName).version == 0 {
                                await Task.yield()
                            }
                            try await withMember("eve", endpoint) { _ in
                                let event = try await events.next()
                                #expect(event == .joined(GroupMember("eve")))
                            }
                        }
                    }
                }
            }
        }
    }

    @Test func membersAreToldWhenRedisHasLostTheHistory() async throws {
        try await withRedisServer { server in
            try await withTwoServers(server) { fleets, news in
                var news = news.makeAsyncIterator()
                try await push("before", to: fleets[0])
                #expect(try await news.next()?.message.text == "before")
                await server.kill()
                try await server.restart()
                try await push("after", to: fleets[0])
                let item = try #require(try await news.next())
                #expect(item.message.text == "after")
                #expect(item.group?.followsGap == true)
            }
        }
    }
}
