public import LifelineMessages

/// The messages of one side of a call: those that a handler gets, or those that answer a call both ways. In order,
/// until the other side has ended its messages.
///
/// A message counts as processed when the next one is asked for, or the loop is left. What is not taken waits, and
/// holds up the sender of this stream only. A loop that is left loses nothing: the next one goes on where it stopped.
public struct SessionMessages<Message: DelimitedMessage>: AsyncSequence, Sendable {
    /// Why there are no more messages: as calls fail.
    public typealias Failure = SessionError

    let engine: SessionEngine
    let inbox: SessionInbox
    let options: DecodingOptions

    fileprivate var reader: InboxReader<Message> { InboxReader(engine, inbox, options) }

    /// The messages in the batches in which they come, for handling many small ones at the least cost. A batch counts
    /// as processed when the next one is asked for.
    public var batches: Batches { Batches(base: self) }

    /// Goes on with the next message.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(reader: reader) }

    /// Hands out one message at a time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let reader: InboxReader<Message>

        /// The next message; nil when the other side has ended its messages.
        ///
        /// - Throws: `SessionError`: `malformedMessage`; `cancelled` when the task or the call is; why the call, or the
        ///   session, has ended.
        public nonisolated(nonsending) mutating func next() async throws(SessionError) -> Message? {
            try await reader.next()
        }

        /// The next message; nil when the other side has ended its messages.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(SessionError) -> Message? {
            try await next()
        }
    }

    /// The messages in batches: never an empty one.
    public struct Batches: AsyncSequence, Sendable {
        /// Why there are no more messages.
        public typealias Failure = SessionError

        fileprivate let base: SessionMessages

        /// Goes on with the next batch.
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(reader: base.reader) }

        /// Hands out one batch at a time.
        public struct AsyncIterator: AsyncIteratorProtocol {
            fileprivate let reader: InboxReader<Message>

            /// The next batch; nil when the other side has ended its messages.
            public nonisolated(nonsending) mutating func next() async throws(SessionError) -> [Message]? {
                try await reader.nextBatch()
            }

            /// The next batch; nil when the other side has ended its messages.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(SessionError)
                -> [Message]?
            {
                try await next()
            }
        }
    }
}
