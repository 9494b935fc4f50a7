import LifelineClientTestSupport
import LifelineCore
import LifelineRuntime
import LifelineTestSupport
import NIOConcurrencyHelpers
import TestProtos
import Testing

@testable import Lifeline

/// Sessions that move from one server to another, through a depot in memory.
@Suite(.timeLimit(.minutes(1))) struct SessionMovingTests {
    private var echo: SessionMethod { .unary("t.T/Echo") { (message: TestMessage, _) in message } }

    /// Two servers with one depot.
    private func withServers(
        _ methods: SessionMethod...,
        depot: TestDepot = TestDepot(),
        _ body: (SessionServer, SessionServer, ManualClock) async throws -> Void
    ) async throws {
        try await withServer(methods, services: [depot]) { first, clock in
            depot.servers.withLockedValue { $0.append(first) }
            try await withServer(methods, services: [depot]) { second, _ in
                depot.servers.withLockedValue { $0.append(second) }
                try await body(first, second, clock)
            }
        }
    }

    @Test func aClientGoesOnAtAnotherServer() async throws {
        try await withServers(echo) { first, second, _ in
            let before = try await RawSessionClient.connect(to: first)
            let welcome = try await before.hello { $0.name = "anna" }.welcome
            try await before.ask("t.T/Echo", serial: 1)
            #expect(try await before.next().urgentResponse.serial == 1)
            let end = try #require(first.session(named: "anna"))
            try await end.push("t.T/News", TestMessage(number: 1))
            #expect(try await before.next().push.method == 1)
            // The client never acknowledges.
            let after = try await RawSessionClient.connect(to: second, methods: before.methods)
            let back = try await after.resume(welcome) { $0.name = "anna" }.welcome
            #expect(back.resumed)
            #expect((back.sessionID, back.token) == (welcome.sessionID, welcome.token))
            #expect((back.progress.processed, back.progress.received) == (2, 2))
            // Unacknowledged frames arrive again, in the order of the lanes.
            #expect(try await after.next().push.payload == TestMessage(number: 1).serializedBytes())
            #expect(try await after.next().urgentResponse.serial == 1)
            #expect(first.sessions.isEmpty)
            #expect(end.engine.endReason.map { SessionError($0).code } == .moved)
            // The session continues there.
            let moved = try #require(second.session(named: "anna"))
            #expect(moved.id == end.id)
            try await moved.push("t.T/News", TestMessage(number: 2))
            #expect(try await after.next().push.payload == TestMessage(number: 2).serializedBytes())
            try await after.ask("t.T/Echo", serial: 2)
            #expect(try await after.next().urgentResponse.serial == 2)
            #expect(await sessionError { try await end.push("t.T/News", TestMessage(number: 3)) }?.code == .moved)
        }
    }

    @Test func aServerThatGoesAwayLeavesItsSessionsForTheNext() async throws {
        let depot = TestDepot()
        var welcome = Lifeline_Session_V1_Welcome()
        try await withServer([echo], services: [depot]) { server, _ in
            let client = try await RawSessionClient.connect(to: server)
            welcome = try await client.hello().welcome
            try await server.sessions[0].push("t.T/News", TestMessage(number: 1))
            #expect(try await client.next().push.method == 1)
            await server.shutdown(gracePeriod: .zero)
            // Waiting frames are sent, and then the client is sent away.
            while try await client.next().goodbye.code != .draining {}
        }
        #expect(depot.count == 1)
        try await withServer([echo], services: [depot]) { server, _ in
            let client = try await RawSessionClient.connect(to: server)
            #expect(try await client.resume(welcome).welcome.resumed)
            #expect(try await client.next().push.method == 1)
            #expect(depot.count == 0)
        }
    }

    @Test func aHandlerThatGoesOnIsWaitedForAndThenCancelled() async throws {
        let (begun, ended) = (Event(), Event())
        let hang = SessionMethod.unary("t.T/Hang") { (message: TestMessage, _) async throws -> TestMessage in
            begun.signal()
            defer { ended.signal() }
            try await Event().wait()
            return message
        }
        try await withServers(echo, hang) { first, second, clock in
            let before = try await RawSessionClient.connect(to: first)
            let welcome = try await before.hello().welcome
            try await before.ask("t.T/Hang", serial: 1)
            try await begun.wait()
            let after = try await RawSessionClient.connect(to: second, methods: before.methods)
            async let back = after.resume(welcome)
            try await until { first.sessions.first?.engine.isMoving == true }
            clock.advance(by: .milliseconds(999))
            #expect(first.sessions.count == 1)
            clock.advance(by: .milliseconds(1))
            #expect(try await back.welcome.resumed)
            try await ended.wait()
            let response = try await after.next().urgentResponse
            #expect(response.serial == 1)
            #expect(response.status == SessionStatus.Code.unavailable.rawValue)
        }
    }

    @Test func aSessionWhoseHandlerIgnoresThatStays() async throws {
        let (begun, go) = (Event(), Latch<Void>())
        let hang = SessionMethod.unary("t.T/Hang") { (message: TestMessage, _) async throws -> TestMessage in
            begun.signal()
            await go.waitUninterrupted()
            return message
        }
        try await withServers(echo, hang) { first, second, clock in
            let before = try await RawSessionClient.connect(to: first)
            let welcome = try await before.hello().welcome
            try await before.ask("t.T/Hang", serial: 1)
            try await begun.wait()
            let after = try await RawSessionClient.connect(to: second, methods: before.methods)
            async let answer = after.resume(welcome)
            try await until { first.sessions.first?.engine.isMoving == true }
            clock.advance(by: .seconds(4))
            #expect(try await answer.goodbye.code == .draining)
            // The session can continue here, or at the other server once the handler is done.
            let here = try await RawSessionClient.connect(to: first, methods: before.methods)
            #expect(try await here.resume(welcome, attempt: 3).welcome.resumed)
            go.open(with: ())
            #expect(try await here.next().urgentResponse.serial == 1)
            let there = try await RawSessionClient.connect(to: second, methods: before.methods)
            #expect(try await there.resume(welcome, attempt: 4).welcome.resumed)
        }
    }

    @Test func anOvertakenHelloGetsNothing() async throws {
        try await withServers(echo) { first, second, _ in
            let client = try await RawSessionClient.connect(to: first)
            let welcome = try await client.hello { $0.attempt = 5 }.welcome
            let late = try await RawSessionClient.connect(to: second)
            #expect(try await late.resume(welcome, attempt: 5).goodbye.code == .replaced)
            #expect(first.sessions.count == 1)
        }
    }

    @Test func pushesThatAreHandledSlowlyAreHandledOnce() async throws {
        let (handled, go) = (Notes<Int>(), Latch<Void>())
        let slow = SessionMethod.push("t.T/Slow") { (message: TestMessage, _) async throws in
            if handled.count == 0 { await go.waitUninterrupted() }
            handled.add(message.number ?? 0)
        }
        try await withServers(slow) { first, second, _ in
            let before = try await RawSessionClient.connect(to: first)
            let welcome = try await before.hello().welcome
            for number in 1...3 {
                try await before.push("t.T/Slow", TestMessage(number: number).serializedBytes())
            }
            try await until { first.sessions.first?.engine.statistics.receivedPushCount == 3 }
            let after = try await RawSessionClient.connect(to: second, methods: before.methods)
            async let back = after.resume(welcome)
            try await until { first.sessions.first?.engine.isMoving == true }
            go.open(with: ())
            let progress = try await back.welcome.progress
            #expect((progress.processed, progress.received) == (4, 4))
            #expect(handled.all == [1, 2, 3])
            try await after.push("t.T/Slow", TestMessage(number: 4).serializedBytes())
            try await until { handled.count == 4 }
        }
    }

    /// Clients that leave while the server shuts down, and clients that stay.
    @Test func everySessionIsLeftOnce() async throws {
        for round in 0..<10 {
            let depot = TestDepot()
            try await withServer([echo], services: [depot], configure: { $0.drainSpread = .zero }) { server, _ in
                var clients: [RawSessionClient] = []
                for number in 1...20 {
                    let client = try await RawSessionClient.connect(to: server)
                    _ = try await client.hello { $0.name = "\(number)" }
                    clients.append(client)
                }
                async let shutdown: Void = server.shutdown(gracePeriod: .zero)
                for client in clients.dropFirst(round) { try? client.socket.reset() }
                await shutdown
                #expect(server.sessions.isEmpty)
            }
            #expect(depot.count == 20)
            #expect(depot.parkCount == 20)
        }
    }

    /// The session is being moved. The client gets it a moment later, at either server.
    @Test func aClientThatComesBackMeanwhileIsToldToTryAgain() async throws {
        let (begun, go) = (Event(), Latch<Void>())
        let slow = SessionMethod.unary("t.T/Slow") { (message: TestMessage, _) async throws -> TestMessage in
            begun.signal()
            await go.waitUninterrupted()
            return message
        }
        try await withServers(slow) { first, second, _ in
            let before = try await RawSessionClient.connect(to: first)
            let welcome = try await before.hello().welcome
            try await before.ask("t.T/Slow", serial: 1)
            try await begun.wait()
            let there = try await RawSessionClient.connect(to: second, methods: before.methods)
            async let answer = there.resume(welcome)
            try await until { first.sessions.first?.engine.isMoving == true }
            let here = try await RawSessionClient.connect(to: first)
            #expect(try await here.resume(welcome, attempt: 3).goodbye.code == .draining)
            go.open(with: ())
            #expect(try await answer.welcome.resumed)
            // The session moves back to the first server.
            let back = try await RawSessionClient.connect(to: first, methods: before.methods)
            #expect(try await back.resume(welcome, attempt: 4).welcome.resumed)
            try await back.ask("t.T/Slow", serial: 2)
            while try await back.next().urgentResponse.serial != 2 {}
            #expect(first.sessions.count == 1)
            #expect(second.sessions.isEmpty)
        }
    }

    @Test func aSessionThatEndsMeanwhileDoesNotGo() async throws {
        let (begun, go) = (Event(), Latch<Void>())
        let slow = SessionMethod.unary("t.T/Slow") { (message: TestMessage, _) async throws -> TestMessage in
            begun.signal()
            await go.waitUninterrupted()
            return message
        }
        let depot = TestDepot()
        try await withServers(slow, depot: depot) { first, second, _ in
            let before = try await RawSessionClient.connect(to: first)
            let welcome = try await before.hello().welcome
            try await before.ask("t.T/Slow", serial: 1)
            try await begun.wait()
            let there = try await RawSessionClient.connect(to: second, methods: before.methods)
            async let answer = there.resume(welcome)
            try await until { first.sessions.first?.engine.isMoving == true }
            first.sessions[0].engine.end(.abandoned)
            go.open(with: ())
            #expect(try await answer.goodbye.code == .draining)
            #expect(depot.parkCount == 0)
            // No server has the session any more.
            let again = try await RawSessionClient.connect(to: second)
            #expect(try await !again.resume(welcome, attempt: 3).welcome.resumed)
        }
    }

    @Test func messagesOfASessionThatCannotMoveAreInDoubt() async throws {
        let depot = TestDepot()
        depot.isClosed.withLockedValue { $0 = true }
        let inDoubt = Notes<SessionDeliveryOutcome>()
        try await withServer(
            [echo],
            services: [depot],
            configure: { $0.whenInDoubt = { _, messages in for message in messages { inDoubt.add(message.outcome) } } }
        ) { server, _ in
            let client = try await RawSessionClient.connect(to: server)
            _ = try await client.hello()
            try await server.sessions[0].push("t.T/News", TestMessage(number: 1))
            #expect(try await client.next().push.method == 1)
            try client.socket.finish()
            try await until { server.sessions[0].engine.connection == nil }
            try await server.sessions[0].push("t.T/News", TestMessage(number: 2))
            await server.shutdown(gracePeriod: .zero)
        }
        #expect(inDoubt.all == [.inDoubt, .inDoubt])
    }
}

/// Keeps the sessions of a test's servers.
private final class TestDepot: SessionDepot {
    let methods: [SessionMethod] = []
    let isShared = true
    /// The servers that are asked for sessions that are not in the depot.
    let servers = NIOLockedValueBox<[SessionServer]>([])
    let isClosed = NIOLockedValueBox(false)
    private let parked = NIOLockedValueBox<[SessionID: (SessionClaim, SessionSnapshot)]>([:])
    private let parks = Notes<SessionID>()

    var parkCount: Int { parks.count }
    var count: Int { parked.withLockedValue { $0.count } }

    func begin(_ session: SessionServerEnd, _ claim: SessionClaim) async {}

    func find(_ claim: SessionClaim) async -> SessionFinding {
        for server in servers.withLockedValue({ $0 }) {
            switch await server.handOver(claim) {
            case .parked, .unknown: break
            case .stale: return .stale
            case .busy: return .notNow
            }
        }
        return parked.withLockedValue { parked in
            guard let (_, snapshot) = parked.removeValue(forKey: claim.credentials.id) else { return .nothing }
            return .snapshot(snapshot)
        }
    }

    func park(_ session: SessionServerEnd, _ claim: SessionClaim, _ snapshot: SessionSnapshot) async -> Bool {
        if isClosed.withLockedValue({ $0 }) { return false }
        parked.withLockedValue { $0[claim.credentials.id] = (claim, snapshot) }
        parks.add(claim.credentials.id)
        return true
    }
}
