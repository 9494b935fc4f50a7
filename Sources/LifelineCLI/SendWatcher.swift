internal import Lifeline
internal import LifelineCore
internal import LifelineMessages

/// Follows the steps of the client that sends: tells the user of connections that are lost and made again, and ends the
/// client when there is no hope of another one.
actor SendWatcher {
    private let client: Client<RawMessage, RawMessage>
    private let events: ClientEvents.AsyncIterator
    private let isQuiet: Bool
    private var record = SendRecord()

    /// Make it before the client runs, so that it misses no step.
    init(client: Client<RawMessage, RawMessage>, isQuiet: Bool) {
        self.client = client
        self.events = client.events.makeAsyncIterator()
        self.isQuiet = isQuiet
    }

    /// All messages were accepted.
    func sendingFinished() {
        record.isSendingFinished = true
    }

    /// Follows the client to its end.
    func run() async {
        async let dropping: Void = dropMessages()
        var events = events
        while let event = await events.next() { await handle(event) }
        await dropping
    }

    /// Tells how it went.
    ///
    /// - Throws: `CommandFailure` when no connection could be made any more, or the last one broke.
    func finish(sentCount: Int) throws(CommandFailure) {
        if let summary = record.summary(sentCount: sentCount), !isQuiet { writeError("lifeline: \(summary)\n") }
        if let failure = record.failure { throw failure }
    }

    private func handle(_ event: ClientEvent) async {
        record.record(event)
        if event.transition.to == .gaveUp {
            // It returns at once: there is no connection to drain.
            await client.close()
        } else if isNews(event), !isQuiet {
            writeError("lifeline: \(event)\n")
        }
    }

    /// The first connection, the regular end, and what comes between the receiver's end and ours are no news.
    private func isNews(_ event: ClientEvent) -> Bool {
        let transition = event.transition
        return switch transition.to {
        case .draining, .closed:
            event.missedCount > 0
        case .idle, .waitingForNetwork, .connecting, .ready, .backingOff, .gaveUp:
            event.missedCount > 0 || record.lossCount > 0
                || transition.to == .backingOff && !record.isSendingFinished || transition.attempt > 1
        }
    }

    /// What it receives is of no use here, and a peer that answers is not to be held up.
    private nonisolated func dropMessages() async {
        do {
            for try await _ in client.messages.batches {}
        } catch {
            // Only this task iterates, and it is not cancelled before the client is.
        }
    }
}
