public import LifelineMessages

/// The messages of a method that sends many, until its handler returns.
///
/// The call begins with an iteration's first `next()`, and each iteration is one of its own. Leaving the loop cancels it, and
/// with it the handler. A message counts as processed when the next one is asked for; while nobody asks, the server's messages
/// wait, and take up the window that all streams and pushes of the session share: see `SessionPushes`.
public struct SessionStream<Message: DelimitedMessage>: AsyncSequence, Sendable {
    /// What a stream can fail with: as calls do.
    public typealias Failure = SessionError

    let client: SessionClient
    let call: Result<SessionCall, SessionError>

    /// Makes a call of its own.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(client: client, call: call) }

    /// Hands out one message at a time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let client: SessionClient
        fileprivate let call: Result<SessionCall, SessionError>
        private var running: RunningStream?
        private var inHand: PushInHand?

        fileprivate init(client: SessionClient, call: Result<SessionCall, SessionError>) {
            self.client = client
            self.call = call
        }

        /// The next message; nil when the handler has returned.
        ///
        /// - Throws: `SessionError` as `SessionClient.call` does.
        public nonisolated(nonsending) mutating func next() async throws(SessionError) -> Message? {
            inHand = nil
            let stream: RunningStream
            if let running {
                stream = running
            } else {
                stream = RunningStream(try call.get(), over: client)
                running = stream
            }
            guard let item = try await stream.inbox.next() else { return nil }
            inHand = PushInHand(item.receipt, client.engine)
            return try client.decode(.push(item.push), as: Message.self)
        }

        /// The next message; nil when the handler has returned.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(SessionError) -> Message? {
            try await next()
        }
    }
}

/// A stream's call: cancelled when it is let go.
private final class RunningStream: Sendable {
    let inbox: SessionInbox
    private let engine: SessionEngine
    private let task: Task<Void, Never>

    init(_ call: SessionCall, over client: SessionClient) {
        let inbox = SessionInbox()
        self.inbox = inbox
        engine = client.engine
        task = Task {
            do throws(SessionError) {
                _ = try await client.make(call, inbox: inbox)
                inbox.finish(.success(()))
            } catch {
                inbox.finish(.failure(error))
            }
        }
    }

    deinit {
        task.cancel()
        // What nobody takes any more must not fill the window.
        for item in inbox.close() { engine.finish(item.receipt) }
    }
}
