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
    /// What is to be told if the end that is pending turns out to be a loss: not more than this many lines.
    private var heldLines: [String] = []
    private static let maximumHeldCount = 100

    /// Make it before the client runs, so that it misses no step.
    init(client: Client<RawMessage, RawMessage>, isQuiet: Bool) {
        self.client = client
        self.events = client.events.makeAsyncIterator()
        self.isQuiet = isQuiet
    }

    /// All messages were accepted, the last one by the connection that this step made (0: there was none).
    func sendingFinished(lastConnection: UInt64) {
        let lossCount = record.lossCount
        record.sendingFinished(lastConnection: lastConnection)
        if record.lossCount > lossCount { printHeldLines() }
        heldLines = []
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
        record.clientClosed()
        printHeldLines()
        if let summary = record.summary(sentCount: sentCount), !isQuiet { writeErrorLine("lifeline: \(summary)") }
        if let failure = record.failure { throw failure }
    }

    private func handle(_ event: ClientEvent) async {
        let lossCount = record.lossCount
        record.record(event, isMessageWaiting: client.queuedMessageCount > 0)
        if record.lossCount > lossCount { printHeldLines() }
        if event.transition.to == .gaveUp {
            // It returns at once: there is no connection to drain.
            await client.close()
        } else if isWorthPrinting(event) {
            if heldLines.count == Self.maximumHeldCount { heldLines.removeFirst() }
            heldLines.append("lifeline: \(event)")
        }
        if record.pendingEnd == nil { printHeldLines() }
    }

    private func printHeldLines() {
        if !isQuiet { for line in heldLines { writeErrorLine(line) } }
        heldLines = []
    }

    /// The first connection, the regular end, and what comes between the receiver's end and ours are no news.
    private func isWorthPrinting(_ event: ClientEvent) -> Bool {
        let transition = event.transition
        return switch transition.to {
        case .draining, .closed:
            event.missedCount > 0
        case .idle, .waitingForNetwork, .connecting, .ready, .backingOff, .gaveUp:
            event.missedCount > 0 || record.lossCount > 0 || record.pendingEnd != nil
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
