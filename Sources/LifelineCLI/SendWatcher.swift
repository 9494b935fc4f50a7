internal import Lifeline
internal import LifelineCore
internal import LifelineMessages

/// Follows the steps of the client that sends: tells the user of connections that are lost and made again, and ends the
/// client when there is no hope of another one.
actor SendWatcher {
    private let client: Client<RawMessage, RawMessage>
    private let isQuiet: Bool
    private var isSendingFinished = false
    private var giveUpReason: TransitionReason?
    private var lossCount = 0
    /// Messages that did not reach the peer's system; nil when that is not known of some connection.
    private var undeliveredCount: Int? = 0
    /// Why the last connection broke, when none was made after it.
    private var lastLoss: ClientEvent?
    private var lastReason: TransitionReason?

    init(client: Client<RawMessage, RawMessage>, isQuiet: Bool) {
        self.client = client
        self.isQuiet = isQuiet
    }

    /// All messages were accepted: a receiver that has had enough may end before this side does.
    func sendingFinished() {
        isSendingFinished = true
    }

    /// Follows the client to its end.
    func run() async {
        async let dropping: Void = dropMessages()
        for await event in client.events { await handle(event) }
        await dropping
    }

    /// Tells how it went.
    ///
    /// - Throws: `CommandFailure` when no connection could be made any more, or the last one broke.
    func finish(sentCount: Int) throws(CommandFailure) {
        if lossCount > 0, !isQuiet {
            let count = undeliveredCount.map(String.init) ?? "an unknown number"
            let losses = lossCount == 1 ? "1 connection was" : "\(lossCount) connections were"
            writeError("lifeline: sent \(sentCount) messages, of which \(count) did not arrive; \(losses) lost\n")
        }
        if let error = giveUpReason?.error, error.code == .tlsConfigurationInvalid, let failure = CommandFailure(error)
        {
            throw failure
        }
        if let giveUpReason {
            let error = giveUpReason.error.map { "\($0)" } ?? "\(giveUpReason)"
            throw CommandFailure(status: .unavailable, message: error)
        }
        if let error = lastLoss?.transition.reason.asFailure ?? lastReason?.error {
            throw CommandFailure(status: .inputOutput, message: "\(error)")
        }
    }

    private func handle(_ event: ClientEvent) async {
        let transition = event.transition
        lastReason = transition.reason
        if transition.from == .ready, transition.to != .draining { connectionLost(event) }
        if transition.to == .ready { lastLoss = nil }
        if transition.to == .gaveUp {
            giveUpReason = transition.reason
            // It returns at once: there is no connection to drain.
            await client.close()
        } else if isNews(transition), !isQuiet {
            writeError("lifeline: \(event)\n")
        }
    }

    private func connectionLost(_ event: ClientEvent) {
        let isInOrder = event.transition.reason.error == nil && event.undeliveredMessageCount ?? 0 == 0
        if isInOrder, isSendingFinished { return }
        lossCount += 1
        undeliveredCount = event.undeliveredMessageCount.flatMap { count in undeliveredCount.map { $0 + count } }
        if !isInOrder { lastLoss = event }
    }

    /// The first connection, the regular end, and what comes between the receiver's end and ours are no news.
    private func isNews(_ transition: ConnectionTransition) -> Bool {
        switch transition.to {
        case .draining, .closed: false
        case .idle, .waitingForNetwork, .connecting, .ready, .backingOff, .gaveUp:
            lossCount > 0 || transition.to == .backingOff && !isSendingFinished || transition.attempt > 1
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

extension TransitionReason {
    /// The reason as an error for the user.
    fileprivate var asFailure: ConnectionError {
        error
            ?? ConnectionError(code: .closedByPeer, message: "The peer ended the connection before it took everything.")
    }
}
