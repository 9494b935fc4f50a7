public import LifelineMessages

/// A push, and what travelled beside it.
public struct SessionPush<Message: DelimitedMessage>: Sendable {
    /// The message.
    public let message: Message
    /// The metadata that the server has sent with it.
    public let metadata: SessionMetadata
}

extension SessionPushes {
    /// The pushes with their metadata.
    public var withMetadata: WithMetadata { WithMetadata(base: self) }

    /// The pushes with their metadata, one at a time.
    public struct WithMetadata: AsyncSequence, Sendable {
        /// Why the server ended the session.
        public typealias Failure = SessionError

        fileprivate let base: SessionPushes

        /// Goes on with the next push.
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: base.makeAsyncIterator()) }

        /// Hands out one push at a time.
        public struct AsyncIterator: AsyncIteratorProtocol {
            fileprivate var base: SessionPushes.AsyncIterator

            /// The next push; nil when the client is closed. `SessionPushes.AsyncIterator.next` says what is dropped.
            ///
            /// - Throws: `SessionError`: why the server ended the session; `cancelled` when the task is.
            public nonisolated(nonsending) mutating func next() async throws(SessionError) -> SessionPush<Message>? {
                try await base.next().map { SessionPush(message: $0, metadata: base.metadata) }
            }

            /// The next push; nil when the client is closed.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(SessionError)
                -> SessionPush<Message>?
            {
                try await next()
            }
        }
    }
}
