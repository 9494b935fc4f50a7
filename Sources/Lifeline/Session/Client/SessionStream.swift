public import LifelineMessages

/// The messages of a method that sends many, until its handler returns.
///
/// Each iteration makes its own call, which begins with the first `next()`. Leaving the loop cancels the call and its
/// handler. A message counts as processed when the next one is asked for. Until then the server's messages wait, within
/// `SessionLimits.maximumUnreadByteCount`, and delay nothing else.
public struct SessionStream<Message: DelimitedMessage>: AsyncSequence, Sendable {
    /// Streams fail as calls do.
    public typealias Failure = SessionError

    let client: SessionClient
    let call: Result<SessionCall, SessionError>

    /// The messages in the batches in which they arrive, for handling many small ones at the least cost. A batch counts
    /// as processed when the next one is asked for.
    public var batches: Batches { Batches(base: self) }

    /// Makes a new call.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: self) }

    /// The call, and the reader of its messages.
    private struct Running {
        let call: RunningCall
        let reader: InboxReader<Message>
    }

    private func begin() throws(SessionError) -> Running {
        let call = RunningCall(try call.get(), SessionInbox(), over: client)
        return Running(call: call, reader: InboxReader(client.engine, call.inbox, client.configuration.decodingOptions))
    }

    /// Hands out one message at a time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let base: SessionStream
        private var running: Running?

        fileprivate init(base: SessionStream) { self.base = base }

        /// The next message; nil when the handler has returned.
        ///
        /// - Throws: `SessionError` as `SessionClient.call` does.
        public nonisolated(nonsending) mutating func next() async throws(SessionError) -> Message? {
            if let running { return try await running.reader.next() }
            let running = try base.begin()
            self.running = running
            return try await running.reader.next()
        }

        /// The next message; nil when the handler has returned.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(SessionError) -> Message? {
            try await next()
        }
    }

    /// The messages in batches: never an empty one.
    public struct Batches: AsyncSequence, Sendable {
        /// Streams fail as calls do.
        public typealias Failure = SessionError

        fileprivate let base: SessionStream

        /// Makes a new call.
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: base) }

        /// Hands out one batch at a time.
        public struct AsyncIterator: AsyncIteratorProtocol {
            fileprivate let base: SessionStream
            private var running: Running?

            fileprivate init(base: SessionStream) { self.base = base }

            /// The next batch; nil when the handler has returned.
            ///
            /// - Throws: `SessionError` as `SessionClient.call` does.
            public nonisolated(nonsending) mutating func next() async throws(SessionError) -> [Message]? {
                if let running { return try await running.reader.nextBatch() }
                let running = try base.begin()
                self.running = running
                return try await running.reader.nextBatch()
            }

            /// The next batch; nil when the handler has returned.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(SessionError)
                -> [Message]?
            {
                try await next()
            }
        }
    }
}
