import Dispatch
import LifelineClientTestSupport
import LifelineCore
import LifelineRuntime
import LifelineTestSupport
import LifelineTransport
import Logging
import Testing

@testable import Lifeline

@Suite(.timeLimit(.minutes(1))) struct ServerLoopTests {
    /// The shutdown comes before the handler's task has begun.
    @Test func aConnectionAcceptedJustBeforeAShutdownHasTheGracePeriod() async throws {
        let configuration = ConnectionConfiguration()
        let log = TestLog()
        let listener = try await NIOTransport.shared.listen(
            on: anyPort,
            options: ListenerOptions(
                connection: configuration.transportOptions(
                    maximumFrameLength: configuration.maximumFrameLength,
                    hasHeartbeat: false,
                    metrics: TransportMetrics(role: "test")
                ),
                maximumConnections: 10,
                backlog: 10,
                logger: log.logger
            )
        ) {
            MessageReceiver(
                configuration: configuration,
                heartbeat: nil as HeartbeatMessages<TestMessage, TestMessage>?
            )
        }
        let peer = try await RawSocket.connect(toPort: #require(listener.boundEndpoint.port))
        let opened = try #require(try await listener.nextConnection())
        let lifecycle = ServerLifecycle(gracePeriod: .zero, clock: BootTimeClock())
        let loop = ServerLoop(
            listener: LastConnection(opened, of: listener.boundEndpoint),
            lifecycle: lifecycle,
            shutdownOrder: .handlersFirst,
            handlerExecutor: .eventLoop,
            logger: log.logger
        ) { opened in
            try await TestConnection(opened, configuration: configuration).closing { connection in
                for try await _ in connection.messages {}
                try await connection.send(TestMessage(number: 1))
            }
        }
        async let serving: Void = lifecycle.run {
            lifecycle.requestShutdown(gracePeriod: .seconds(3_600))
            return [listener]
        } serve: { _ in
            // The executor is serial: the handler's task begins when the loop waits.
            await withTaskExecutorPreference(SerialExecutor()) { await loop.run() }
        }
        #expect(try await peer.read() == TestMessage(number: 1).delimitedBytes)
        try peer.finish()
        try await serving
        #expect(!log.entries.contains { $0.level == .warning })
        await listener.close()
    }

    /// If handlers run on loops, a connection of the accepting loop goes to its handler without a switch of threads.
    @Test(arguments: [true, false]) func connectionsAreTakenWhereHandlersRun(areOnLoop: Bool) async throws {
        let executor = SerialExecutor()
        let listener = NoConnections(executor: executor)
        let lifecycle = ServerLifecycle(gracePeriod: .zero, clock: BootTimeClock())
        let loop = ServerLoop<Void>(
            listener: listener,
            lifecycle: lifecycle,
            shutdownOrder: .handlersFirst,
            handlerExecutor: areOnLoop ? .eventLoop : .globalPool,
            logger: TestLog().logger
        ) { _ in }
        lifecycle.requestShutdown(gracePeriod: .zero)
        await loop.run()
        #expect(listener.wasAskedOnExecutor.value == areOnLoop)
    }
}

/// Has no connection to hand out, and records the executor on which it was asked for one.
private final class NoConnections: TransportListener {
    let boundEndpoint = anyPort
    let executor: (any TaskExecutor)?
    let wasAskedOnExecutor = Latch<Bool>()
    private let serialExecutor: SerialExecutor

    init(executor: SerialExecutor) {
        self.executor = executor
        serialExecutor = executor
    }

    func nextConnection() async throws -> OpenedConnection<Void>? {
        wasAskedOnExecutor.open(with: serialExecutor.isCurrent)
        return nil
    }

    func releaseConnection() {}

    func stopAccepting() async {}

    func close() async {}
}

/// Hands out one last connection.
private final class LastConnection<Inbox: Sendable>: TransportListener {
    let boundEndpoint: Endpoint
    let executor: (any TaskExecutor)? = nil
    private let connections: AsyncStream<OpenedConnection<Inbox>>

    init(_ connection: OpenedConnection<Inbox>, of endpoint: Endpoint) {
        boundEndpoint = endpoint
        let (stream, continuation) = AsyncStream.makeStream(of: OpenedConnection<Inbox>.self)
        continuation.yield(connection)
        continuation.finish()
        connections = stream
    }

    func nextConnection() async throws -> OpenedConnection<Inbox>? {
        for await connection in connections { return connection }
        return nil
    }

    func releaseConnection() {}

    func stopAccepting() async {}

    func close() async {}
}

/// Runs tasks on one thread at a time, in the order in which they become ready.
private final class SerialExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "serial")
    private let key = DispatchSpecificKey<Bool>()

    init() { queue.setSpecific(key: key, value: true) }

    /// Whether the calling task runs here.
    var isCurrent: Bool { DispatchQueue.getSpecific(key: key) == true }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
