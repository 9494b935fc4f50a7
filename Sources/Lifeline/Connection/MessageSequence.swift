internal import LifelineCore
public import LifelineMessages
internal import LifelineTransport

/// The messages that arrive on a connection, in order.
///
/// The sequence ends when the peer has ended its side after a whole message. It throws `ConnectionError` when the
/// connection fails, after all messages that arrived before; and `CancellationError` when the task that iterates is
/// cancelled.
///
/// One task may iterate at a time. Leaving a loop loses no message: the next loop goes on where it stopped. Iteration
/// suspends only when all messages that have arrived are used up.
public struct MessageSequence<Element: DelimitedMessage>: AsyncSequence, Sendable {
    private let inbox: BatchQueue<Element>
    private let connection: any TransportConnection
    @usableFromInline let rest = MessageRest<Element>()

    init(inbox: BatchQueue<Element>, connection: any TransportConnection) {
        self.inbox = inbox
        self.connection = connection
    }

    /// The messages in the batches in which they arrived, for handling many small ones at the least cost.
    public var batches: Batches { Batches(base: self) }

    /// Starts, or continues, with the next message.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: self) }

    /// Hands out one message at a time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        @usableFromInline let base: MessageSequence

        /// The next message; nil at the end.
        @inlinable public nonisolated(nonsending) mutating func next() async throws -> Element? {
            try await base.next(isolation: #isolation)
        }

        /// The next message; nil at the end.
        @inlinable @inline(__always)
        public mutating func next(isolation actor: isolated (any Actor)?) async throws -> Element? {
            try await base.next(isolation: actor)
        }
    }

    /// The messages of a connection in batches: never an empty one.
    public struct Batches: AsyncSequence, Sendable {
        @usableFromInline let base: MessageSequence

        /// Starts, or continues, with the next batch, or with the rest of the batch that a loop over single messages
        /// began.
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: base) }

        /// Hands out one batch at a time.
        public struct AsyncIterator: AsyncIteratorProtocol {
            @usableFromInline let base: MessageSequence

            /// The next batch; nil at the end.
            @inlinable public nonisolated(nonsending) mutating func next() async throws -> [Element]? {
                try await base.nextBatch(isolation: #isolation)
            }

            /// The next batch; nil at the end.
            @inlinable @inline(__always)
            public mutating func next(isolation actor: isolated (any Actor)?) async throws -> [Element]? {
                try await base.nextBatch(isolation: actor)
            }
        }
    }
}

extension MessageSequence: MessageSource {
    @usableFromInline func fill() -> Bool {
        inbox.fill(rest) { connection.resumeReading() }
    }

    @usableFromInline func takeBatch() -> [Element] {
        inbox.takeBatch(after: rest) { connection.resumeReading() }
    }

    @usableFromInline nonisolated(nonsending) func wait() async throws -> Bool {
        try await inbox.untyped.wait(besides: rest)
    }
}
