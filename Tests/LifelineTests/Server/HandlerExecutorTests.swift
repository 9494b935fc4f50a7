import Lifeline
import LifelineClientTestSupport
import LifelineTestSupport
import LifelineWellKnownTypes
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import Testing

/// The executors of handlers, and of tasks that prefer a connection's executor.
@Suite(.timeLimit(.minutes(1))) struct HandlerExecutorTests {
    @Test(arguments: [(HandlerExecutor.eventLoop, 1), (.globalPool, 0)])
    func handlersOfConnections(executor: HandlerExecutor, loopCount: Int) async throws {
        var configuration = ServerConfiguration()
        configuration.handlerExecutor = executor
        try await withTestServer(configuration: configuration) { connection in
            for try await _ in connection.messages { try await connection.send(TestMessage(number: loopThreadCount())) }
        } _: { server in
            try await withTestConnection(to: server.boundEndpoint) { connection in
                for _ in 0..<3 {
                    let reply = try await roundTrip(TestMessage(number: 7), on: connection)
                    #expect(reply?.number == loopCount)
                }
            }
        }
    }

    @Test(arguments: [(HandlerExecutor.eventLoop, 1), (.globalPool, 0)])
    func handlersOfSessions(executor: HandlerExecutor, loopCount: Int) async throws {
        var configuration = SessionServerConfiguration()
        configuration.server.handlerExecutor = executor
        let pushes = NIOLockedValueBox<[Int]>([])
        let service = TestService(
            .unary("t.T/Ask") { (_: TestMessage, _) in TestMessage(number: loopThreadCount()) },
            .push("t.T/Tell") { (_: TestMessage, _) in pushes.withLockedValue { $0.append(loopThreadCount()) } }
        )
        try await withSessionServer(listeningOn: anyPort, configuration: configuration, services: [service]) { server in
            try await withSessionClient(to: server.boundEndpoints[0]) { client in
                for _ in 0..<3 {
                    let reply = try await client.call("t.T/Ask", TestMessage(), returning: TestMessage.self)
                    #expect(reply.number == loopCount)
                    try await client.push("t.T/Tell", TestMessage(), until: .processed)
                }
            }
        }
        #expect(pushes.withLockedValue { $0 } == [loopCount, loopCount, loopCount])
    }

    @Test func tasksOfClients() async throws {
        try await withTestServer { connection in
            for try await message in connection.messages { try await connection.send(message) }
        } _: { server in
            try await withTestConnection(to: server.boundEndpoint) { connection in
                try await withTaskExecutorPreference(connection.executor) {
                    #expect(loopThreadCount() == 1)
                    _ = try await roundTrip(TestMessage(), on: connection)
                    #expect(loopThreadCount() == 1)
                }
            }
        }
        let service = TestService(.unary("t.T/Echo") { (message: TestMessage, _) in message })
        try await withSessionServer(listeningOn: anyPort, services: [service]) { server in
            try await withSessionClient(to: server.boundEndpoints[0]) { client in
                try await withTaskExecutorPreference(client.executor) {
                    _ = try await client.call("t.T/Echo", TestMessage(), returning: TestMessage.self)
                    #expect(loopThreadCount() == 1)
                }
            }
        }
    }
}

/// The number of event loops on the current thread: 1 or 0.
private func loopThreadCount() -> Int {
    MultiThreadedEventLoopGroup.singleton.makeIterator().count { $0.inEventLoop }
}
