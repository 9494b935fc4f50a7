public import Lifeline
public import LifelineCore
internal import LifelineMessages
public import Logging
public import ServiceLifecycle

/// A client that asks servers of the framing with fixed headers, over a connection that stays alive, as `Client` does.
///
///     try await withFixedHeaderClient(to: endpoint) { client in
///         let reply = try await client.request(url: 0x500, content: question)
///         for try await push in client.pushes { print(push.url, push.content) }
///     }
///
/// **Requests** end once each: with the answer, or with a `RequestError`. They may be made by any number of tasks at once,
/// and be answered in any order. An answer that comes after its request has ended is dropped and counted.
///
/// **Back-pressure.** Answers go straight to whoever asked, and never wait behind pushes that nobody has taken yet; the
/// number of requests bounds them. Pushes wait in `pushes`, up to `ConnectionConfiguration.inboundWaterMarks`; when more
/// wait, the connection is not read until some are taken, so that nothing is lost, and no answers come meanwhile. A program
/// without use for pushes says so in `RequestConfiguration.takesPushes`.
public final class FixedHeaderClient: Service {
    let base: RequestClient<FixedHeaderResponse, FixedHeaderRequest, SerialMatching>

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
            SerialMatching(),
            .fixedHeaderClient,
            to: endpoint,
            configuration: configuration,
            requests: requests,
            // Without it, what a server sends by itself as a heartbeat would be a push.
            heartbeat: .fixedHeader.asking(requests.sendsHeartbeats),
            logger: logger,
            environment: environment
        )
    }

    /// Asks, and waits for the answer.
    ///
    /// Without a connection it waits for one, until its deadline. Cancelling the task gives the request up.
    ///
    /// - Parameters:
    ///   - url: what is asked for: any number but 1.
    ///   - timeout: how long it may take, from now on. Default: 30 s. Values below 0 count as 0, those over 365 days as
    ///     365 days.
    /// - Throws: `RequestError` `timedOut`, `cancelled`, `connectionLost`, `tooManyInFlight` or `notSent`.
    public nonisolated(nonsending) func request(
        url: UInt32,
        content: [UInt8] = [],
        timeout: Duration = .seconds(30)
    ) async throws(RequestError) -> FixedHeaderResponse {
        if url == FixedHeader.heartbeatURL { throw .notSent(ConnectionError.refused(.heartbeatURL)) }
        return try await base.request(answerKind: (), timeout: timeout, avoiding: url) { serial in
            FixedHeaderRequest(url: url, serial: serial, content: content)
        }
    }

    /// Tells the server something, without an answer.
    ///
    /// - Parameter number: what it is about, 2 to 0x400.
    /// - Throws: what `Client.send` throws; `messageRefused` for any other number.
    @discardableResult
    public nonisolated(nonsending) func notify(
        _ number: UInt32,
        content: [UInt8] = [],
        policy: SendPolicy = .wait()
    ) async throws -> SendOutcome {
        do throws(FramingError) { try FixedHeader.checkNotification(number) } catch {
            throw ConnectionError.refused(error)
        }
        return try await base.client.send(
            FixedHeaderRequest(url: number, serial: number, content: content),
            policy: policy
        )
    }

    /// What nobody asked for, over all connections, in order; its `url` says what it is about. For one task at a time.
    public var pushes: ClientMessages<FixedHeaderResponse> { base.client.messages }

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
public nonisolated(nonsending) func withFixedHeaderClient<Result>(
    to endpoint: Endpoint,
    configuration: ClientConfiguration = ClientConfiguration(),
    requests: RequestConfiguration = RequestConfiguration(),
    logger: Logger = Logger(label: "lifeline.client"),
    _ body: nonisolated(nonsending) (FixedHeaderClient) async throws -> Result
) async throws -> Result {
    let client = FixedHeaderClient(to: endpoint, configuration: configuration, requests: requests, logger: logger)
    return try await client.base.run { try await body(client) }
}

extension HeartbeatMessages where Received == FixedHeaderResponse, Sent == FixedHeaderRequest {
    /// These, with or without pings.
    fileprivate func asking(_ asks: Bool) -> HeartbeatMessages {
        var messages = self
        if !asks { messages.ping = nil }
        return messages
    }
}

extension ConnectionError {
    fileprivate static func refused(_ cause: FramingError) -> ConnectionError {
        ConnectionError(code: .messageRefused, message: "It was not sent; the client goes on.", cause: cause)
    }
}

extension FramingError {
    fileprivate static var heartbeatURL: FramingError {
        .invalidHead("The url 1 is the heartbeat's. Ask for something else.")
    }
}
