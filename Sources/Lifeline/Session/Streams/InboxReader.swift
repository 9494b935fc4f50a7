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
    /// Why the last batch was cut short.
    private var failure: SessionError?

    init(_ engine: SessionEngine, _ inbox: SessionInbox, _ options: DecodingOptions) {
        self.engine = engine
        self.inbox = inbox
        self.options = options
    }

    deinit { letGo() }

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
            if let failure = failure.take() { throw failure }
            guard let run = try await engine.nextRun(of: inbox) else { return nil }
            batchInHand = Array(run.entries[run.head...])
            var messages: [Message] = []
            messages.reserveCapacity(run.count)
            var start = run.head == 0 ? 0 : run.entries[run.head - 1].end
            for entry in batchInHand {
                do throws(SessionError) {
                    messages.append(try Message(sessionPayload: run.bytes[start..<entry.end], options))
                } catch {
                    failure = dropped == nil ? error : nil
                    dropped?(error)
                }
                if failure != nil { break }
                start = entry.end
            }
            if !messages.isEmpty { return messages }
        }
    }
}
