import Lifeline
import LifelineClientTestSupport
import LifelineFleet
import LifelineProtos
import LifelineRuntime
import LifelineTestSupport
import Logging
import NIOConcurrencyHelpers
import SampleServices
import ServiceLifecycleTestKit
import Testing

typealias News = Sample_Room_V1_NewsItem
typealias Pushes = Sample_Room_V1_RoomPushes

let anyPort = Endpoint.tcp(host: "127.0.0.1", port: 0)

extension SessionServer {
    /// Waits for the session with a client's name.
    func session(of name: String) async throws -> SessionServerEnd {
        try await until { session(named: name) != nil }
        return try #require(session(named: name))
    }
}

extension SessionClientConfiguration {
    static func named(_ name: String) -> SessionClientConfiguration {
        var configuration = SessionClientConfiguration()
        configuration.name = name
        return configuration
    }
}

/// A fleet whose groups every client may join.
func openFleet(
    _ engine: any FleetEngine = MemoryFleetEngine(),
    history count: Int = 100,
    slowByteCount: Int = 1 << 20
) -> Fleet {
    var configuration = FleetConfiguration()
    configuration.mayJoin = { _, _ in }
    configuration.history.maximumCount = count
    configuration.slowMemberByteCount = slowByteCount
    return Fleet(engine: engine, configuration: configuration)
}

extension Fleet {
    /// Pushes texts to a group.
    func say(_ texts: [String], in group: String = "g", delivery: SessionDelivery = .reliable) async throws {
        for text in texts { try await push(Pushes.news, .with { $0.text = text }, to: group, delivery: delivery) }
    }
}

extension SessionClient {
    /// Joins a group, and returns its messages.
    func texts(
        in group: String = "g",
        from start: GroupStart,
        _ count: Int,
        _ news: SessionPushes<News>.WithMetadata,
        pushing texts: [String] = [],
        by fleet: Fleet
    ) async throws -> (texts: [String], join: GroupJoin?) {
        try await withGroup(group, from: start) { membership in
            var joins = membership.joins.makeAsyncIterator()
            let join = try await joins.next()
            try await fleet.say(texts, in: group)
            return (try await news.texts(count), join)
        }
    }
}

extension SessionPushes<News>.WithMetadata {
    /// The next pushes, as "3:text", with "r" after the offset for recovered ones and "g" for gaps.
    func texts(_ count: Int) async throws -> [String] {
        var texts: [String] = []
        for try await push in self {
            let mark = push.group.map { "\($0.position.offset)\($0.isRecovered ? "r" : "")\($0.followsGap ? "g" : "")" }
            texts.append("\(mark ?? "-"):\(push.message.text)")
            if texts.count == count { break }
        }
        return texts
    }
}

/// Groups of real sessions over TCP.
@Suite(.timeLimit(.minutes(1))) struct FleetTests {
    private func withFleet(
        _ fleet: Fleet,
        _ configuration: SessionServerConfiguration = SessionServerConfiguration(),
        _ body: (SessionServer, Endpoint) async throws -> Void
    ) async throws {
        try await withSessionServer(listeningOn: anyPort, configuration: configuration, services: [fleet]) { server in
            try await body(server, server.boundEndpoints[0])
        }
    }

    @Test func pushesToAGroupReachItsMembersInOrder() async throws {
        let fleet = openFleet()
        try await withFleet(fleet) { server, endpoint in
            try await withSessionClient(to: endpoint, configuration: .named("a")) { first in
                try await withSessionClient(to: endpoint, configuration: .named("b")) { second in
                    let news = [Sample_Room_V1_RoomClient(first).news, Sample_Room_V1_RoomClient(second).news]
                    let sessions = [try await server.session(of: "a"), try await server.session(of: "b")]
                    try await fleet.join("g", sessions[0])
                    try await fleet.join("g", sessions[1])
                    try await fleet.say(["one", "two"])
                    fleet.leave("g", sessions[1])
                    try await fleet.say(["three"])
                    #expect(try await news[0].withMetadata.texts(3) == ["1:one", "2:two", "3:three"])
                    #expect(try await news[1].withMetadata.texts(2) == ["1:one", "2:two"])
                    try await sessions[1].push(Pushes.news.name, News.with { $0.text = "alone" })
                    #expect(try await news[1].withMetadata.texts(1) == ["-:alone"])
                    #expect(fleet.groups(of: sessions[0]) == ["g"])
                    #expect(fleet.groups(of: sessions[1]) == [])
                }
            }
        }
    }

    @Test func aClientJoinsWhereItMay() async throws {
        let fleet = openFleet()
        try await fleet.say(["one", "two"])
        try await withFleet(fleet) { _, endpoint in
            try await withSessionClient(to: endpoint) { session in
                let news = Sample_Room_V1_RoomClient(session).news.withMetadata
                let first = try await session.texts(from: .earliest, 3, news, pushing: ["three"], by: fleet)
                #expect(first.texts == ["1r:one", "2r:two", "3:three"])
                #expect(first.join?.isRecovered == true)
                #expect(first.join?.position.offset == 0)
                try await fleet.say(["four"])
                let second = try await session.texts(from: .now, 1, news, pushing: ["five"], by: fleet)
                #expect(second.texts == ["5:five"])
            }
        }
    }

    @Test func aClientJoinsBehindWhatItHas() async throws {
        let fleet = openFleet(history: 3)
        try await fleet.say(["one", "two", "three", "four"])
        let last = try await fleet.push(Pushes.news, .with { $0.text = "five" }, to: "g")
        try await withFleet(fleet) { _, endpoint in
            try await withSessionClient(to: endpoint) { session in
                let news = Sample_Room_V1_RoomClient(session).news.withMetadata
                let third = GroupPosition(epoch: last.epoch, offset: 3)
                let recovered = try await session.texts(from: .after(third), 2, news, by: fleet)
                #expect(recovered.texts == ["4r:four", "5r:five"])
                // The history does not reach back to the second message.
                let first = GroupPosition(epoch: last.epoch, offset: 1)
                let texts = ["six", "seven"]
                let lost = try await session.texts(from: .after(first), 2, news, pushing: texts, by: fleet)
                #expect(lost.join == GroupJoin(position: last, isRecovered: false))
                #expect(lost.texts == ["6g:six", "7:seven"])
            }
        }
    }

    @Test func aClientThatMayNotJoinIsToldWhy() async throws {
        let fleet = Fleet()
        try await withFleet(fleet) { _, endpoint in
            try await withSessionClient(to: endpoint) { session in
                let error = await #expect(throws: SessionError.self) {
                    try await session.withGroup("g") { _ in Issue.record("It has joined.") }
                }
                #expect(error?.status?.code == .permissionDenied)
            }
        }
    }

    @Test(arguments: ["", String(repeating: "x", count: 256)])
    func namesHaveALength(_ name: String) async throws {
        let fleet = openFleet()
        let error = await #expect(throws: FleetError.self) { try await fleet.say(["one"], in: name) }
        #expect(error?.code == .badName)
        try await withFleet(fleet) { _, endpoint in
            try await withSessionClient(to: endpoint) { session in
                let error = await #expect(throws: SessionError.self) { try await session.withGroup(name) { _ in } }
                #expect(error?.status?.code == .invalidArgument)
            }
        }
    }

    @Test func messagesThatNobodyCouldGetAreRefused() async throws {
        var configuration = FleetConfiguration()
        configuration.history.maximumByteCount = 100
        let fleet = Fleet(configuration: configuration)
        let item = News.with { $0.text = "text" }
        for (item, delivery, metadata) in [
            (item, SessionDelivery.durable, [:]), (item, .reliable, ["lifeline-group": "x"]),
            (News.with { $0.text = String(repeating: "x", count: 101) }, .reliable, [:]),
            // The metadata has no room for the group's entry.
            (item, .reliable, Dictionary(uniqueKeysWithValues: (0..<128).map { ("\($0)", "") })),
        ] {
            let error = await #expect(throws: FleetError.self) {
                try await fleet.push(Pushes.news, item, to: "g", delivery: delivery, metadata: metadata)
            }
            #expect(error?.code == .badMessage)
        }
    }

    @Test func aSessionIsInSoManyGroupsAtMost() async throws {
        var configuration = FleetConfiguration()
        configuration.maximumGroupCountPerSession = 2
        let fleet = Fleet(configuration: configuration)
        try await withFleet(fleet) { server, endpoint in
            try await withSessionClient(to: endpoint, configuration: .named("a")) { _ in
                let session = try await server.session(of: "a")
                for group in ["a", "b", "a"] { try await fleet.join(group, session) }
                let error = await #expect(throws: FleetError.self) { try await fleet.join("c", session) }
                #expect(error?.code == .tooManyGroups)
                fleet.leave("a", session)
                try await fleet.join("c", session)
            }
        }
    }

    @Test func sessionsThatAreOverAreInNoGroup() async throws {
        let fleet = openFleet()
        try await withFleet(fleet) { server, endpoint in
            var session: SessionServerEnd?
            try await withSessionClient(to: endpoint, configuration: .named("a")) { _ in
                session = try await server.session(of: "a")
                try await fleet.join("g", #require(session))
            }
            let ended = try #require(session)
            try await until { fleet.groups(of: ended).isEmpty && !fleet.hasGroups }
            let error = await #expect(throws: FleetError.self) { try await fleet.join("g", ended) }
            #expect(error?.code == .sessionEnded)
            try await until { !fleet.hasGroups }
        }
    }

    @Test func sessionsAreInTheGroupsThatAllAreIn() async throws {
        var configuration = FleetConfiguration()
        configuration.automaticGroups = { ["all", "named/\($0.name)"] }
        let fleet = Fleet(configuration: configuration)
        try await withFleet(fleet) { server, endpoint in
            try await withSessionClient(to: endpoint, configuration: .named("a")) { client in
                let news = Sample_Room_V1_RoomClient(client).news.withMetadata
                let session = try await server.session(of: "a")
                try await until { fleet.groups(of: session).count == 2 }
                // A group that is being joined is listed. It gets pushes as soon as the engine knows of it.
                try await until { fleet.memberCount(of: "named/a") == 1 }
                try await fleet.say(["to all"], in: "all")
                try await fleet.say(["to a"], in: "named/a")
                #expect(try await Set(news.texts(2)) == ["1:to all", "1:to a"])
            }
        }
    }

    /// Its reader takes nothing, so its pushes have no more credit.
    @Test func aSlowMemberHoldsUpNobodyAndIsToldWhatItMisses() async throws {
        let fleet = openFleet(history: 10, slowByteCount: 0)
        try await withFleet(fleet) { server, endpoint in
            try await withSessionClient(to: endpoint, configuration: .named("slow")) { slow in
                try await withSessionClient(to: endpoint, configuration: .named("quick")) { quick in
                    let slowNews = Sample_Room_V1_RoomClient(slow).news.withMetadata
                    let quickNews = Sample_Room_V1_RoomClient(quick).news.withMetadata
                    for name in ["slow", "quick"] { try await fleet.join("g", server.session(of: name)) }
                    let text = String(repeating: "x", count: 10_000)
                    // Twice the credit of the slow member.
                    let count = 60
                    var taken = 0
                    for number in 1...count {
                        try await fleet.say([text])
                        taken += try await quickNews.texts(1) == ["\(number):\(text)"] ? 1 : 0
                    }
                    #expect(taken == count)
                    var last = 0
                    var gapCount = 0
                    for try await push in slowNews {
                        let mark = try #require(push.group)
                        if Int(mark.position.offset) != last + 1 {
                            #expect(mark.followsGap)
                            gapCount += 1
                        } else {
                            #expect(!mark.followsGap)
                        }
                        last = Int(mark.position.offset)
                        if last == count { break }
                    }
                    #expect(gapCount == 1)
                }
            }
        }
    }

    /// More than the history has.
    @Test func aBurstReachesTheMembersWhole() async throws {
        let fleet = openFleet()
        try await withFleet(fleet) { server, endpoint in
            try await withSessionClient(to: endpoint, configuration: .named("a")) { client in
                let news = Sample_Room_V1_RoomClient(client).news
                try await fleet.join("g", server.session(of: "a"))
                async let pushing: Void = fleet.say((1...5_000).map { "\($0)" })
                var number = 0
                for try await item in news {
                    number += 1
                    try #require(item.text == "\(number)")
                    if number == 5_000 { break }
                }
                try await pushing
            }
        }
    }

    @Test func serversThatShareAnEngineServeTheSameGroups() async throws {
        let engine = MemoryFleetEngine()
        let fleets = [openFleet(engine), openFleet(engine)]
        try await withFleet(fleets[0]) { _, first in
            try await withFleet(fleets[1]) { _, second in
                try await withSessionClient(to: first) { a in
                    try await withSessionClient(to: second) { b in
                        let news = [Sample_Room_V1_RoomClient(a).news, Sample_Room_V1_RoomClient(b).news]
                        try await a.withGroup("g") { _ in
                            try await b.withGroup("g") { _ in
                                try await fleets[0].say(["one"])
                                try await fleets[1].say(["two"])
                                for news in news {
                                    #expect(try await news.withMetadata.texts(2) == ["1:one", "2:two"])
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    /// The server forgets the session of a client that is away. Another server has its groups.
    @Test func aClientWhoseSessionIsLostGetsWhatItHasMissed() async throws {
        let engine = MemoryFleetEngine()
        let endpoint = Endpoint.tcp(host: "127.0.0.1", port: try TestPort.next())
        let told = NIOLockedValueBox<[String]>([])
        try await withSessionClient(to: endpoint) { client in
            let news = Sample_Room_V1_RoomClient(client).news.withMetadata
            let first = openFleet(engine)
            let joined = Latch<Void>()
            try await withThrowingTaskGroup { tasks in
                tasks.addTask {
                    try await client.withGroup("g") { group in
                        joined.open(with: ())
                        for try await join in group.joins { told.withLockedValue { $0.append("\(join.isRecovered)") } }
                    }
                }
                var configuration = SessionServerConfiguration()
                configuration.server.shutdownGracePeriod = .zero
                try await withSessionServer(listeningOn: endpoint, configuration: configuration, services: [first]) {
                    _ in
                    try await joined.wait()
                    try await first.say(["one"])
                    #expect(try await news.texts(1) == ["1:one"])
                }
                let second = openFleet(engine)
                try await second.say(["two", "three"])
                try await withSessionServer(listeningOn: endpoint, services: [second]) { _ in
                    client.reconnect()
                    #expect(try await news.texts(2) == ["2r:two", "3r:three"])
                    try await second.say(["four"])
                    #expect(try await news.texts(1) == ["4:four"])
                    tasks.cancelAll()
                    _ = await tasks.nextResult()
                }
            }
        }
        #expect(told.withLockedValue { $0 } == ["true", "true"])
    }

    /// The server makes the session a member when it begins, and the client later asks for missed messages.
    @Test func aClientIsToldWhatItMissesWhereTheServerHasItJoinFirst() async throws {
        let engine = MemoryFleetEngine()
        let endpoint = Endpoint.tcp(host: "127.0.0.1", port: try TestPort.next())
        let members = NIOLockedValueBox<[Fleet]>([])
        defer { members.withLockedValue { $0 = [] } }
        let joinCount = NIOLockedValueBox(0)
        var configuration = FleetConfiguration()
        configuration.automaticGroups = { _ in ["g"] }
        // After the server has made it a member.
        configuration.mayJoin = { _, session in
            try await until { members.withLockedValue { $0.contains { $0.groups(of: session) == ["g"] } } }
        }
        let makeFleet = { [configuration] in
            let fleet = Fleet(engine: engine, configuration: configuration)
            members.withLockedValue { $0.append(fleet) }
            return fleet
        }
        let first = makeFleet()
        var server = SessionServerConfiguration()
        server.server.shutdownGracePeriod = .zero
        try await withSessionClient(to: endpoint) { client in
            let news = Sample_Room_V1_RoomClient(client).news.withMetadata
            try await withThrowingTaskGroup { tasks in
                tasks.addTask {
                    try await client.withGroup("g") { group in
                        for try await _ in group.joins { joinCount.withLockedValue { $0 += 1 } }
                    }
                }
                try await withSessionServer(listeningOn: endpoint, configuration: server, services: [first]) { _ in
                    try await until { joinCount.withLockedValue { $0 } == 1 }
                    try await first.say(["one"])
                    #expect(try await news.texts(1) == ["1:one"])
                }
                // No other fleet could have taken the session.
                let second = makeFleet()
                try await second.say(["two"])
                try await withSessionServer(listeningOn: endpoint, services: [second]) { _ in
                    client.reconnect()
                    try await until { joinCount.withLockedValue { $0 } == 2 }
                    try await second.say(["three", "four"])
                    #expect(try await news.texts(2) == ["3g:three", "4:four"])
                    tasks.cancelAll()
                    _ = await tasks.nextResult()
                }
            }
        }
    }

    @Test func messagesKeepTheirDelivery() async throws {
        let clock = ManualClock()
        let fleet = Fleet(
            engine: MemoryFleetEngine(clock: clock),
            nodeName: nil,
            configuration: FleetConfiguration(),
            logger: Logger(label: "test"),
            clock: clock
        )
        try await fleet.say(["old"], delivery: .expiring(after: .seconds(1)))
        clock.advance(by: .seconds(2))
        try await fleet.say(["once"], delivery: .atMostOnce)
        try await fleet.say(["kept"], delivery: .expiring(after: .seconds(100)))
        try await fleet.push(Pushes.news, .with { $0.text = "with" }, to: "g", metadata: ["a": "b"])
        try await withFleet(fleet) { server, endpoint in
            try await withSessionClient(to: endpoint, configuration: .named("a")) { client in
                let news = Sample_Room_V1_RoomClient(client).news.withMetadata
                try await fleet.join("g", server.session(of: "a"), from: .earliest)
                var pushes = news.makeAsyncIterator()
                #expect(try await pushes.next()?.message.text == "kept")
                let last = try #require(try await pushes.next())
                #expect(last.metadata["a"] == "b")
                #expect(last.message.text == "with")
            }
        }
    }

    @Test func interceptorsSeePushesToGroups() async throws {
        struct Shouting: SessionServerInterceptor {
            func intercept(
                _ call: SessionCall,
                session: SessionServerEnd,
                next: @escaping @Sendable (SessionCall) async throws -> SessionReply
            ) async throws -> SessionReply {
                try await next(call)
            }

            func interceptServerPush(
                _ push: SessionCall,
                session: SessionServerEnd,
                next: @escaping @Sendable (SessionCall) async throws(SessionError) -> Void
            ) async throws(SessionError) {
                var push = push
                push.metadata["volume"] = "loud"
                try await next(push)
            }
        }
        let fleet = openFleet()
        try await withSessionServer(listeningOn: anyPort, services: [fleet], interceptors: [Shouting()]) { server in
            try await withSessionClient(to: server.boundEndpoints[0], configuration: .named("a")) { client in
                let news = Sample_Room_V1_RoomClient(client).news.withMetadata
                try await fleet.join("g", server.session(of: "a"))
                try await fleet.say(["one", "two"])
                var pushes = news.makeAsyncIterator()
                for text in ["one", "two"] {
                    let push = try #require(try await pushes.next())
                    #expect(push.message.text == text)
                    #expect(push.metadata["volume"] == "loud")
                }
            }
        }
    }

    /// Interceptors wait, so that no push is accepted at once. Pushes without a connection are lost, for example on a
    /// busy machine.
    @Test func pushesAtMostOnceReachTheMembersOfAServerWithInterceptors() async throws {
        let fleet = openFleet()
        let interceptors = [SessionLoggingInterceptor(logger: Logger(label: "test"))]
        try await withSessionServer(listeningOn: anyPort, services: [fleet], interceptors: interceptors) { server in
            try await withSessionClient(to: server.boundEndpoints[0], configuration: .named("a")) { client in
                let news = Sample_Room_V1_RoomClient(client).news.withMetadata
                try await fleet.join("g", server.session(of: "a"))
                let hasCome = Latch<Void>()
                async let first = news.texts(1).first
                async let pushing: Void = {
                    while hasCome.value == nil {
                        try await fleet.say(["once"], delivery: .atMostOnce)
                        await Task.yield()
                    }
                }()
                let text = try await first
                hasCome.open(with: ())
                try await pushing
                #expect(text?.hasSuffix(":once") == true)
            }
        }
    }

    // MARK: Members that come and go

    /// A member that leaves while it is behind waits for credit that never comes.
    @Test func nothingIsLeftOfAMemberThatLeftBehindAndEnded() async throws {
        let fleet = openFleet()
        try await withFleet(fleet) { server, endpoint in
            try await withSessionClient(to: endpoint, configuration: .named("slow")) { client in
                _ = Sample_Room_V1_RoomClient(client).news
                let session = try await server.session(of: "slow")
                try await fleet.join("g", session)
                for _ in 1...60 { try await fleet.say([String(repeating: "x", count: 10_000)]) }
                fleet.leave("g", session)
                #expect(fleet.groups(of: session).isEmpty)
                #expect(fleet.hasGroups)
            }
            try await until { !fleet.hasGroups }
        }
    }

    /// After the second membership begins, it gets nothing of the first one.
    @Test func aSlowMemberThatLeavesCanJoinAgain() async throws {
        let fleet = openFleet()
        try await withFleet(fleet) { server, endpoint in
            try await withSessionClient(to: endpoint, configuration: .named("slow")) { client in
                let news = Sample_Room_V1_RoomClient(client).news.withMetadata
                let session = try await server.session(of: "slow")
                try await fleet.join("g", session)
                for _ in 1...60 { try await fleet.say([String(repeating: "x", count: 10_000)]) }
                fleet.leave("g", session)
                try await fleet.join("g", session)
                try await fleet.say(["new"])
                var offsets: [UInt64] = []
                for try await push in news {
                    try offsets.append(#require(push.group).position.offset)
                    if push.message.text == "new" { break }
                }
                #expect(offsets == offsets.sorted())
                #expect(Set(offsets).count == offsets.count)
                #expect(offsets.last == 61)
                #expect(fleet.memberCount(of: "g") == 1)
            }
        }
    }

    @Test func joinsAndLeavesOfManyTasksLeaveNothing() async throws {
        let fleet = openFleet()
        try await withFleet(fleet) { server, endpoint in
            try await withSessionClient(to: endpoint, configuration: .named("a")) { _ in
                let session = try await server.session(of: "a")
                try await withThrowingDiscardingTaskGroup { tasks in
                    for number in 0..<200 {
                        tasks.addTask {
                            let task = Task { try await fleet.join("g\(number % 3)", session, from: .earliest) }
                            if number % 5 == 0 { task.cancel() }
                            _ = await task.result
                            if number % 2 == 0 { fleet.leave("g\(number % 3)", session) }
                        }
                    }
                }
                for number in 0..<3 { fleet.leave("g\(number)", session) }
                try await until { !fleet.hasGroups }
                #expect(fleet.groups(of: session).isEmpty)
            }
        }
    }

    @Test func aClientIsInAGroupOnce() async throws {
        let fleet = openFleet()
        try await withFleet(fleet) { _, endpoint in
            try await withSessionClient(to: endpoint) { session in
                let news = Sample_Room_V1_RoomClient(session).news.withMetadata
                let error = try await session.withGroup("g") { _ in
                    await #expect(throws: FleetError.self) { try await session.withGroup("g") { _ in } }
                }
                #expect(error?.code == .alreadyJoined)
                // It has left, and may join again any number of times.
                for number in 1...20 {
                    let texts = try await session.texts(from: .now, 1, news, pushing: ["\(number)"], by: fleet)
                    #expect(texts.texts == ["\(number):\(number)"])
                }
            }
        }
    }

    @Test func namesThatLookAlikeAreTwoGroups() async throws {
        let fleet = openFleet()
        try await withFleet(fleet) { server, endpoint in
            try await withSessionClient(to: endpoint, configuration: .named("a")) { client in
                let news = Sample_Room_V1_RoomClient(client).news.withMetadata
                try await fleet.join("caf\u{E9}", server.session(of: "a"))
                try await fleet.say(["other"], in: "cafe\u{301}")
                try await fleet.say(["mine"], in: "caf\u{E9}")
                #expect(try await news.texts(1) == ["1:mine"])
            }
        }
    }

    @Test func aFleetRunsUntilAGracefulShutdown() async throws {
        try await testGracefulShutdown { trigger in
            let fleet = openFleet()
            async let running: Void = fleet.run()
            trigger.triggerGracefulShutdown()
            try await running
        }
    }
}
