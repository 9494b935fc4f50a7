internal import LifelineMessages

/// Takes the messages of an inbox for one loop. A message counts as processed when the next one is asked for, or the
/// loop is left.
final class InboxReader<Message: DelimitedMessage> {
    private let engine: SessionEngine
    private let inbox: SessionInbox
    private let options: DecodingOptions
    /// Nil before the first, and behind the last one.
    private var messages: TakenMessages?
    /// Behind the one in hand.
    private var position = 0
    /// Of a message behind a batch, which could not be decoded.
    private var failure: SessionError?

    init(_ engine: SessionEngine, _ inbox: SessionInbox, _ options: DecodingOptions) {
        self.engine = engine
        self.inbox = inbox
        self.options = options
    }

    deinit {
        if let messages { engine.letGo(messages, processed: position) }
    }

    /// The next message; nil at the end.
    ///
    /// - Throws: `malformedMessage`, the inbox's end, `cancelled`.
    @inline(__always)
    nonisolated(nonsending) func next() async throws(SessionError) -> Message? {
        guard try await hasNext() else { return nil }
        return try messageInHand()
    }

    /// Waits for another message; false at the end. Those before it are processed.
    ///
    /// - Throws: the inbox's end, `cancelled`.
    @inline(__always)
    nonisolated(nonsending) func hasNext() async throws(SessionError) -> Bool {
        if !Task.isCancelled, hasMore { return true }
        return try await takeMore()
    }

    /// Whether there is another one of those that were taken. Then it is in hand.
    @inline(__always)
    private var hasMore: Bool {
        guard takeNext(), let messages else { return false }
        let index = position - 1
        if !messages.setProcessed(index), index > messages.run.head { engine.processed(messages) }
        return true
    }

    /// The message in hand, of which `hasNext` has told.
    ///
    /// - Throws: `malformedMessage`.
    @inline(__always)
    func messageInHand() throws(SessionError) -> Message {
        guard let messages else { preconditionFailure("There is no message in hand.") }
        return try messages.run.withPayload(position - 1) { (payload) throws(SessionError) in
            try Message(sessionPayload: payload, options)
        }
    }

    /// That of the message in hand.
    @inline(__always)
    var metadata: SessionMetadata { messages?.run.metadata(position - 1) ?? [:] }

    /// The message in hand as the store knows it; nil where it is not durable.
    var durableMessage: SessionDurableMessage? {
        guard let messages else { return nil }
        return engine.durableMessage(messages.run.session, messages.run.entries[position - 1].place)
    }

    /// Leaves the message in hand unprocessed, so that its sender sends it again; returns false where it is not durable.
    func giveBack() -> Bool {
        guard durableMessage != nil else { return false }
        position -= 1
        return true
    }

    /// Takes the messages that have come, at least one. Returns false at the end.
    ///
    /// - Throws: the inbox's end; `cancelled` when the task is.
    private nonisolated(nonsending) func takeMore() async throws(SessionError) -> Bool {
        while true {
            var last = messages.take()
            if Task.isCancelled, let messages = last.take() { engine.letGo(messages, processed: position) }
            _ = last?.setProcessed(position)
            guard let next = try await engine.next(of: inbox, behind: last) else { return false }
            messages = next
            position = next.run.head
            if hasMore { return true }
        }
    }

    /// The messages that have come, at least one; nil at the end.
    ///
    /// - Parameter dropped: is told of messages that cannot be decoded, which are left out; nil: they are thrown.
    nonisolated(nonsending) func nextBatch(
        dropped: ((SessionError) -> Void)? = nil
    ) async throws(SessionError) -> [Message]? {
        if let failure = failure.take() { throw failure }
        while try await hasNext() {
            var batch: [Message] = []
            batch.reserveCapacity((messages?.run.entries.count ?? 0) - position + 1)
            repeat {
                do throws(SessionError) {
                    batch.append(try messageInHand())
                } catch {
                    if let dropped {
                        dropped(error)
                    } else {
                        if batch.isEmpty { throw error }
                        // Those before it go first.
                        failure = error
                        return batch
                    }
                }
            } while takeNext()
            if !batch.isEmpty { return batch }
        }
        return nil
    }

    /// Takes another one in hand beside those before it.
    @inline(__always)
    private func takeNext() -> Bool {
        guard let index = messages?.handOutNext() else { return false }
        position = index + 1
        return true
    }
}
