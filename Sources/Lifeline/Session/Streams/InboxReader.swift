internal import LifelineMessages

/// Takes the messages of an inbox for one loop. A message counts as processed when the next one is asked for, or the
/// loop is left.
final class InboxReader<Message: DelimitedMessage> {
    private let engine: SessionEngine
    private let inbox: SessionInbox
    private let options: DecodingOptions
    /// The present run; nil before the first and after the last message.
    private var messages: TakenMessages?
    /// The index after the present message.
    private var position = 0
    /// The error of a message after a batch that could not be decoded.
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
    /// - Throws: `malformedMessage`, the error that ended the inbox, `cancelled`.
    @inline(__always)
    nonisolated(nonsending) func next() async throws(SessionError) -> Message? {
        guard try await hasNext() else { return nil }
        return try messageInHand()
    }

    /// Waits for another message; returns false at the end. Marks earlier messages as processed.
    ///
    /// - Throws: the error that ended the inbox, `cancelled`.
    @inline(__always)
    nonisolated(nonsending) func hasNext() async throws(SessionError) -> Bool {
        if !Task.isCancelled, hasMore { return true }
        return try await takeMore()
    }

    /// Whether another message of the run is left. If so, it becomes the present one.
    @inline(__always)
    private var hasMore: Bool {
        guard takeNext(), let messages else { return false }
        let index = position - 1
        if !messages.setProcessed(index), index > messages.run.head { engine.processed(messages) }
        return true
    }

    /// Returns the present message, after `hasNext` was true.
    ///
    /// - Throws: `malformedMessage`.
    @inline(__always)
    func messageInHand() throws(SessionError) -> Message {
        guard let messages else { preconditionFailure("There is no present message.") }
        return try messages.run.withPayload(position - 1) { (payload) throws(SessionError) in
            try Message(sessionPayload: payload, options)
        }
    }

    /// The metadata of the present message.
    @inline(__always)
    var metadata: SessionMetadata { messages?.run.metadata(position - 1) ?? [:] }

    /// The present message as the store has it; nil if it is not durable.
    var durableMessage: SessionDurableMessage? {
        guard let messages else { return nil }
        return engine.durableMessage(messages.run.session, messages.run.entries[position - 1].place)
    }

    /// Leaves the present message unprocessed, so that its sender sends it again. Returns false if it is not durable.
    func giveBack() -> Bool {
        guard durableMessage != nil else { return false }
        position -= 1
        return true
    }

    /// Takes the arrived messages, at least one. Returns false at the end.
    ///
    /// - Throws: the error that ended the inbox; `cancelled` when the task is cancelled.
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

    /// Returns the arrived messages, at least one; nil at the end.
    ///
    /// - Parameter dropped: is called for messages that cannot be decoded, which are left out; if nil, their errors are
    ///   thrown.
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
                        // The messages before it go first.
                        failure = error
                        return batch
                    }
                }
            } while takeNext()
            if !batch.isEmpty { return batch }
        }
        return nil
    }

    /// Moves to another message, and keeps those before it unprocessed.
    @inline(__always)
    private func takeNext() -> Bool {
        guard let index = messages?.handOutNext() else { return false }
        position = index + 1
        return true
    }
}
