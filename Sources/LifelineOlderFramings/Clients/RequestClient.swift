internal import Lifeline
internal import LifelineCore
internal import LifelineMessages
internal import LifelineRuntime
internal import LifelineTransport
internal import Logging

/// What both framings' clients are: a `Client`, and an exchange that takes the answers out of what it receives.
struct RequestClient<
    Received: AnswerMessage & DelimitedMessage,
    Sent: DelimitedMessage & Sendable,
    Matching: AnswerMatching
>: Sendable where Matching.Head == Received.Head {
    let client: Client<Received, Sent>
    let exchange: RequestExchange<Received, Matching>

    init(
        _ matching: Matching,
        _ framing: OlderFraming,
        to endpoint: Endpoint,
        configuration: ClientConfiguration,
        requests: RequestConfiguration,
        heartbeat: HeartbeatMessages<Received, Sent>?,
        logger: Logger,
        environment: ClientEnvironment
    ) {
        exchange = RequestExchange(matching, configuration: requests, clock: environment.clock)
        client = Client(
            to: endpoint,
            configuration: configuration,
            heartbeat: heartbeat,
            intake: exchange,
            framing: framing.messageFraming(observer: exchange),
            logger: logger,
            environment: environment
        )
    }

    /// Asks, and waits for the answer.
    ///
    /// - Parameters:
    ///   - reserved: a serial that the request must not have.
    ///   - message: makes the request with a serial.
    nonisolated(nonsending) func request(
        answerKind: Matching.AnswerKind,
        timeout: Duration,
        avoiding reserved: UInt32? = nil,
        _ message: @escaping @Sendable (_ serial: UInt32) -> Sent
    ) async throws(RequestError) -> Received {
        try await exchange.request(answerKind: answerKind, timeout: timeout, avoiding: reserved) {
            [client] serial, timeout in
            try await client.sendReturningConnection(message(serial), policy: .wait(timeout: timeout)).connection
        }
    }

    func run() async throws {
        try client.start()
        try await exchange.run { try await client.runToEnd() }
    }

    /// Runs the client, and `body` with it.
    nonisolated(nonsending) func run<Result>(
        with body: nonisolated(nonsending) () async throws -> Result
    ) async throws -> Result {
        async let running: Void = run()
        let result = try await body()
        await client.closeInOrder()
        try await running
        return result
    }
}
