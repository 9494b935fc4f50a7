public import Lifeline
public import LifelineCore
public import LifelineMessages
internal import LifelineRuntime
internal import LifelineTransport
package import Logging
public import ServiceLifecycle

/// A client for servers of an older framing, over a connection that stays alive, like `Client`: a `FixedHeaderClient`
/// or a `HeadLineClient`.
///
/// **Requests** end once each: with the answer, or with a `RequestError`. Any number of tasks may make them at once. An
/// answer that comes after its request has ended is dropped and counted.
///
/// **Back-pressure.** Answers go straight to the waiting tasks, and never wait behind pushes; the number of requests
/// bounds them. Pushes wait in `pushes`, up to `ConnectionConfiguration.inboundWaterMarks`. When more wait, the
/// connection is not read until some are taken: no push is lost, but no answers come meanwhile. A program that does not
/// use pushes sets `RequestConfiguration.takesPushes` to false.
public final class RequestClient<Received: DelimitedMessage, Sent: DelimitedMessage>: Service {
    let client: Client<Received, Sent>
    let exchange: RequestExchange<Received>

    /// Runs tasks on the event loop of the client's connections, as `Client.executor` does.
    public var executor: any TaskExecutor { client.executor }

    package init(
        _ framing: RequestFraming<Received, Sent>,
        to endpoint: Endpoint,
        configuration: ClientConfiguration,
        requests: RequestConfiguration,
        logger: Logger,
        environment: ClientEnvironment? = nil
    ) {
        let environment = environment ?? ClientEnvironment(endpoint: endpoint, configuration: configuration)
        exchange = RequestExchange(
            AnswerMatching(isOrdered: framing.answersInOrder),
            head: framing.head,
            configuration: requests,
            clock: environment.clock
        )
        // Without heartbeat messages, heartbeats that a server sends by itself would be pushes.
        var heartbeat = framing.heartbeat
        if !requests.sendsHeartbeats { heartbeat?.ping = nil }
        client = Client(
            to: endpoint,
            configuration: configuration,
            heartbeat: heartbeat,
            intake: exchange,
            framing: framing.framing.messageFraming(observer: exchange),
            logger: logger,
            environment: environment
        )
    }

    /// Makes a request, and waits for the answer.
    ///
    /// - Parameters:
    ///   - answerType: the type of the answer, if answers have types; nil for any.
    ///   - reserved: a serial that the request must not have.
    ///   - message: makes the request with a serial.
    nonisolated(nonsending) func ask(
        answerType: String? = nil,
        timeout: Duration,
        avoiding reserved: UInt32? = nil,
        _ message: @escaping @Sendable (_ serial: UInt32) -> Sent
    ) async throws(RequestError) -> Received {
        try await exchange.request(answerType: answerType, timeout: timeout, avoiding: reserved) {
            [client] serial, timeout in
            try await client.sendReturningConnection(message(serial), policy: .wait(timeout: timeout)).connection
        }
    }

    /// The messages that answer no request, over all connections, in order. Only one task at a time may iterate.
    public var pushes: ClientMessages<Received> { client.messages }

    /// The counts of requests, answers and pushes so far.
    public var statistics: RequestStatistics { exchange.statistics }

    /// The endpoint that the client connects to.
    public var endpoint: Endpoint { client.endpoint }

    /// The state of the connection.
    public var state: ConnectionState { client.state }

    /// Every step of the connection, for any number of subscribers. Each subscriber begins with the newest step.
    public var events: ClientEvents { client.events }

    /// The last 100 steps, the oldest first.
    public var history: [ClientEvent] { client.history }

    /// Connects, and keeps connected, as `Client.run()` does. When it returns, all remaining requests have failed.
    public func run() async throws {
        try client.start()
        try await exchange.run { try await client.runToEnd() }
    }

    /// Makes a new connection at once, as `Client.reconnect()` does.
    public func reconnect() { client.reconnect() }

    /// Closes the client, as `Client.close()` does. Requests that wait for their answers fail with `connectionLost`.
    public func close() async { await client.close() }

    /// Runs the client, and `body` with it.
    nonisolated(nonsending) func run<Result>(
        with body: nonisolated(nonsending) (RequestClient) async throws -> Result
    ) async throws -> Result {
        async let running: Void = run()
        let result = try await body(self)
        await client.closeInOrder()
        try await running
        return result
    }
}

/// The rules of a framing for answers to requests.
package struct RequestFraming<Received: DelimitedMessage, Sent: DelimitedMessage>: Sendable {
    let framing: OlderFraming
    /// Whether answers come in the order of the requests; if not, they carry serials.
    let answersInOrder: Bool
    let heartbeat: HeartbeatMessages<Received, Sent>?
    /// Returns a message's facts about the request that it answers.
    let head: @Sendable (Received) -> AnswerHead
}
