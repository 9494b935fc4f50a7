import LifelineClientTestSupport
import LifelineCore
import LifelineTestSupport
import NIOConcurrencyHelpers
import ServiceLifecycle
import ServiceLifecycleTestKit
import Testing

@testable import Lifeline

/// A server of sessions as a service: `run()` serves until graceful shutdown or cancellation.
@Suite(.timeLimit(.minutes(1))) struct SessionServerServiceTests {
    private func makeServer(_ methods: SessionMethod..., gracePeriod: Duration = .seconds(60)) throws -> SessionServer {
        var service = TestService(.unary("t.T/Echo") { (message: TestMessage, _) in message })
        service.methods += methods
        var configuration = SessionServerConfiguration()
        configuration.server.shutdownGracePeriod = gracePeriod
        return try SessionServer(
            listeningOn: .tcp(host: "127.0.0.1", port: 0),
            configuration: configuration,
            services: [service],
            logger: TestLog().logger
        )
    }

    private func withClient(of server: SessionServer, _ body: (SessionClient) async throws -> Void) async throws {
        var configuration = SessionClientConfiguration()
        configuration.closeTimeout = .zero
        try await withSessionClient(
            to: server.boundEndpoints[0],
            configuration: configuration,
            logger: TestLog().logger
        ) { client in
            _ = try await client.call("t.T/Echo", TestMessage(number: 1), returning: TestMessage.self)
            try await body(client)
        }
    }

    @Test func gracefulShutdownFinishesCalls() async throws {
        let (begun, goOn) = (Event(), Event())
        let server = try makeServer(
            .unary("t.T/Slow") { (message: TestMessage, _) in
                begun.signal()
                try await goOn.wait()
                return message
            }
        )
        let shutdown = Event()
        // The graceful shutdown is only for the server, because a client would react to it, too.
        let running = Task {
            try await testGracefulShutdown { trigger in
                async let _: Void = {
                    try await shutdown.wait()
                    trigger.triggerGracefulShutdown()
                }()
                try await server.run()
            }
        }
        try await withClient(of: server) { client in
            async let reply = client.call("t.T/Slow", TestMessage(number: 2), returning: TestMessage.self)
            try await begun.wait()
            shutdown.signal()
            // The server has announced its shutdown.
            try await until { server.isDraining }
            goOn.signal()
            #expect(try await reply.number == 2)
            // The client leaves without being closed.
            try await running.value
        }
        try await server.waitUntilShutDown()
        #expect(server.sessions.isEmpty)
    }

    @Test func cancellationEndsSessionsAtOnce() async throws {
        let (begun, cancelled) = (Event(), Event())
        let server = try makeServer(
            .unary("t.T/Hang") { (message: TestMessage, _) in
                begun.signal()
                await #expect(throws: CancellationError.self) { try await Event().wait() }
                cancelled.signal()
                return message
            }
        )
        let running = Task { try await server.run() }
        try await withClient(of: server) { client in
            let call = Task { try await client.call("t.T/Hang", TestMessage(number: 2), returning: TestMessage.self) }
            try await begun.wait()
            running.cancel()
            await #expect(throws: CancellationError.self) { try await running.value }
            try await cancelled.wait()
            #expect(server.sessions.isEmpty)
            call.cancel()
        }
        try await server.waitUntilShutDown()
    }

    @Test func aGroupEndsIt() async throws {
        let server = try makeServer()
        let group = ServiceGroup(services: [server], logger: TestLog().logger)
        async let running: Void = group.run()
        _ = try await server.boundEndpoints
        await group.triggerGracefulShutdown()
        try await running
        try await server.waitUntilShutDown()
    }

    @Test func aLaterShutdownMayBeShorter() async throws {
        let begun = Event()
        let server = try makeServer(
            .unary("t.T/Hang") { (message: TestMessage, _) in
                begun.signal()
                try await Event().wait()
                return message
            }
        )
        let running = Task { try await server.run() }
        try await withClient(of: server) { client in
            let call = Task { try await client.call("t.T/Hang", TestMessage(number: 2), returning: TestMessage.self) }
            try await begun.wait()
            let long = Task { await server.shutdown(gracePeriod: .seconds(10_000)) }
            try await until { server.isDraining }
            await server.shutdown(gracePeriod: .zero)
            await long.value
            try await running.value
            call.cancel()
        }
    }

    @Test func runsOnce() async throws {
        let server = try makeServer()
        let running = Task { try await server.run() }
        _ = try await server.boundEndpoints
        #expect(await connectionError { try await server.run() }?.code == .alreadyRun)
        await server.shutdown(gracePeriod: .seconds(60))
        try await running.value
        #expect(await connectionError { try await server.run() }?.code == .alreadyRun)
        #expect(try await server.boundEndpoints[0].port != 0, "it is known afterwards, too")
    }

    @Test func returnsAtOnceWhenShutDownBefore() async throws {
        let server = try makeServer()
        await server.shutdown(gracePeriod: .seconds(60))
        try await server.waitUntilShutDown()
        #expect(await connectionError { try await server.boundEndpoints }?.code == .closedLocally)
        try await server.run()
    }

    @Test func listensOnAllEndpointsOrNone() async throws {
        let other = try makeServer()
        let running = Task { try await other.run() }
        let taken = try await other.boundEndpoints[0]
        let server = try SessionServer(
            listeningOn: [.tcp(host: "127.0.0.1", port: 0), taken],
            services: [],
            logger: TestLog().logger
        )
        let error = await connectionError { try await server.run() }
        #expect(error != nil)
        #expect(await connectionError { try await server.boundEndpoints }?.message == error?.message)
        await other.shutdown(gracePeriod: .zero)
        try await running.value
    }
}

extension SessionServer {
    fileprivate var isDraining: Bool { state.withLockedValue { $0.registry.isDraining } }
}
