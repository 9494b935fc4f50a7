internal import LifelineCore
public import LifelineMessages
internal import LifelineTransport

/// The messages that arrive at a client, over all its connections, in order.
///
/// It ends after the client has closed; a connection that is lost does not end it. What it throws is
/// `CancellationError` when the task that iterates is cancelled, and `ConnectionError` `concurrentIteration` when
/// another one iterates.
///
/// One task may iterate at a time. A loop that is left loses nothing: the next one goes on where it stopped. While too
/// much waits here the connection is not read, and, if it is lost, no new one is made before messages are taken; the
/// log has a warning then.
public struct ClientMessages<Element: DelimitedMessage>: AsyncSequence, Sendable {
    @usableFromInline let inbox: ClientInbox<Element>

    init(inbox: ClientInbox<Element>) { self.inbox = inbox }

    /// The messages in the batches in which they arrived, for handling many small ones at the least cost.
    ///
    /// A batch can hold thousands. Go over it with `for`, which copies nothing; to take messages out of it one by one,
    /// use `popLast()` on the reversed batch or `popFirst()` on an `ArraySlice` of it. `removeFirst()` moves all that
    /// is left, each time.
    public var batches: Batches { Batches(inbox: inbox) }

    /// Starts, or goes on, with the next message.
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

        /// Starts, or goes on, with the next batch; with the rest of one that a loop over single messages began.
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
