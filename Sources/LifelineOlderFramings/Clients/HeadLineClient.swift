public import Lifeline
public import LifelineCore
internal import LifelineMessages
public import Logging
public import ServiceLifecycle

/// A client that asks servers of the framing with head lines, over a connection that stays alive, as `Client` does.
///
///     try await withHeadLineClient(to: endpoint) { client in
///         let reply = try await client.request(type: "echo", content: question)
///         for try await push in client.pushes { print(push.type, push.content) }
///     }
///
/// **Requests** are answered in the order in which they were written. Answers say nothing of what they answer but their
/// type: what comes in is the first request's answer when it is of the type that this expects, and a push otherwise. A
/// request that timed out or was cancelled after it was written keeps its place until its answer comes, which is dropped
/// and counted. A server that leaves a request unanswered for good therefore holds up those behind it; `reconnect()`
/// helps. What expects no answer is for `notify`.
///
/// Back-pressure is as in `FixedHeaderClient`.
public final class HeadLineClient: Service {
    let base: RequestClient<HeadLineMessage, HeadLineRequest, OrderMatching>

    /// Runs tasks on the event loop of the client's connections, as `Client.executor` does.
    public var executor: any TaskExecutor { base.client.executor }

    /// Makes a client that does nothing until it is run. Deadlines are looked at from then on.
    public convenience init(
        to endpoint: Endpoint,
        configuration: ClientConfiguration = ClientConfiguration(),
        requests: RequestConfiguration = RequestConfiguration(),
        logger: Logger = Logger(label: "lifeline.client")
    ) {
        let environment = ClientEnvironment(endpoint: endpoint, configuration: configuration)
        self.init(
            to: endpoint,
            configuration: configuration,
            requests: requests,
            logger: logger,
            environment: environment
        )
    }

    package init(
        to endpoint: Endpoint,
        configuration: ClientConfiguration,
        requests: RequestConfiguration,
        logger: Logger,
        environment: ClientEnvironment
    ) {
        base = RequestClient(
            OrderMatching(),
            .headLine,
            to: endpoint,
            configuration: configuration,
            requests: requests,
            heartbeat: nil,
            logger: logger,
            environment: environment
        )
    }

    /// Asks, and waits for the answer.
    ///
    /// Without a connection it waits for one, until its deadline. Cancelling the task gives the request up.
    ///
    /// - Parameters:
    ///   - type: what is asked for.
    ///   - answerType: the type of the answer. Default: nil, the request's own.
    ///   - timeout: how long it may take, from now on. Default: 30 s. Values below 0 count as 0, those over 365 days as
    ///     365 days.
    /// - Throws: `RequestError` `timedOut`, `cancelled`, `connectionLost`, `tooManyInFlight` or `notSent`.
    public nonisolated(nonsending) func request(
        type: String,
        content: [UInt8] = [],
        answerType: String? = nil,
        timeout: Duration = .seconds(30)
    ) async throws(RequestError) -> HeadLineMessage {
        let message = HeadLineMessage(type: type, content: content)
        return try await ask(message, answerType: answerType ?? type, timeout: timeout)
    }

    /// Asks, and takes whatever comes next for the answer: for servers that answer with types one cannot foresee, and push
    /// nothing.
    ///
    /// - Throws: as `request(type:content:answerType:timeout:)`.
    public nonisolated(nonsending) func requestAnything(
        type: String,
        content: [UInt8] = [],
        timeout: Duration = .seconds(30)
    ) async throws(RequestError) -> HeadLineMessage {
        try await ask(HeadLineMessage(type: type, content: content), answerType: nil, timeout: timeout)
    }

    private nonisolated(nonsending) func ask(
        _ message: HeadLineMessage,
        answerType: String?,
        timeout: Duration
    ) async throws(RequestError) -> HeadLineMessage {
        try await base.request(answerKind: answerType, timeout: timeout) { HeadLineRequest(message, tag: $0) }
    }

    /// Tells the server something, without an answer.
    ///
    /// - Throws: what `Client.send` throws.
    @discardableResult
    public nonisolated(nonsending) func notify(
        type: String,
        content: [UInt8] = [],
        policy: SendPolicy = .wait()
    ) async throws -> SendOutcome {
        try await base.client.send(
            HeadLineRequest(HeadLineMessage(type: type, content: content), tag: 0),
            policy: policy
        )
    }

    /// What nobody asked for, over all connections, in order. For one task at a time.
    public var pushes: ClientMessages<HeadLineMessage> { base.client.messages }

    /// What became of requests, answers and pushes so far.
    public var statistics: RequestStatistics { base.exchange.statistics }

    /// Where it connects to.
    public var endpoint: Endpoint { base.client.endpoint }

    /// Where the connection stands.
    public var state: ConnectionState { base.client.state }

    /// Every step of the connection, for any number of subscribers, each from the newest one on.
    public var events: ClientEvents { base.client.events }

    /// The last 100 steps, the oldest first.
    public var history: [ClientEvent] { base.client.history }

    /// Connects, and keeps connected, as `Client.run()` does. When it returns, the requests that are left have failed.
    public func run() async throws { try await base.run() }

    /// Makes a new connection at once, as `Client.reconnect()` does.
    public func reconnect() { base.client.reconnect() }

    /// Closes, as `Client.close()` does. Requests that wait for their answers fail with `connectionLost`.
    public func close() async { await base.client.close() }
}

/// Runs a client, and `body` with it, as `withClient` does.
///
/// - Throws: what `body` throws; `CancellationError`.
public nonisolated(nonsending) func withHeadLineClient<Result>(
    to endpoint: Endpoint,
    configuration: ClientConfiguration = ClientConfiguration(),
    requests: RequestConfiguration = RequestConfiguration(),
    logger: Logger = Logger(label: "lifeline.client"),
    _ body: nonisolated(nonsending) (HeadLineClient) async throws -> Result
) async throws -> Result {
    let client = HeadLineClient(to: endpoint, configuration: configuration, requests: requests, logger: logger)
    return try await client.base.run { try await body(client) }
}
