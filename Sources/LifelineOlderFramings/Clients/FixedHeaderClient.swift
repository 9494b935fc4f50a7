public import Lifeline
public import LifelineCore
internal import LifelineMessages
public import Logging

/// A client for servers of the framing with fixed headers.
///
///     try await withFixedHeaderClient(to: endpoint) { client in
///         let reply = try await client.request(url: 0x500, content: question)
///         for try await push in client.pushes { print(push.url, push.content) }
///     }
///
/// Requests may be answered in any order. The `url` of a push is its subject.
public typealias FixedHeaderClient = RequestClient<FixedHeaderResponse, FixedHeaderRequest>

extension RequestClient where Received == FixedHeaderResponse, Sent == FixedHeaderRequest {
    /// Makes a client that does nothing until it is run. Deadlines are checked from then on.
    public convenience init(
        to endpoint: Endpoint,
        configuration: ClientConfiguration = ClientConfiguration(),
        requests: RequestConfiguration = RequestConfiguration(),
        logger: Logger = Logger(label: "lifeline.client")
    ) {
        self.init(.fixedHeader, to: endpoint, configuration: configuration, requests: requests, logger: logger)
    }

    /// Makes a request, and waits for the answer.
    ///
    /// Without a connection it waits for one, until its deadline. Cancelling the task gives up the request.
    ///
    /// - Parameters:
    ///   - url: the subject of the request: any number but 1.
    ///   - timeout: the time that the request may take, from now on. Default: 30 s. Values below 0 count as 0, those
    ///     over 365 days as 365 days.
    /// - Throws: `RequestError` `timedOut`, `cancelled`, `connectionLost`, `tooManyInFlight` or `notSent`.
    public nonisolated(nonsending) func request(
        url: UInt32,
        content: [UInt8] = [],
        timeout: Duration = .seconds(30)
    ) async throws(RequestError) -> FixedHeaderResponse {
        if url == FixedHeader.heartbeatURL { throw .notSent(ConnectionError.refused(.heartbeatURL)) }
        return try await ask(timeout: timeout, avoiding: url) { serial in
            FixedHeaderRequest(url: url, serial: serial, content: content)
        }
    }

    /// Sends a notification to the server, without an answer.
    ///
    /// - Parameter number: the subject, 2 to 0x400.
    /// - Throws: as `Client.send` does; `messageRefused` for any other number.
    @discardableResult
    public nonisolated(nonsending) func notify(
        _ number: UInt32,
        content: [UInt8] = [],
        policy: SendPolicy = .wait()
    ) async throws -> SendOutcome {
        do throws(FramingError) { try FixedHeader.checkNotification(number) } catch {
            throw ConnectionError.refused(error)
        }
        return try await client.send(
            FixedHeaderRequest(url: number, serial: number, content: content),
            policy: policy
        )
    }
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
    return try await client.run(with: body)
}

extension RequestFraming where Received == FixedHeaderResponse, Sent == FixedHeaderRequest {
    package static var fixedHeader: RequestFraming {
        RequestFraming(framing: .fixedHeaderClient, answersInOrder: false, heartbeat: .fixedHeader) { message in
            let head = message.head
            return head.meaning == .response ? .answer(serial: head.serial) : .push
        }
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
