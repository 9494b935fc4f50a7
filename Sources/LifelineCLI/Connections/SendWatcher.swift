internal import Lifeline
internal import LifelineCore
internal import LifelineMessages

/// Follows the steps of a client that sends: reports lost and restored connections to the user, and ends the client
/// when no other connection can be expected.
actor SendWatcher<Received: CarriedContent, Sent: DelimitedMessage> {
    private let client: Client<Received, Sent>
    private let events: ClientEvents.AsyncIterator
    private let words: StepWords
    private let isQuiet: Bool
    /// Whether the client ends when everything was sent and the peer ends the connection.
    private let endsWithPeer: Bool
    private var record = SendRecord()
    /// The lines to print if the pending end turns out to be a loss.
    private var heldLines: [String] = []
    private var maximumHeldCount: Int { 100 }

    /// Make it before the client runs, so that it misses no step.
    init(client: Client<Received, Sent>, words: StepWords, isQuiet: Bool, endsWithPeer: Bool) {
        self.client = client
        self.events = client.events.makeAsyncIterator()
        self.words = words
        self.isQuiet = isQuiet
        self.endsWithPeer = endsWithPeer
    }

    /// Notes that all messages were accepted, the last one by the connection that this step made (0 if there was none).
    func sendingFinished(lastConnection: UInt64) async {
        let (lossCount, hadEnded) = (record.lossCount, record.pendingEnd != nil)
        record.sendingFinished(lastConnection: lastConnection)
        if record.lossCount > lossCount { printHeldLines() }
        heldLines = []
        if endsWithPeer, hadEnded, record.lossCount == lossCount { await client.close() }
    }

    /// Closes the client, whose peer may go on sending.
    func stop() async {
        record.stopped()
        await client.close()
    }

    /// Follows the client to its end.
    func run() async {
        var events = events
        while let event = await events.next() { await handle(event) }
    }

    /// Reports the result.
    ///
    /// - Parameter isJSON: whether the report is JSON for a program.
    /// - Throws: `CommandFailure` when no further connection could be made, or the last one broke.
    func finish(sentCount: Int, isJSON: Bool) throws {
        record.clientClosed()
        printHeldLines()
        if isJSON {
            try writeErrorLine(json: record.report(sentCount: sentCount))
        } else if let summary = record.summary(sentCount: sentCount), !isQuiet {
            tellStep(summary)
        }
        if let failure = record.failure(in: words) { throw failure }
    }

    private func handle(_ event: ClientEvent) async {
        let lossCount = record.lossCount
        record.record(event, isMessageWaiting: client.queuedMessageCount > 0)
        if record.lossCount > lossCount { printHeldLines() }
        if isWorthPrinting(event), let line = words.line(for: event) {
            if heldLines.count == maximumHeldCount { heldLines.removeFirst() }
            heldLines.append(line)
        }
        if record.pendingEnd == nil { printHeldLines() }
        let transition = event.transition
        let isPeersEnd = transition.from == .ready && transition.to != .draining && transition.reason.isOrderlyEnd
        if transition.to == .gaveUp || endsWithPeer && record.isSendingFinished && isPeersEnd {
            // It returns at once: there is no connection to drain.
            await client.close()
        }
    }

    private func printHeldLines() {
        if !isQuiet { for line in heldLines { tellStep(line) } }
        heldLines = []
    }

    /// The first connection, the regular end, and steps between the receiver's end and this side's are not printed.
    private func isWorthPrinting(_ event: ClientEvent) -> Bool {
        if words.isVerbose { return true }
        let transition = event.transition
        return switch transition.to {
        case .draining, .closed, .gaveUp:
            event.missedCount > 0
        case .idle, .waitingForNetwork, .connecting, .ready, .backingOff:
            event.missedCount > 0 || record.lossCount > 0 || record.pendingEnd != nil
                || transition.to == .backingOff && !record.isSendingFinished || transition.attempt > 1
        }
    }
}
