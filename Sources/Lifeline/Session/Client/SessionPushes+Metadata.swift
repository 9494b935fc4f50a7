public import LifelineMessages

/// A push with its metadata.
public struct SessionPush<Message: DelimitedMessage>: Sendable {
    /// The message.
    public let message: Message
    /// The metadata that the server has sent with the message.
    public let metadata: SessionMetadata
}

extension SessionPushes {
    /// The pushes with their metadata.
    public var withMetadata: WithMetadata { WithMetadata(base: self) }

    /// The pushes with their metadata, one at a time.
    public struct WithMetadata: AsyncSequence, Sendable {
        /// The reason for which the server ended the session.
        public typealias Failure = SessionError

        fileprivate let base: SessionPushes

        /// Continues with the next push.
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: base.makeAsyncIterator()) }

        /// Hands out one push at a time.
        public struct AsyncIterator: AsyncIteratorProtocol {
            fileprivate var base: SessionPushes.AsyncIterator

            /// The next push; nil when the client is closed. Drops the same pushes as
            /// `SessionPushes.AsyncIterator.next`.
            ///
            /// - Throws: `SessionError` with the reason for which the server ended the session; `cancelled` when the
            ///   task is cancelled.
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
