internal import Lifeline
internal import LifelineCore
internal import LifelineMessages

/// Follows the steps of the client that sends: tells the user of connections that are lost and made again, and ends the
/// client when there is no hope of another one.
actor SendWatcher<Received: CarriedContent, Sent: DelimitedMessage> {
    private let client: Client<Received, Sent>
    private let events: ClientEvents.AsyncIterator
    private let words: StepWords
    private let isQuiet: Bool
    /// Whether the client ends when everything was sent and the peer ends the connection.
    private let endsWithPeer: Bool
    private var record = SendRecord()
    /// What is to be told if the end that is pending turns out to be a loss: not more than this many lines.
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

    /// All messages were accepted, the last one by the connection that this step made (0: there was none).
    func sendingFinished(lastConnection: UInt64) async {
        let (lossCount, hadEnded) = (record.lossCount, record.pendingEnd != nil)
        record.sendingFinished(lastConnection: lastConnection)
        if record.lossCount > lossCount { printHeldLines() }
        heldLines = []
        if endsWithPeer, hadEnded, record.lossCount == lossCount { await client.close() }
    }

    /// Closes the client, whose peer may send on.
    func stop() async {
        record.stopped()
        await client.close()
    }

    /// Follows the client to its end.
    func run() async {
        var events = events
        while let event = await events.next() { await handle(event) }
    }

    /// Tells how it went.
    ///
    /// - Parameter isJSON: whether a program reads that.
    /// - Throws: `CommandFailure` when no connection could be made any more, or the last one broke.
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

    /// The first connection, the regular end, and what comes between the receiver's end and ours are no news.
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
