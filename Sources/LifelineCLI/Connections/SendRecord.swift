internal import Lifeline
internal import LifelineCore

/// The result of the steps of a client that sends: the lost connections, the messages that did not arrive, and the end
/// of the command.
struct SendRecord {
    /// The step that made the connection which took the last message; 0 when there was none; nil while there may be
    /// more to send. A receiver that has enough messages may end before this side.
    private var lastUsedConnection: UInt64?
    /// An end in order, which is a loss only if another message is sent after it.
    private(set) var pendingEnd: ClientEvent?
    private(set) var lossCount = 0
    /// The number of messages that did not reach the peer's system; nil when it is unknown for some connection.
    private var undeliveredCount: Int? = 0
    /// Whether steps were missed, in which connections may have been lost.
    private var hasGaps = false
    /// The error of the last connection, when none was made after it.
    private var lastFailure: ConnectionError?
    private var giveUpReason: TransitionReason?
    /// Whether this side has ended the connection without waiting for the peer's end.
    private var isStopped = false

    var isSendingFinished: Bool { lastUsedConnection != nil }

    /// Notes that all messages were accepted, the last one by the connection that this step made (0 if there was none).
    mutating func sendingFinished(lastConnection: UInt64) {
        lastUsedConnection = lastConnection
        guard let pendingEnd else { return }
        self.pendingEnd = nil
        if pendingEnd.transition.number < lastConnection { count(pendingEnd) }
    }

    /// Notes that there are enough replies. The peer, which may go on sending, need not end the connection in order.
    mutating func stopped() {
        isStopped = true
    }

    /// Notes that the client is closed. Messages left to send were to be sent after the last end.
    mutating func clientClosed() {
        losePendingEnd()
    }

    /// Records a step.
    ///
    /// - Parameter isMessageWaiting: whether a message waits for a connection.
    mutating func record(_ event: ClientEvent, isMessageWaiting: Bool = false) {
        let transition = event.transition
        if event.missedCount > 0 {
            (hasGaps, undeliveredCount) = (true, nil)
            lastFailure = .stepsMissed(event.missedCount)
        }
        if transition.from == .draining || (transition.from == .ready && transition.to != .draining) {
            connectionEnded(event)
        }
        if transition.to == .ready { lastFailure = nil }
        if transition.to == .gaveUp { giveUpReason = transition.reason }
        if isMessageWaiting { losePendingEnd() }
    }

    private mutating func connectionEnded(_ event: ClientEvent) {
        let reason = event.transition.reason
        if isStopped, event.transition.from == .draining, event.undeliveredMessageCount ?? 0 == 0 { return }
        let isInOrder = reason.isOrderlyEnd && event.undeliveredMessageCount ?? 0 == 0
        if isInOrder {
            if reason.code == .drained { return }
            if let lastUsedConnection, event.transition.number > lastUsedConnection { return }
            // This connection took messages, after the end of the one before.
            if event.acceptedMessageCount ?? 0 > 0 { losePendingEnd() }
            pendingEnd = event
        } else {
            losePendingEnd()
            count(event)
            lastFailure = reason.asFailure
        }
    }

    private mutating func losePendingEnd() {
        if let pendingEnd { count(pendingEnd) }
        pendingEnd = nil
    }

    private mutating func count(_ end: ClientEvent) {
        lossCount += 1
        undeliveredCount = end.undeliveredMessageCount.flatMap { count in undeliveredCount.map { $0 + count } }
    }

    /// Returns the result in a line; nil when no connection was lost.
    func summary(sentCount: Int) -> String? {
        guard lossCount > 0 || hasGaps else { return nil }
        let messages = sentCount == 1 ? "1 message" : "\(sentCount) messages"
        let count = undeliveredCount.map(String.init) ?? "an unknown number"
        let outcome = "sent \(messages), of which \(count) did not arrive"
        if lossCount == 0 { return outcome }
        let losses = lossCount == 1 ? "1 connection was" : "\(lossCount) connections were"
        return "\(outcome); \(hasGaps ? "at least " : "")\(losses) lost"
    }

    /// Returns the result for a program.
    func report(sentCount: Int) -> SendReport {
        SendReport(sent: sentCount, lostConnections: lossCount, undelivered: undeliveredCount)
    }

    /// Returns the failure of the command, if it has given up with messages left to send, or the last connection broke.
    func failure(in words: StepWords) -> CommandFailure? {
        if let giveUpReason, !isSendingFinished { return words.failure(forGivingUp: giveUpReason) }
        // Over TLS 1.3 a refused client learns it only after it has sent.
        return lastFailure.map { words.failure(for: $0) }
    }
}

/// The report of `send --json` at its end.
struct SendReport: Encodable {
    let sent: Int
    let lostConnections: Int
    /// Nil if unknown.
    let undelivered: Int?
}

extension TransitionReason {
    /// Whether the peer ended the connection in order, or both sides did.
    var isOrderlyEnd: Bool {
        let peersEnd = TransitionReason(.closedByPeer)
        // After the last attempt's connection, the same end has another reason.
        return [peersEnd, TransitionReason(.attemptsUsedUp, error: peersEnd.asError), TransitionReason(.drained)]
            .contains(self)
    }

    /// The reason as an error for the user.
    fileprivate var asFailure: ConnectionError {
        guard isOrderlyEnd else { return asError }
        return ConnectionError(code: .closedByPeer, message: "The peer ended the connection before it took everything.")
    }
}

extension ConnectionError {
    fileprivate static func stepsMissed(_ count: Int) -> ConnectionError {
        ConnectionError(
            code: .closedByPeer,
            message: "The connection was lost among \(count) steps that came too fast to be followed."
        )
    }
}
