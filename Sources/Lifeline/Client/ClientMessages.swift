internal import LifelineCore
public import LifelineMessages
internal import LifelineTransport

/// The messages that arrive at a client, over all its connections, in order.
///
/// The sequence ends after the client has closed; a lost connection does not end it. It throws `CancellationError` when
/// the task that iterates is cancelled, and `ConnectionError` `concurrentIteration` when another task iterates.
///
/// One task may iterate at a time. Leaving a loop loses no message: the next loop goes on where it stopped. While too
/// many bytes wait here, the connection is not read. If the connection is lost meanwhile, the client makes no new one
/// until messages are taken, and logs a warning.
public struct ClientMessages<Element: DelimitedMessage>: AsyncSequence, Sendable {
    @usableFromInline let inbox: ClientInbox<Element>

    init(inbox: ClientInbox<Element>) { self.inbox = inbox }

    /// The messages in the batches in which they arrived, for handling many small ones at the least cost.
    ///
    /// A batch can hold thousands. Go over it with `for`, which copies nothing; to take messages out of it one by one,
    /// use `popLast()` on the reversed batch or `popFirst()` on an `ArraySlice` of it. `removeFirst()` moves the whole
    /// rest each time.
    public var batches: Batches { Batches(inbox: inbox) }

    /// Starts, or continues, with the next message.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(inbox: inbox) }

    /// Hands out one message at a time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        @usableFromInline let inbox: ClientInbox<Element>

        /// The next message; nil at the end.
        @inlinable public nonisolated(nonsending) mutating func next() async throws -> Element? {
            try await inbox.next(isolation: #isolation)
        }

        /// The next message; nil at the end.
        @inlinable @inline(__always)
        public mutating func next(isolation actor: isolated (any Actor)?) async throws -> Element? {
            try await inbox.next(isolation: actor)
        }
    }

    /// The messages of a client in batches: never an empty one.
    public struct Batches: AsyncSequence, Sendable {
        @usableFromInline let inbox: ClientInbox<Element>

        /// Starts, or continues, with the next batch, or with the rest of the batch that a loop over single messages
        /// began.
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(inbox: inbox) }

        /// Hands out one batch at a time.
        public struct AsyncIterator: AsyncIteratorProtocol {
            @usableFromInline let inbox: ClientInbox<Element>

            /// The next batch; nil at the end.
            @inlinable public nonisolated(nonsending) mutating func next() async throws -> [Element]? {
                try await inbox.nextBatch(isolation: #isolation)
            }

            /// The next batch; nil at the end.
            @inlinable @inline(__always)
            public mutating func next(isolation actor: isolated (any Actor)?) async throws -> [Element]? {
                try await inbox.nextBatch(isolation: actor)
            }
        }
    }
}
