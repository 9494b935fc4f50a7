internal import LifelineMessages

/// Takes the messages of an inbox for one loop. A message counts as processed when the next one is asked for, or the
/// loop is left.
final class InboxReader<Message: DelimitedMessage> {
    private let engine: SessionEngine
    private let inbox: SessionInbox
    private let options: DecodingOptions
    private var inHand: SessionMachine.Receipt?
    /// The same where they were taken together.
    private var batchInHand: [SessionInbox.Run.Entry] = []
    /// Messages behind one that could not be decoded, which were taken with it.
    private var rest: SessionInbox.Run?

    init(_ engine: SessionEngine, _ inbox: SessionInbox, _ options: DecodingOptions) {
        self.engine = engine
        self.inbox = inbox
        self.options = options
    }

    deinit {
        letGo()
        if let rest { engine.putBack(rest, to: inbox) }
    }

    private func letGo() {
        if let receipt = inHand.take() { engine.finish(receipt) }
        if !batchInHand.isEmpty { engine.finish(batchInHand) }
        batchInHand = []
    }

    /// The next message; nil at the end.
    ///
    /// - Throws: `malformedMessage`, the inbox's end, `cancelled`.
    @inline(__always)
    nonisolated(nonsending) func next() async throws(SessionError) -> Message? {
        guard let item = try await engine.next(of: inbox, finishing: inHand.take()) else { return nil }
        inHand = item.receipt
        return try Message(sessionPayload: item.payload, options)
    }

    /// The messages that have come, at least one; nil at the end.
    ///
    /// - Parameter dropped: is told of messages that cannot be decoded, which are left out; nil: they are thrown.
    nonisolated(nonsending) func nextBatch(
        dropped: ((SessionError) -> Void)? = nil
    ) async throws(SessionError) -> [Message]? {
        while true {
            letGo()
            var run: SessionInbox.Run
            if let rest = rest.take() {
                run = rest
            } else {
                guard let next = try await engine.nextRun(of: inbox) else { return nil }
                run = next
            }
            var messages: [Message] = []
            messages.reserveCapacity(run.count)
            while !run.isEmpty {
                do throws(SessionError) {
                    messages.append(try Message(sessionPayload: run.firstPayload, options))
                } catch {
                    guard let dropped else {
                        // Those before it go first.
                        if messages.isEmpty { batchInHand.append(run.dropFirst()) }
                        if !run.isEmpty { rest = run }
                        if messages.isEmpty { throw error }
                        return messages
                    }
                    dropped(error)
                }
                batchInHand.append(run.dropFirst())
            }
            if !messages.isEmpty { return messages }
        }
    }
}
