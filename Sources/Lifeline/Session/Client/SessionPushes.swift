public import LifelineMessages

/// The pushes of one method, over all connections and sessions of a client, in order.
///
/// A push counts as processed when the next one is asked for, or its loop is left, and the client's interceptors have
/// returned. Those that come while nobody iterates wait for the next iteration; of several that go on at once, each
/// takes the pushes that have come together, and gives back what it leaves. One that is with the interceptors when the
/// task of its loop is cancelled is dropped, if they end with that. It ends when the client is closed, after what has
/// come, and with `stop()`.
///
/// **Take them, or stop them.** Pushes that wait here hold up later ones of their method at the server, which keeps
/// them (`SessionLimits.maximumUnreadByteCount`). They hold up neither other methods nor calls.
public struct SessionPushes<Message: DelimitedMessage>: AsyncSequence, Sendable {
    /// Why the server ended the session.
    public typealias Failure = SessionError

    let client: SessionClient
    let inbox: SessionInbox
    let method: String

    /// Stops to take the method's pushes: those that wait are dropped, and so are those that come, which are counted as
    /// unwanted. Its iterations end. `SessionClient.pushes` begins anew.
    public func stop() { client.engine.removeInbox(inbox, for: method) }

    fileprivate var reader: InboxReader<Message> {
        InboxReader(client.engine, inbox, client.configuration.decodingOptions)
    }

    /// The pushes in the batches in which they come, for handling many small ones at the least cost. A batch counts as
    /// processed when the next one is asked for. With interceptors each push comes alone.
    public var batches: Batches { Batches(base: self) }

    /// Goes on with the next push.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(pushes: self) }

    /// Hands out one push at a time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let pushes: SessionPushes
        private let reader: InboxReader<Message>
        /// The push in hand where there are interceptors.
        private var intercepted: InterceptedPush<Message>?
        private var interceptedMetadata: SessionMetadata = [:]

        /// That of the push in hand.
        var metadata: SessionMetadata { intercepted == nil ? reader.metadata : interceptedMetadata }

        fileprivate init(pushes: SessionPushes) {
            self.pushes = pushes
            reader = pushes.reader
        }

        /// The next push; nil when the client is closed. One that is not of this type is dropped, and logged, and so is
        /// one that an interceptor refuses.
        ///
        /// - Throws: `SessionError`: why the server ended the session; `cancelled` when the task is.
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
        /// Why the server ended the session.
        public typealias Failure = SessionError

        fileprivate let base: SessionPushes

        /// Goes on with the next batch.
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(pushes: base) }

        /// Hands out one batch at a time.
        public struct AsyncIterator: AsyncIteratorProtocol {
            private let pushes: SessionPushes
            private let reader: InboxReader<Message>
            /// Where there are interceptors.
            private var single: SessionPushes.AsyncIterator?

            fileprivate init(pushes: SessionPushes) {
                self.pushes = pushes
                reader = pushes.reader
                single = pushes.client.interceptors.isEmpty ? nil : pushes.makeAsyncIterator()
            }

            /// The next batch; nil when the client is closed.
            ///
            /// - Throws: `SessionError`: why the server ended the session; `cancelled` when the task is.
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
