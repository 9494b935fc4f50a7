import LifelineClientTestSupport
import LifelineCore
import LifelineRuntime
import LifelineTestSupport
import LifelineTransport
import ServiceLifecycleTestKit
import Testing

@testable import Lifeline

/// A server as a service: `run()` serves until graceful shutdown or cancellation.
@Suite(.timeLimit(.minutes(1))) struct ServerServiceTests {
    private func makeServer(
        on endpoint: Endpoint = anyPort,
        handler: @escaping @Sendable (TestConnection) async throws -> Void = echo
    ) -> Server {
        Server(
            listeningOn: endpoint,
            logger: TestLog().logger,
            receiving: TestMessage.self,
            sending: TestMessage.self,
            handler: handler
        )
    }

    @Test func gracefulShutdownLetsHandlersFinish() async throws {
        let server = makeServer { connection in
            try await echo(connection)
            try await connection.send(TestMessage(number: 100))
        }
        try await testGracefulShutdown { trigger in
            async let running: Void = server.run()
            try await withTestConnection(to: server.boundEndpoint) { connection in
                _ = try await roundTrip(TestMessage(number: 1), on: connection)
                trigger.triggerGracefulShutdown()
                var messages = connection.messages.makeAsyncIterator()
                #expect(try await messages.next()?.number == 100, "the handler's last word")
                #expect(try await messages.next() == nil, "a regular end")
            }
            try await running
        }
        try await server.waitUntilShutDown()
    }

    @Test func gracefulShutdownEndsAServerOfFrames() async throws {
        let end = FrameEnd()
        let server = Server(listeningOn: anyPort, logger: TestLog().logger) { _ in TestHandler.echo(end: end) }
        try await testGracefulShutdown { trigger in
            async let running: Void = server.run()
            try await withTestConnection(to: server.boundEndpoint) { connection in
                _ = try await roundTrip(TestMessage(number: 1), on: connection)
                trigger.triggerGracefulShutdown()
                var messages = connection.messages.makeAsyncIterator()
                #expect(try await messages.next() == nil)
            }
            try await running
        }
        #expect(try await end.wait() == nil)
    }

    @Test func cancellationCutsConnections() async throws {
        let (ended, cancelled) = (Event(), Event())
        let server = makeServer { connection in
            for try await _ in connection.messages {}
            ended.signal()
            await #expect(throws: CancellationError.self) { try await Event().wait() }
            cancelled.signal()
        }
        let running = Task { try await server.run() }
        let peer = try await RawSocket.connect(toPort: #require(try await server.boundEndpoint.port))
        try peer.finish()
        try await ended.wait()
        running.cancel()
        await #expect(throws: CancellationError.self) { try await running.value }
        try await cancelled.wait()
        try await server.waitUntilShutDown()
    }

    @Test func runsOnce() async throws {
        let server = makeServer()
        let running = Task { try await server.run() }
        _ = try await server.boundEndpoint
        #expect(await connectionError { try await server.run() }?.code == .alreadyRun)
        await server.shutdown(gracePeriod: .seconds(60))
        try await running.value
        #expect(await connectionError { try await server.run() }?.code == .alreadyRun)
        #expect(try await server.boundEndpoint.port != 0, "it is known afterwards, too")
    }

    @Test func returnsAtOnceWhenShutDownBefore() async throws {
        let server = makeServer()
        await server.shutdown(gracePeriod: .seconds(60))
        try await server.waitUntilShutDown()
        #expect(await connectionError { try await server.boundEndpoint }?.code == .closedLocally)
        try await server.run()
    }

    @Test func saysWhyItDoesNotListen() async throws {
        try await withTestServer(handler: echo) { other in
            let server = makeServer(on: try await other.boundEndpoint)
            let error = await connectionError { try await server.run() }
            #expect(error != nil)
            #expect(await connectionError { try await server.boundEndpoint }?.message == error?.message)
            try await server.waitUntilShutDown()
        }
    }

    @Test func theEarliestEndOfAGracePeriodCounts() async throws {
        let clock = ManualClock()
        let lifecycle = ServerLifecycle(gracePeriod: .seconds(100), clock: clock)
        try await testGracefulShutdown { trigger in
            async let running: Void = lifecycle.run { () -> [any TransportListener<Void>] in
                []
            } serve: { _ in
                if await lifecycle.isShutdownRequested() { await lifecycle.waitForGracePeriod(unless: Latch()) }
            }
            #expect(try await lifecycle.boundEndpoints.isEmpty)
            trigger.triggerGracefulShutdown()
            let start = clock.now
            try await until { clock.nextWakeUp == start + .seconds(100) }
            lifecycle.requestShutdown(gracePeriod: .seconds(10))
            try await until { clock.nextWakeUp == start + .seconds(10) }
            lifecycle.requestShutdown(gracePeriod: .seconds(20))
            #expect(lifecycle.shutdownDeadline == start + .seconds(10))
            clock.advance(by: .seconds(10))
            try await running
        }
    }
}
