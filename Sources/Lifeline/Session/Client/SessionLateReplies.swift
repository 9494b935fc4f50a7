public import LifelineMessages

/// The reply to a durable call that no task waits for.
public struct SessionLateReply<Reply: DelimitedMessage>: Sendable {
    /// The reply, or the status that the call ended with.
    public let result: Result<Reply, SessionStatus>
    /// The metadata of the reply.
    public let metadata: SessionMetadata
}

/// The replies to durable calls of one method that no task waits for, in the order of their arrival.
///
/// A reply counts as processed, and does not come again, when the next one is asked for or the loop is left. The
/// sequence ends when the client is closed. Replies that were not taken by then come to the next client with the same
/// store. Let the handler put an id into the reply, so that the application can identify the call.
///
/// **Take them, or stop them.** Late replies that wait here delay the other replies of their method.
public struct SessionLateReplies<Reply: DelimitedMessage>: AsyncSequence, Sendable {
    /// The reason for which the server ended the session.
    public typealias Failure = SessionError

    let client: SessionClient
    let inbox: SessionInbox
    let method: String

    /// Stops taking late replies: waiting replies are dropped, and all iterations over the method's late replies end.
    /// `SessionClient.lateReplies` starts again.
    public func stop() { client.engine.removeReplyInbox(inbox, for: method) }

    /// Continues with the next reply.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(
            client: client,
            method: method,
            reader: InboxReader(client.engine, inbox, client.configuration.decodingOptions)
        )
    }

    /// Hands out one reply at a time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let client: SessionClient
        fileprivate let method: String
        /// Reads replies as the bodies of pushes.
        fileprivate let reader: InboxReader<RawMessage>

        /// The next reply; nil when the client is closed. A reply of another type is dropped, and logged.
        ///
        /// - Throws: `SessionError` with the reason for which the server ended the session; `cancelled` when the task
        ///   is cancelled.
        public nonisolated(nonsending) mutating func next() async throws(SessionError) -> SessionLateReply<Reply>? {
            while let body = try await reader.next() {
                do throws(SessionError) {
                    return try reply(body.bytes)
                } catch {
                    client.clientEnd.failed(method, error)
                }
            }
            return nil
        }

        /// The next reply; nil when the client is closed.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(SessionError)
            -> SessionLateReply<Reply>?
        {
            try await next()
        }

        private func reply(_ body: [UInt8]) throws(SessionError) -> SessionLateReply<Reply> {
            try body.span.withUnsafeBytes { (bytes) throws(SessionError) in
                guard let message = try? InboundMessage(.push, bytes) else {
                    preconditionFailure("A reply was kept that cannot be parsed.")
                }
                let result: Result<Reply, SessionStatus> =
                    message.status == 0
                    ? .success(try Reply(sessionPayload: message.payload, client.configuration.decodingOptions))
                    : .failure(SessionStatus(message))
                return SessionLateReply(result: result, metadata: message.metadata)
            }
        }
    }
}
