public import LifelineMessages

/// The pushes of one method, over all connections and sessions of a client, in order.
///
/// A push counts as processed when the next one is asked for, or its loop is left, and the client's interceptors have returned.
/// Those that come while nobody iterates wait for the next iteration; several that go on at once share them out. One that is
/// with the interceptors when the task of its loop is cancelled is dropped, if they end with that. It ends when the client is
/// closed, after what has come, and with `stop()`.
///
/// **Take them, or stop them.** What waits here takes up the window of the session (`SessionClientConfiguration.limits`), which
/// all pushes and the messages of streams share: when it is full of pushes that nobody takes, none of the others come, and
/// the server's pushes to this client wait. Replies of calls are not held up. So do not wait for a stream in the loop over
/// pushes, or the other way round, where the one cannot go on without the other.
public struct SessionPushes<Message: DelimitedMessage>: AsyncSequence, Sendable {
    /// Why the server ended the session.
    public typealias Failure = SessionError

    let client: SessionClient
    let inbox: SessionInbox
    let method: String

    /// Stops to take the method's pushes: those that wait are dropped, and so are those that come, which are counted as
    /// unwanted. Its iterations end. `SessionClient.pushes` begins anew.
    public func stop() { client.clientEnd.removeInbox(inbox, for: method) }

    /// Goes on with the next push.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(pushes: self) }

    /// Hands out one push at a time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let pushes: SessionPushes
        private var inHand: PushInHand?
        /// The same where there are interceptors.
        private var intercepted: InterceptedPush<Message>?

        fileprivate init(pushes: SessionPushes) { self.pushes = pushes }

        /// The next push; nil when the client is closed. One that is not of this type is dropped, and logged, and so is one
        /// that an interceptor refuses.
        ///
        /// - Throws: `SessionError`: why the server ended the session; `cancelled` when the task is.
        public nonisolated(nonsending) mutating func next() async throws(SessionError) -> Message? {
            inHand = nil
            if !pushes.client.interceptors.isEmpty { return try await nextIntercepted() }
            while let item = try await pushes.inbox.next() {
                let inHand = PushInHand(item.receipt, pushes.client.engine)
                do {
                    let message = try pushes.client.decode(.push(item.push), as: Message.self)
                    self.inHand = inHand
                    return message
                } catch {
                    pushes.client.clientEnd.failed(pushes.method, error)
                }
            }
            return nil
        }

        /// The next push; nil when the client is closed.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(SessionError) -> Message? {
            try await next()
        }

        @inline(never)
        private nonisolated(nonsending) mutating func nextIntercepted() async throws(SessionError) -> Message? {
            if let last = intercepted.take() { await last.finish() }
            while let item = try await pushes.inbox.next() {
                let push = InterceptedPush<Message>(item, of: pushes.method, for: pushes.client)
                guard let message = await push.message() else { continue }
                intercepted = push
                return message
            }
            return nil
        }
    }
}
