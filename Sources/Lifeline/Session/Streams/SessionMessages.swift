public import LifelineMessages

/// The messages of one side of a call, in order, until the other side has ended its messages. A handler receives them,
/// or the caller of a method with messages both ways.
///
/// A message counts as processed when the next one is asked for, or the loop is left. Messages that are not taken wait,
/// and delay only the sender of this stream. Leaving a loop loses no message: the next loop goes on where it stopped.
public struct SessionMessages<Message: DelimitedMessage>: AsyncSequence, Sendable {
    /// The errors are those of calls.
    public typealias Failure = SessionError

    let engine: SessionEngine
    let inbox: SessionInbox
    let options: DecodingOptions

    fileprivate var reader: InboxReader<Message> { InboxReader(engine, inbox, options) }

    /// The messages in the batches in which they arrive, for handling many small ones at the least cost. A batch counts
    /// as processed when the next one is asked for.
    public var batches: Batches { Batches(base: self) }

    /// Continues with the next message.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(reader: reader) }

    /// Hands out one message at a time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let reader: InboxReader<Message>

        /// The next message; nil when the other side has ended its messages.
        ///
        /// - Throws: `SessionError`: `malformedMessage`; `cancelled` when the task or the call is cancelled; the reason
        ///   for the end of the call or the session.
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
        /// The errors are those of calls.
        public typealias Failure = SessionError

        fileprivate let base: SessionMessages

        /// Continues with the next batch.
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
