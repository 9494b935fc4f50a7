public import LifelineMessages

/// The pushes of one method, over all connections and sessions of a client, in order.
///
/// A push counts as processed when the next one is asked for or the loop is left, and the client's interceptors have
/// returned. Pushes that arrive while no loop iterates wait for the next iteration. Of several concurrent iterations,
/// each takes a batch of pushes that arrived together, and gives back the rest when it ends. When the task of a loop is
/// cancelled while interceptors have a push, the push is dropped if they end because of that. The sequence ends with
/// `stop()`, and after the arrived pushes when the client is closed.
///
/// **Take them, or stop them.** Pushes that wait here delay later pushes of their method, which the server keeps
/// (`SessionLimits.maximumUnreadByteCount`). They delay neither other methods nor calls.
public struct SessionPushes<Message: DelimitedMessage>: AsyncSequence, Sendable {
    /// The reason for which the server ended the session.
    public typealias Failure = SessionError

    let client: SessionClient
    let inbox: SessionInbox
    let method: String

    /// Stops taking the method's pushes. Waiting and later pushes are dropped; later ones count as unwanted. All
    /// iterations end. `SessionClient.pushes` starts again.
    public func stop() { client.engine.removeInbox(inbox, for: method) }

    fileprivate var reader: InboxReader<Message> {
        InboxReader(client.engine, inbox, client.configuration.decodingOptions)
    }

    /// The pushes in the batches in which they arrive, for handling many small ones at the least cost. A batch counts
    /// as processed when the next one is asked for. With interceptors, each batch has one push.
    public var batches: Batches { Batches(base: self) }

    /// Continues with the next push.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(pushes: self) }

    /// Hands out one push at a time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let pushes: SessionPushes
        private let reader: InboxReader<Message>
        /// The present push, if there are interceptors.
        private var intercepted: InterceptedPush<Message>?
        private var interceptedMetadata: SessionMetadata = [:]

        /// The metadata of the present push.
        var metadata: SessionMetadata { intercepted == nil ? reader.metadata : interceptedMetadata }

        fileprivate init(pushes: SessionPushes) {
            self.pushes = pushes
            reader = pushes.reader
        }

        /// The next push; nil when the client is closed. A push of another type, or one that an interceptor refuses, is
        /// dropped and logged.
        ///
        /// - Throws: `SessionError` with the reason for which the server ended the session; `cancelled` when the task
        ///   is cancelled.
        public nonisolated(nonsending) mutating func next() async throws(SessionError) -> Message? {
            if !pushes.client.interceptors.isEmpty { return try await nextIntercepted() }
            while true {
                do throws(SessionError) {
                    return try await reader.next()
                } catch {
                    guard error.code == .malformedMessage else { throw error }
                    pushes.client.clientEnd.failed(pushes.method, error)
                }
            }
        }

        /// The next push; nil when the client is closed.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(SessionError) -> Message? {
            try await next()
        }

        @inline(never)
        private nonisolated(nonsending) mutating func nextIntercepted() async throws(SessionError) -> Message? {
            if let last = intercepted.take() { await last.finish() }
            while let message = try await pushes.client.engine.next(of: pushes.inbox, isAlone: true) {
                let push = InterceptedPush<Message>(message, of: pushes.method, for: pushes.client)
                guard let delivered = await push.push() else { continue }
                (intercepted, interceptedMetadata) = (push, delivered.metadata)
                return delivered.message
            }
            return nil
        }
    }

    /// The pushes in batches: never an empty one.
    public struct Batches: AsyncSequence, Sendable {
        /// The reason for which the server ended the session.
        public typealias Failure = SessionError

        fileprivate let base: SessionPushes

        /// Continues with the next batch.
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(pushes: base) }

        /// Hands out one batch at a time.
        public struct AsyncIterator: AsyncIteratorProtocol {
            private let pushes: SessionPushes
            private let reader: InboxReader<Message>
            /// Used when there are interceptors.
            private var single: SessionPushes.AsyncIterator?

            fileprivate init(pushes: SessionPushes) {
                self.pushes = pushes
                reader = pushes.reader
                single = pushes.client.interceptors.isEmpty ? nil : pushes.makeAsyncIterator()
            }

            /// The next batch; nil when the client is closed.
            ///
            /// - Throws: `SessionError` with the reason for which the server ended the session; `cancelled` when the
            ///   task is cancelled.
            public nonisolated(nonsending) mutating func next() async throws(SessionError) -> [Message]? {
                if single != nil { return try await single?.next().map { [$0] } }
                return try await reader.nextBatch { [pushes] in pushes.client.clientEnd.failed(pushes.method, $0) }
            }

            /// The next batch; nil when the client is closed.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(SessionError)
                -> [Message]?
            {
                try await next()
            }
        }
    }
}
