import Lifeline
import LifelineCore
import LifelineTestSupport
import Testing

@Suite struct SessionRegistryTests {
    typealias Registry = SessionRegistry<Int>

    private func registry(
        limit: Int = 100,
        perIdentity: Int = 100,
        perAddress: Int = .max,
        drainSpread: Duration = .seconds(5),
        seed: UInt64 = 1
    ) -> Registry {
        var configuration = SessionRegistryConfiguration()
        configuration.maximumSessionCount = limit
        configuration.maximumCountPerIdentity = perIdentity
        configuration.maximumCountPerAddress = perAddress
        configuration.drainSpread = drainSpread
        return Registry(configuration, seed: seed)
    }

    /// Returns the result of a hello. A new session gets the number of its connection.
    @discardableResult
    private func hello(
        _ registry: inout Registry,
        _ session: SessionCredentials? = nil,
        name: String = "",
        attempt: UInt64? = nil,
        of origin: SessionOrigin = SessionOrigin(),
        over connection: UInt64,
        found: SessionFinding? = nil,
        now: MonotonicTime = MonotonicTime(nanoseconds: 0)
    ) -> String {
        let hello = ClientOpening.test(session, attempt: attempt ?? connection)
        let action = registry.receivedHello(
            hello,
            name: name,
            of: origin,
            over: connection,
            found: found,
            now: now,
            fresh: .test(connection),
            makeSession: { _ in Int(connection) }
        )
        switch action {
        case .create(let credentials, let session):
            #expect(credentials == .test(UInt64(session)) && registry[credentials.id] == session)
            return "create \(session)"
        case .resume(let credentials, let session):
            #expect(credentials == .test(UInt64(session)))
            return "resume \(session)"
        case .refuse(let goodbye):
            #expect(!goodbye.message.isEmpty)
            return "refuse \(goodbye.code.map { "\($0)" } ?? "?")"
        case .openStore: return "open the store"
        case .endFirst(let session): return "end \(session) first"
        case .seek(let claim):
            #expect(claim.credentials == session)
            return "seek"
        case .adopt(let credentials, let session):
            #expect(credentials == hello.credentials && registry[credentials.id] == session)
            return "adopt \(session)"
        }
    }

    private func movingRegistry(hasStore: Bool = false) -> Registry {
        var configuration = SessionRegistryConfiguration()
        (configuration.movesSessions, configuration.hasStore) = (true, hasStore)
        return Registry(configuration, seed: 1)
    }

    @Test func anUnknownSessionIsSoughtElsewhere() {
        var registry = movingRegistry()
        #expect(hello(&registry, over: 1) == "create 1", "it names no session")
        #expect(hello(&registry, .test(9), over: 2) == "seek")
        #expect(hello(&registry, .test(9), over: 3) == "refuse draining", "it is being sought")
        #expect(hello(&registry, .test(9), over: 2, found: .nothing) == "create 2")
        registry.soughtFor(3, .test(.test(9), attempt: 3))
        #expect(hello(&registry, .test(9), over: 4) == "refuse draining", "the other connection has sought nothing")
        registry.soughtFor(2, .test(.test(9), attempt: 2))
        #expect(hello(&registry, .test(9), over: 5) == "seek")
        #expect(hello(&registry, .test(9), over: 5, found: .stale) == "refuse replaced")
        #expect(hello(&registry, .test(9), over: 5, found: .notNow) == "refuse draining")
        #expect(hello(&registry, .test(9), over: 5, found: .snapshot(.empty)) == "adopt 5")
        #expect(hello(&registry, .test(9), attempt: 5, over: 6) == "refuse replaced", "as of a session of its own")
        #expect(registry.claim(of: id(9))?.attempt == 5)
    }

    /// No other server has the session any more.
    @Test func aSessionThatWasFoundIsTakenByAServerThatGoesAway() {
        var registry = movingRegistry()
        #expect(hello(&registry, .test(9), over: 1) == "seek")
        _ = registry.drain(until: MonotonicTime(nanoseconds: 1), othersContinue: false, now: .ms(0))
        #expect(hello(&registry, .test(9), over: 1, found: .snapshot(.empty)) == "adopt 1")
        #expect(hello(&registry, .test(8), over: 2) == "refuse draining", "it seeks none any more")
    }

    @Test func aSessionGoesToItsClientAlone() {
        var registry = movingRegistry()
        #expect(hello(&registry, of: SessionOrigin(subject: "anna"), over: 1) == "create 1")
        func handOver(_ credentials: SessionCredentials, attempt: UInt64, subject: String? = "anna") -> String {
            let claim = SessionClaim(credentials: credentials, attempt: attempt, subject: subject)
            return switch registry.handOver(claim) {
            case .session(let session): "session \(session)"
            case .unknown: "unknown"
            case .stale: "stale"
            }
        }
        #expect(handOver(.test(1), attempt: 2) == "session 1")
        #expect(handOver(.test(1), attempt: 1) == "stale")
        #expect(handOver(.test(1), attempt: 2, subject: "berta") == "unknown")
        #expect(handOver(.test(1), attempt: 2, subject: nil) == "unknown")
        #expect(handOver(.test(2), attempt: 2) == "unknown")
        let stolen = SessionCredentials(id: id(1), token: SessionToken(8, 8))
        #expect(handOver(stolen, attempt: 2) == "unknown")
    }

    @Test func aSessionWithAStoreStaysWithIt() {
        var registry = movingRegistry(hasStore: true)
        #expect(helloWithStore(&registry, .test(9), over: 1) == "open the store", "it is sought nowhere")
        #expect(helloWithStore(&registry, .test(9), storeIsOpen: true, over: 1) == "create 1")
        #expect(registry.claim(of: id(1)) == nil)
    }

    @discardableResult
    private func helloWithStore(
        _ registry: inout Registry,
        _ session: SessionCredentials? = nil,
        storeIsOpen: Bool = false,
        over connection: UInt64,
        now: MonotonicTime = MonotonicTime(nanoseconds: 0)
    ) -> String {
        var hello = ClientOpening.test(session, attempt: connection)
        hello.store = StoreOpening(id: SessionStoreID(SessionID(7, 7)), floor: 0)
        let action = registry.receivedHello(
            hello,
            name: "",
            over: connection,
            storeIsOpen: storeIsOpen,
            now: now,
            fresh: .test(connection),
            makeSession: { _ in Int(connection) }
        )
        return switch action {
        case .create(_, let session): "create \(session)"
        case .resume(_, let session): "resume \(session)"
        case .refuse(let goodbye): "refuse \(goodbye.code.map { "\($0)" } ?? "?")"
        case .openStore: "open the store"
        case .endFirst(let session): "end \(session) first"
        case .seek: "seek"
        case .adopt(_, let session): "adopt \(session)"
        }
    }

    @Test func aStoreHasOneSessionAtATime() {
        var configuration = SessionRegistryConfiguration()
        configuration.hasStore = true
        var registry = Registry(configuration, seed: 1)
        let store = SessionStoreID(SessionID(7, 7))
        #expect(helloWithStore(&registry, over: 1) == "open the store")
        #expect(helloWithStore(&registry, over: 2) == "refuse draining", "the first is about to begin a session")
        #expect(helloWithStore(&registry, storeIsOpen: true, over: 1) == "create 1")
        #expect(helloWithStore(&registry, .test(1), over: 3) == "resume 1")
        // The client was started again, and does not know its session.
        #expect(helloWithStore(&registry, over: 4) == "end 1 first")
        registry.ended(id(1))
        #expect(helloWithStore(&registry, over: 4) == "end 1 first", "a handler of it still runs")
        #expect(helloWithStore(&registry, over: 6) == "refuse draining", "another one waits for that")
        registry.nothingIsLeft(of: id(1), store)
        #expect(helloWithStore(&registry, over: 4) == "open the store")
        // Opening it fails.
        var hello = ClientOpening.test(nil, attempt: 4)
        hello.store = StoreOpening(id: store, floor: 0)
        registry.storeNotOpened(over: 4, hello)
        #expect(helloWithStore(&registry, over: 5) == "open the store")
        #expect(helloWithStore(&registry, storeIsOpen: true, over: 5) == "create 5")
    }

    @Test func aSessionGoesOnWithItsStoreOnly() {
        var configuration = SessionRegistryConfiguration()
        configuration.hasStore = true
        var registry = Registry(configuration, seed: 1)
        #expect(hello(&registry, over: 1) == "create 1")
        #expect(helloWithStore(&registry, .test(1), over: 2) == "open the store", "it began without a store")
        // A server without a store ignores the client's store.
        registry = self.registry()
        #expect(helloWithStore(&registry, over: 3) == "create 3")
        #expect(helloWithStore(&registry, over: 4) == "create 4")
    }

    private func id(_ number: UInt64) -> SessionID { SessionCredentials.test(number).id }

    @Test func aHelloBeginsASessionOrGoesOnWithIt() {
        var registry = registry()
        #expect(hello(&registry, over: 1) == "create 1")
        #expect(hello(&registry, .test(1), over: 2) == "resume 1", "the newer connection has it")
        #expect(registry.disconnected(1, of: id(1), now: .ms(0)) == nil, "it was replaced")
        #expect(registry.nextDeadline == nil)
        #expect(registry.disconnected(2, of: id(1), now: .ms(0)) == 1)
        #expect(registry.disconnected(2, of: id(1), now: .ms(0)) == nil)
        #expect(hello(&registry, .test(1), over: 3) == "resume 1" && registry.count == 1)
    }

    @Test func anOvertakenHelloChangesNothing() {
        var registry = registry()
        #expect(hello(&registry, name: "a", attempt: 1, over: 1) == "create 1")
        #expect(hello(&registry, .test(1), name: "a", attempt: 3, over: 2) == "resume 1")
        for attempt in UInt64(1)...3 {
            #expect(hello(&registry, .test(1), name: "b", attempt: attempt, over: 3 + attempt) == "refuse replaced")
        }
        #expect(registry[name: "a"]?.session == 1 && registry[name: "b"] == nil)
        // A hello without an attempt names no session.
        #expect(hello(&registry, .test(1), name: "c", attempt: 0, over: 9) == "create 9")
        // The connection still has the session, and refused connections do not keep it from expiring.
        #expect(registry.disconnected(3, of: id(1), now: .ms(0)) == nil && registry.nextDeadline == nil)
        #expect(registry.disconnected(2, of: id(1), now: .ms(0)) == 1)
        #expect(hello(&registry, .test(1), attempt: 3, over: 7) == "refuse replaced")
        #expect(registry.timerFired(now: .ms(120_000)).map(\.session) == [1])
    }

    @Test func anUnknownSessionAndAWrongTokenLookTheSame() {
        var registry = registry(limit: 3)
        hello(&registry, over: 1)
        let wrong = SessionCredentials(id: id(1), token: SessionToken(9, 9))
        let unknown = SessionCredentials(id: id(9), token: .init(1, 2))
        #expect(hello(&registry, wrong, over: 2) == "create 2")
        #expect(hello(&registry, unknown, over: 3) == "create 3")
        #expect(registry.count == 3 && registry.disconnected(1, of: id(1), now: .ms(0)) == 1)
        #expect(hello(&registry, wrong, over: 4) == "refuse full")
        #expect(hello(&registry, unknown, over: 5) == "refuse full")
    }

    /// After a restart of the server, all clients connect at once. They are told when to come back, so that they arrive
    /// at the configured rate.
    @Test func aStormOfClientsIsLetInAtARate() throws {
        var configuration = SessionRegistryConfiguration()
        configuration.maximumOpeningRate = 10
        var registry = Registry(configuration, seed: 1)
        let began = MonotonicTime(nanoseconds: 0)
        // The time at which each client connects.
        var coming = (1...100).map { (client: UInt64($0), at: began) }
        var openings: [MonotonicTime] = []
        var attempt: UInt64 = 0
        while !coming.isEmpty {
            coming.sort { ($0.at, $0.client) < ($1.at, $1.client) }
            let (client, now) = coming.removeFirst()
            attempt += 1
            let action = registry.receivedHello(.test(), name: "", over: attempt, now: now, fresh: .test(attempt)) {
                _ in 1
            }
            switch action {
            case .create:
                openings.append(now)
            case .refuse(let goodbye):
                #expect(goodbye.code == .full)
                #expect(goodbye.pause > .zero)
                coming.append((client, now + goodbye.pause))
            default:
                Issue.record("Neither let in nor sent away.")
            }
        }
        #expect(openings.count == 100)
        // Those of the first second are admitted at once, and then ten a second.
        for second in 0...9 {
            let end = began + .seconds(second)
            let count = openings.count { $0 <= end }
            #expect(count <= 10 * (second + 1), "within \(second) s")
            #expect(count >= 10 * second - 1, "within \(second) s")
        }
        // Each client is sent away at most once.
        #expect(attempt <= 190)
    }

    /// Each client shortens longer pauses to a minute, so clients with longer pauses would all come at once.
    @Test func noClientIsToldToWaitForMoreThanAMinute() {
        var rate = OpeningRate(perSecond: 10)
        let now = MonotonicTime(nanoseconds: 0)
        let pauses = (0..<5_000).compactMap { _ in rate.admit(now: now) }
        #expect(pauses.count == 4_990)
        #expect(pauses.allSatisfy { $0 > .seconds(1) && $0 <= .seconds(60) })
        // They come back spread over that minute.
        for second in 2..<60 {
            let count = pauses.count { $0 > .seconds(second - 1) && $0 <= .seconds(second) }
            #expect(count >= 80 && count <= 100, "in second \(second): \(count)")
        }
    }

    @Test func versionsAreRefusedBeforeAnythingElse() {
        var registry = registry(limit: 0)
        var hello = ClientOpening.test()
        (hello.minimumVersion, hello.maximumVersion) = (2, 9)
        let action = registry.receivedHello(
            hello,
            name: "",
            over: 1,
            now: MonotonicTime(nanoseconds: 0),
            fresh: .test(1)
        ) { _ in 1 }
        guard case .refuse(let goodbye) = action else { return #expect(Bool(false)) }
        #expect(goodbye.code == .version && goodbye.pause == .zero && goodbye.message.contains("1 to 1"))
    }

    @Test func sessionsExpireTwoMinutesAfterTheirCut() {
        var registry = registry()
        for number in UInt64(1)...3 { hello(&registry, name: "\(number)", over: number) }
        registry.disconnected(2, of: id(2), now: .ms(0))
        registry.disconnected(1, of: id(1), now: .ms(10))
        #expect(registry.nextDeadline == .ms(120_000))
        #expect(registry.timerFired(now: .ms(119_999)).isEmpty)
        // The time counts from the last loss of the connection.
        #expect(hello(&registry, .test(2), over: 4) == "resume 2" && registry.nextDeadline == .ms(120_010))
        registry.disconnected(4, of: id(2), now: .ms(20))
        #expect(registry.timerFired(now: .ms(120_019)).map(\.session) == [1])
        #expect(registry[name: "1"] == nil && registry[id(1)] == nil && registry.count == 2)
        #expect(hello(&registry, .test(2), over: 5) == "resume 2", "the hello was first")
        #expect(registry.timerFired(now: .ms(1_000_000)).isEmpty && registry.nextDeadline == nil)
        for (number, connection) in [(UInt64(3), UInt64(3)), (2, 5)] {
            registry.disconnected(connection, of: id(number), now: .ms(0))
        }
        #expect(registry.timerFired(now: .ms(120_000)).map(\.session) == [3, 2] && registry.count == 0)
        #expect(hello(&registry, .test(2), over: 6) == "create 6")
    }

    @Test func endedSessionsAreGone() {
        var registry = registry()
        hello(&registry, name: "a", over: 1)
        registry.disconnected(1, of: id(1), now: .ms(0))
        #expect(registry.ended(id(1)) == 1 && registry.ended(id(1)) == nil)
        #expect(registry.nextDeadline == nil && registry.count == 0 && registry[name: "a"] == nil)
        #expect(keptPlaceCount(in: registry) == 0)
        #expect(registry.disconnected(1, of: id(1), now: .ms(0)) == nil && registry.nextDeadline == nil)
        #expect(hello(&registry, .test(1), over: 2) == "create 2")
    }

    @Test func deadlinesOfThoseThatCameBackAreLetGo() {
        var registry = registry()
        hello(&registry, over: 1)
        hello(&registry, over: 2)
        registry.disconnected(1, of: id(1), now: .ms(0))
        for connection in UInt64(3)...1000 {
            registry.disconnected(connection - 1, of: id(2), now: .ms(Int64(connection)))
            hello(&registry, .test(2), over: connection)
        }
        #expect(keptPlaceCount(in: registry) <= 35 && registry.nextDeadline == .ms(120_000))
    }

    @Test func theNewerOfTwoSessionsHasTheName() {
        var registry = registry()
        hello(&registry, name: "a", over: 1)
        hello(&registry, name: "a", over: 2)
        #expect(registry[name: "a"]?.session == 2 && registry[name: "a"]?.id == id(2) && registry[id(1)] == 1)
        // The name is removed for this session, not for the other.
        registry.ended(id(1))
        #expect(registry[name: "a"]?.session == 2)
        #expect(hello(&registry, .test(2), name: "b", over: 3) == "resume 2")
        #expect(registry[name: "a"] == nil && registry[name: "b"]?.session == 2)
        #expect(hello(&registry, .test(2), name: "", over: 4) == "resume 2")
        #expect(registry[name: "b"] == nil && registry[name: ""] == nil)
        // A session that is resumed takes its name back.
        hello(&registry, name: "c", over: 5)
        hello(&registry, name: "c", over: 6)
        hello(&registry, .test(5), name: "c", over: 7)
        #expect(registry[name: "c"]?.session == 5)
        registry.ended(id(5))
        #expect(registry[name: "c"] == nil && registry.count == 2)
    }

    @Test func aFullRegistryTakesOnlyThoseThatComeBack() {
        var registry = registry(limit: 2)
        hello(&registry, over: 1)
        hello(&registry, over: 2)
        registry.disconnected(1, of: id(1), now: .ms(0))
        #expect(hello(&registry, over: 3) == "refuse full", "nobody who is away loses a session")
        #expect(hello(&registry, .test(1), over: 4) == "resume 1")
        registry.ended(id(2))
        #expect(hello(&registry, over: 5) == "create 5")
    }

    @Test func sessionsThatWereNeverUsedMakeWay() {
        var registry = registry(limit: 4)
        for connection in UInt64(1)...4 { hello(&registry, name: "\(connection)", over: connection) }
        for connection in UInt64(1)...3 {
            registry.disconnected(connection, of: id(connection), wasUsed: connection == 1, now: .ms(0))
        }
        // One session is resumed; it and an unused one with a connection do not make way.
        #expect(hello(&registry, .test(2), name: "2", over: 5) == "resume 2" && registry.takeForgotten().isEmpty)
        #expect(hello(&registry, name: "3", over: 6) == "create 6", "the third makes way")
        #expect(registry.takeForgotten().map(\.session) == [3] && registry.takeForgotten().isEmpty)
        #expect(registry[id(3)] == nil && registry[name: "3"]?.session == 6 && registry.count == 4)
        #expect(hello(&registry, .test(3), over: 7) == "refuse full", "it is unknown, and nobody else makes way")
        registry.disconnected(5, of: id(2), wasUsed: false, now: .ms(1))
        registry.disconnected(6, of: id(6), wasUsed: false, now: .ms(2))
        #expect(hello(&registry, over: 8) == "create 8" && registry.takeForgotten().map(\.session) == [2])
        // The others expire as usual.
        #expect(registry.timerFired(now: .ms(120_001)).map(\.session) == [1])
        #expect(registry.timerFired(now: .ms(120_002)).map(\.session) == [6] && registry.count == 2)
    }

    @Test func aFloodOfSessionsTakesNoPlaceFromAnybody() {
        var registry = registry(limit: 100)
        var forgottenCount = 0
        for connection in UInt64(1)...50 {
            hello(&registry, over: connection)
            registry.disconnected(connection, of: id(connection), now: .ms(0))
        }
        for connection in UInt64(51)...10_000 {
            #expect(hello(&registry, over: connection) == "create \(connection)")
            registry.disconnected(connection, of: id(connection), wasUsed: false, now: .ms(0))
            forgottenCount += registry.takeForgotten().count
            #expect(registry.count <= 100 && keptPlaceCount(in: registry) <= 233)
        }
        #expect(forgottenCount == 9900)
        for session in UInt64(1)...50 { #expect(registry[id(session)] == Int(session)) }
    }

    // MARK: Origins

    @Test func thoseWhoLeaveTheMostBehindMakeWay() {
        var registry = registry(limit: 6)
        func from(_ network: String) -> SessionOrigin { SessionOrigin(network: network) }
        for connection in UInt64(1)...4 { hello(&registry, of: from("a"), over: connection) }
        for connection in UInt64(5)...6 { hello(&registry, of: from("b"), over: connection) }
        for connection in [UInt64(3), 1, 2] { registry.disconnected(connection, of: id(connection), now: .ms(0)) }
        registry.disconnected(5, of: id(5), now: .ms(0))
        // The third session was left first; one of b's is kept.
        #expect(hello(&registry, of: from("c"), over: 7) == "create 7")
        #expect(registry.takeForgotten().map(\.session) == [3])
        // A resumed session does not count as left behind.
        #expect(hello(&registry, .test(1), of: from("elsewhere"), over: 8) == "resume 1")
        #expect(hello(&registry, of: from("c"), over: 9) == "refuse full", "nobody has left two more than c")
        #expect(hello(&registry, of: from("b"), over: 10) == "create 10", "its own makes way")
        #expect(registry.takeForgotten().map(\.session) == [5])
        #expect(hello(&registry, over: 11) == "refuse full" && registry.count == 6)
    }

    @Test func aFloodOfUsedSessionsKeepsNobodyOut() {
        var registry = registry(limit: 100)
        // These clients are away for a moment, each with its own address.
        for connection in UInt64(1)...20 {
            hello(&registry, of: SessionOrigin(network: "honest \(connection)"), over: connection)
            registry.disconnected(connection, of: id(connection), now: .ms(0))
        }
        for connection in UInt64(21)...5_000 {
            #expect(hello(&registry, of: SessionOrigin(network: "flood"), over: connection) == "create \(connection)")
            registry.disconnected(connection, of: id(connection), now: .ms(0))
            _ = registry.takeForgotten()
            #expect(registry.count <= 100)
        }
        #expect(keptPlaceCount(in: registry) <= 300)
        for connection in UInt64(5_001)...5_050 {
            let origin = SessionOrigin(network: "new \(connection)")
            #expect(hello(&registry, of: origin, over: connection) == "create \(connection)")
        }
        for session in UInt64(1)...20 { #expect(registry[id(session)] == Int(session), "none of theirs made way") }
    }

    @Test func anIdentityHasSoManySessions() {
        var registry = registry(perIdentity: 2)
        func anna(from network: String) -> SessionOrigin { SessionOrigin(subject: "anna", network: network) }
        #expect(hello(&registry, of: anna(from: "a"), over: 1) == "create 1")
        #expect(hello(&registry, of: anna(from: "b"), over: 2) == "create 2")
        #expect(hello(&registry, of: anna(from: "c"), over: 3) == "refuse full")
        #expect(hello(&registry, of: SessionOrigin(subject: "berta", network: "a"), over: 4) == "create 4")
        #expect(hello(&registry, over: 5) == "create 5", "nobody in particular has no limit")
        registry.disconnected(2, of: id(2), now: .ms(0))
        #expect(hello(&registry, of: anna(from: "c"), over: 6) == "create 6")
        #expect(registry.takeForgotten().map(\.session) == [2])
        registry.ended(id(1))
        #expect(hello(&registry, of: anna(from: "c"), over: 7) == "create 7")
    }

    @Test func anAddressHasSoManySessions() {
        var registry = registry(perAddress: 2)
        let origin = SessionOrigin(network: "a")
        #expect(hello(&registry, of: origin, over: 1) == "create 1")
        #expect(hello(&registry, of: origin, over: 2) == "create 2")
        let action = registry.receivedHello(
            .test(),
            name: "",
            of: origin,
            over: 3,
            now: MonotonicTime(nanoseconds: 0),
            fresh: .test(3)
        ) { _ in 3 }
        guard case .refuse(let goodbye) = action else { return #expect(Bool(false)) }
        #expect(goodbye.code == .full && goodbye.message.contains("address") && goodbye.pause > .zero)
        #expect(hello(&registry, .test(1), of: SessionOrigin(network: "b"), over: 4) == "resume 1")
        #expect(hello(&registry, of: origin, over: 5) == "refuse full", "it counts where it began")
        registry.disconnected(4, of: id(1), now: .ms(0))
        #expect(hello(&registry, of: origin, over: 6) == "create 6" && registry[id(1)] == nil)
    }

    @Test func addressesOfOneNetworkAreOne() {
        func network(_ host: String) -> String? {
            SessionOrigin(subject: nil, address: .tcp(host: host, port: 1)).network
        }
        #expect(network("192.0.2.1") == network("::ffff:192.0.2.1") && network("192.0.2.1") != network("192.0.2.2"))
        #expect(network("2001:db8::1") == network("2001:db8:0:0:ffff::2"))
        #expect(network("2001:db8::1") != network("2001:db8:0:1::1"))
        #expect(network("fe80::1%eth0") == network("fe80::2%eth1"))
        #expect(network("localhost") == "localhost")
        #expect(SessionOrigin(subject: nil, address: .unix(path: "/a")).network == nil)
    }

    @Test func pausesOfThoseThatAreSentAwayAreSpread() {
        var registry = registry(limit: 0, seed: 3)
        var pauses: [Duration] = []
        for connection in UInt64(1)...1000 {
            let action = registry.receivedHello(
                .test(),
                name: "",
                over: connection,
                now: MonotonicTime(nanoseconds: 0),
                fresh: .test(1)
            ) { _ in 1 }
            if case .refuse(let goodbye) = action { pauses.append(goodbye.pause) }
        }
        #expect(pauses.count == 1000 && pauses.allSatisfy { $0 >= .zero && $0 <= .seconds(30) })
        // They are spread evenly: 250 in each quarter, within four times √(250 × ¾).
        for quarter in 0..<4 {
            let range = Duration.milliseconds(7500 * quarter)..<Duration.milliseconds(7500 * (quarter + 1))
            #expect(abs(pauses.filter(range.contains).count - 250) < 55)
        }
    }

    @Test func drainingSendsAwayAndLetsFinish() {
        var registry = registry(drainSpread: .seconds(10), seed: 5)
        for connection in UInt64(1)...100 { hello(&registry, over: connection) }
        registry.disconnected(7, of: id(7), now: .ms(0))
        let drained = registry.drain(until: .ms(5_000), othersContinue: false, now: .ms(1_000))
        // A session without a connection tells its client when the client comes back.
        #expect(drained.map(\.session) == (1...100).filter { $0 != 7 } + [7] && registry.isDraining)
        let (pauses, half) = (drained.map(\.drain.pause), Duration.seconds(5))
        #expect(pauses.allSatisfy { $0 >= .zero && $0 <= .seconds(10) })
        #expect(pauses.filter { $0 < half }.count > 30 && pauses.filter { $0 > half }.count > 30)
        #expect(drained.allSatisfy { $0.drain.deadline == .ms(4_000) }, "after three quarters of the time")
        #expect(drained.allSatisfy { $0.drain.start == nil })
        #expect(hello(&registry, over: 101) == "refuse draining")
        #expect(hello(&registry, .test(7), over: 102) == "resume 7", "for what was begun")
        // Sessions without a connection do not expire any more: all sessions end with the server.
        registry.disconnected(8, of: id(8), now: .ms(0))
        #expect(registry.nextDeadline == nil)
        #expect(registry.timerFired(now: .ms(1_000_000)).isEmpty && registry.ids.count == 100)
        // The deadline has passed, so all are told at once.
        let late = registry.drain(until: .ms(0), othersContinue: false, now: .ms(9))
        #expect(late.allSatisfy { $0.drain.deadline == .ms(9) })
    }

    @Test func sessionsThatCanMoveAreServedUntilTheirTurn() {
        var configuration = SessionRegistryConfiguration()
        (configuration.hasStore, configuration.drainSpread) = (true, .seconds(10))
        var registry = Registry(configuration, seed: 5)
        helloWithStore(&registry, over: 1)
        helloWithStore(&registry, storeIsOpen: true, over: 1)
        for connection in UInt64(2)...101 { hello(&registry, over: connection) }
        let drains = registry.drain(until: .ms(9_000), othersContinue: true, now: .ms(1_000)).map(\.drain)
        // A session with a store does not move.
        #expect(drains[0].start == nil && drains[0].pause > .zero)
        let starts = drains.dropFirst().compactMap(\.start)
        #expect(starts.count == 100 && drains.dropFirst().allSatisfy { $0.pause == .zero })
        #expect(starts.allSatisfy { $0 >= .ms(1_000) && $0 <= .ms(7_000) }, "no later than the deadline")
        #expect(starts.filter { $0 < .ms(4_000) }.count > 30 && starts.filter { $0 > .ms(4_000) }.count > 30)
    }

    // MARK: Admission

    @Test func aSessionGoesOnOnlyForItsSubject() {
        var registry = registry()
        let (anna, berta) = (SessionOrigin(subject: "anna"), SessionOrigin(subject: "berta"))
        hello(&registry, of: anna, over: 1)
        hello(&registry, over: 2)
        #expect(hello(&registry, .test(1), of: berta, over: 3) == "create 3", "as if it were unknown")
        #expect(
            hello(&registry, .test(1), over: 4) == "create 4"
                && hello(&registry, .test(2), of: anna, over: 5) == "create 5"
        )
        #expect(registry.disconnected(1, of: id(1), now: .ms(0)) == 1, "it has its connection yet")
        #expect(hello(&registry, .test(1), of: anna, over: 6) == "resume 1")
    }

    @Test func goodbyesToRefusedClients() throws {
        struct Down: Error {}
        var registry = registry(drainSpread: .milliseconds(300))
        #expect(registry.helloDeadline(now: .ms(5)) == .ms(10_005))
        func goodbye(_ error: any Error, isCancelled: Bool = false) -> SessionGoodbye? {
            registry.goodbye(for: SessionHelloFailure(error, isCancelled: isCancelled))
        }
        #expect(goodbye(SessionHelloFailure.ended) == nil)
        #expect(goodbye(SessionHelloFailure.violation("why")) == SessionGoodbye(.violation, "why"))
        for code in [SessionStatus.Code.unauthenticated, .permissionDenied] {
            #expect(goodbye(SessionStatus(code, "why")) == SessionGoodbye(.refused, "why"))
        }
        // The server ends.
        #expect(goodbye(CancellationError(), isCancelled: true) == nil)
        // The server's own errors are not shown to clients.
        for error in [Down(), CancellationError(), SessionStatus(.unavailable, "why")] as [any Error] {
            let goodbye = try #require(goodbye(error))
            #expect(goodbye.code == .draining && !goodbye.message.contains("why"))
            #expect(goodbye.pause > .zero && goodbye.pause <= .milliseconds(300))
        }
        #expect(goodbye(Down(), isCancelled: true)?.code == .draining)
    }

    /// In any order of events, the registry agrees with a simple one that searches all sessions.
    @Test func itAgreesWithASimpleOne() {
        for seed in UInt64(1)...50 {
            var random = SplitMix64(seed: seed)
            func below(_ bound: Int) -> Int { Int(random.next() % UInt64(bound)) }
            struct Model {
                var name: String
                var connection: UInt64?
                var deadline: MonotonicTime?
            }
            var registry = registry(limit: 8, seed: seed)
            var model: [UInt64: Model] = [:]
            var (now, connection) = (MonotonicTime.ms(0), UInt64(0))
            for _ in 0..<1000 {
                switch below(6) {
                case 0, 1:
                    connection += 1
                    let known = below(3) == 0 ? model.keys.min() : model.keys.max()
                    let named = below(2) == 0 ? known : nil
                    let name = ["", "a", "b", "c"][below(4)]
                    let result = hello(&registry, named.map { .test($0) }, name: name, over: connection)
                    var number = connection
                    if let named {
                        #expect(result == "resume \(named)")
                        number = named
                    } else {
                        #expect(result == (model.count < 8 ? "create \(connection)" : "refuse full"))
                        if model.count == 8 { continue }
                    }
                    for other in model.keys where !name.isEmpty && model[other]?.name == name {
                        model[other]?.name = ""
                    }
                    model[number] = Model(name: name, connection: connection)
                case 2, 3:
                    guard let (number, session) = model.sorted(by: { $0.key < $1.key }).randomElement(using: &random),
                        let present = session.connection
                    else { continue }
                    let old = below(4) == 0
                    #expect(
                        registry.disconnected(old ? present + 1 : present, of: id(number), now: now)
                            == (old ? nil : Int(number))
                    )
                    if !old { model[number]?.connection = nil }
                    if !old { model[number]?.deadline = now + .seconds(120) }
                case 4:
                    guard let number = model.keys.sorted().randomElement(using: &random), below(3) == 0 else {
                        continue
                    }
                    #expect(registry.ended(id(number)) == Int(number))
                    model[number] = nil
                default:
                    now = now + .seconds(below(60))
                    let expired = registry.timerFired(now: now).map { UInt64($0.session) }
                    let due = model.filter { ($0.value.deadline ?? now + .seconds(1)) <= now }
                    #expect(Set(expired) == Set(due.keys) && expired.count == due.count)
                    for number in expired { model[number] = nil }
                }
                #expect(registry.count == model.count)
                #expect(registry.nextDeadline == model.values.compactMap(\.deadline).min())
                for name in ["a", "b", "c"] {
                    #expect(registry[name: name]?.session == model.first { $0.value.name == name }.map { Int($0.key) })
                }
                #expect(keptPlaceCount(in: registry) <= 2 * model.count + 33)
            }
        }
    }
}
