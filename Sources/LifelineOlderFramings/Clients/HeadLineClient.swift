public import Lifeline
public import LifelineCore
internal import LifelineMessages
public import Logging

/// A client for servers of the framing with head lines.
///
///     try await withHeadLineClient(to: endpoint) { client in
///         let reply = try await client.request(type: "echo", content: question)
///         for try await push in client.pushes { print(push.type, push.content) }
///     }
///
/// Requests are answered in the order in which they were written. Answers only carry their type, and no request number:
/// a received message is the first request's answer if it has the expected type, and a push otherwise. A request that
/// timed out or was cancelled after it was written keeps its place until its answer comes, which is dropped and
/// counted. So a server that never answers a request blocks the following ones; `reconnect()` helps. Use `notify` for
/// messages without an answer.
public typealias HeadLineClient = RequestClient<HeadLineMessage, HeadLineMessage>

extension RequestClient where Received == HeadLineMessage, Sent == HeadLineMessage {
    /// Makes a client that does nothing until it is run. Deadlines are checked from then on.
    public convenience init(
        to endpoint: Endpoint,
        configuration: ClientConfiguration = ClientConfiguration(),
        requests: RequestConfiguration = RequestConfiguration(),
        logger: Logger = Logger(label: "lifeline.client")
    ) {
        self.init(.headLine, to: endpoint, configuration: configuration, requests: requests, logger: logger)
    }

    /// Makes a request, and waits for the answer.
    ///
    /// Without a connection it waits for one, until its deadline. Cancelling the task gives up the request.
    ///
    /// - Parameters:
    ///   - type: the type of the request.
    ///   - answerType: the type of the answer. Default: nil, the request's type.
    ///   - timeout: the time that the request may take, from now on. Default: 30 s. Values below 0 count as 0, those
    ///     over 365 days as 365 days.
    /// - Throws: `RequestError` `timedOut`, `cancelled`, `connectionLost`, `tooManyInFlight` or `notSent`.
    public nonisolated(nonsending) func request(
        type: String,
        content: [UInt8] = [],
        answerType: String? = nil,
        timeout: Duration = .seconds(30)
    ) async throws(RequestError) -> HeadLineMessage {
        try await ask(answerType: answerType ?? type, timeout: timeout) {
            HeadLineMessage(type: type, content: content, tag: $0)
        }
    }

    /// Makes a request, and takes the next message of any type as the answer: for servers that answer with
    /// unpredictable types, and send no pushes.
    ///
    /// - Throws: as `request(type:content:answerType:timeout:)`.
    public nonisolated(nonsending) func requestAnything(
        type: String,
        content: [UInt8] = [],
        timeout: Duration = .seconds(30)
    ) async throws(RequestError) -> HeadLineMessage {
        try await ask(timeout: timeout) { HeadLineMessage(type: type, content: content, tag: $0) }
    }

    /// Sends a notification to the server, without an answer.
    ///
    /// - Throws: as `Client.send` does.
    @discardableResult
    public nonisolated(nonsending) func notify(
        type: String,
        content: [UInt8] = [],
        policy: SendPolicy = .wait()
    ) async throws -> SendOutcome {
        try await client.send(HeadLineMessage(type: type, content: content), policy: policy)
    }
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
    return try await client.run(with: body)
}

extension RequestFraming where Received == HeadLineMessage, Sent == HeadLineMessage {
    package static var headLine: RequestFraming {
        RequestFraming(framing: .headLine, answersInOrder: true, heartbeat: nil) { .ofType($0.type) }
    }
}
