internal import LifelineMessages

/// Takes the messages of an inbox for one loop. A message counts as processed when the next one is asked for, or the
/// loop is left.
final class InboxReader<Message: DelimitedMessage> {
    private let engine: SessionEngine
    private let inbox: SessionInbox
    private let options: DecodingOptions
    /// Nil before the first, and behind the last one.
    private var messages: TakenMessages?
    /// How many of them were handed out.
    private var position = 0

    init(_ engine: SessionEngine, _ inbox: SessionInbox, _ options: DecodingOptions) {
        self.engine = engine
        self.inbox = inbox
        self.options = options
    }

    deinit {
        if let messages { engine.letGo(messages, from: position) }
    }

    /// The next message; nil at the end.
    ///
    /// - Throws: `malformedMessage`, the inbox's end, `cancelled`.
    @inline(__always)
    nonisolated(nonsending) func next() async throws(SessionError) -> Message? {
        guard try await hasNext() else { return nil }
        return try nextAtHand()
    }

    /// Waits for another message; false at the end. Those before it are processed.
    ///
    /// - Throws: the inbox's end, `cancelled`.
    @inline(__always)
    nonisolated(nonsending) func hasNext() async throws(SessionError) -> Bool {
        if !Task.isCancelled, hasMore { return true }
        return try await takeMore()
    }

    /// Whether there is another one of those that were taken.
    @inline(__always)
    private var hasMore: Bool {
        guard let messages, position < messages.run.entries.count else { return false }
        if !messages.setProcessed(position), position > messages.run.head { engine.processed(messages) }
        return true
    }

    /// The next message, of which `hasNext` has told.
    ///
    /// - Throws: `malformedMessage`.
    @inline(__always)
    func nextAtHand() throws(SessionError) -> Message {
        position += 1
        guard let messages else { preconditionFailure("There is no message at hand.") }
        return try messages.run.withPayload(position - 1) { (payload) throws(SessionError) in
            try Message(sessionPayload: payload, options)
        }
    }

    /// That of the message that was handed out last.
    @inline(__always)
    var metadata: SessionMetadata { messages?.run.metadata(position - 1) ?? [:] }

    /// Takes the messages that have come, at least one. Returns false at the end.
    ///
    /// - Throws: the inbox's end; `cancelled` when the task is.
    private nonisolated(nonsending) func takeMore() async throws(SessionError) -> Bool {
        let last = messages
        _ = last?.setProcessed(position)
        if Task.isCancelled, let last, position < last.run.entries.count {
            // The next loop goes on with them.
            messages = nil
            engine.letGo(last, from: position)
            throw .cancelled
        }
        messages = nil
        guard let next = try await engine.next(of: inbox, behind: last) else { return false }
        messages = next
        position = next.run.head
        return true
    }

    /// The messages that have come, at least one; nil at the end.
    ///
    /// - Parameter dropped: is told of messages that cannot be decoded, which are left out; nil: they are thrown.
    nonisolated(nonsending) func nextBatch(
        dropped: ((SessionError) -> Void)? = nil
    ) async throws(SessionError) -> [Message]? {
        while true {
            guard try await hasNext() else { return nil }
            var batch: [Message] = []
            batch.reserveCapacity((messages?.run.entries.count ?? 0) - position)
            while let run = messages?.run, position < run.entries.count {
                do throws(SessionError) {
                    batch.append(try nextAtHand())
                } catch {
                    guard let dropped else {
                        if batch.isEmpty { throw error }
                        // Those before it go first.
                        position -= 1
                        return batch
                    }
                    dropped(error)
                }
            }
            if !batch.isEmpty { return batch }
        }
    }
}
