@testable import LifelineCore

extension ClientMachine {
    /// No jitter, so that tests can name times. Backoff 1 s × 2, closing 5 s, a check for sleep every 15 s, pauses of
    /// at most 60 s. Three messages of at most 40 bytes in all may wait, which is more than the tests need.
    init(hasNetwork: Bool = true) {
        var configuration = Configuration()
        configuration.backoff.jitter = 0
        configuration.sendQueue.maximumMessageCount = 3
        configuration.sendQueue.maximumByteCount = 40
        configuration.sleepWatchInterval = .seconds(30)
        configuration.maximumPause = .seconds(60)
        self.init(configuration, seed: 1, hasNetwork: hasNetwork)
    }

    /// The state of the machine, with a word for each unusual part: `ready #1 direct due 15.0`.
    var summary: String {
        var words = ["\(state)"]
        if let linkID { words.append("#\(linkID)") }
        if directPath != nil { words.append("direct") }
        if queuedCount > 0 { words.append("queued \(queuedCount)") }
        if queue.byteCount != 10 * queuedCount { words.append("of \(queue.byteCount) bytes") }
        if let pauseEnd = manager.pauseEnd { words.append("pause \(Double(pauseEnd.nanoseconds) / 1e9)") }
        if let nextDeadline { words.append("due \(Double(nextDeadline.nanoseconds) / 1e9)") }
        return words.joined(separator: " ")
    }
}

/// Actions as a line that fits a table: `→ connecting started (1), connect 1`. A step that is published at once is
/// written as the step, one that is not as `… held`.
func line(_ actions: [ClientMachine.Action]) -> String {
    var words: [String] = []
    var index = 0
    while index < actions.count {
        defer { index += 1 }
        switch actions[index] {
        case .transition(let step):
            words.append(line([ConnectionManager.Action.transition(step)]))
            if index + 1 < actions.count, case .publish(let next) = actions[index + 1], next.transition == step {
                words[words.count - 1] += line(next.counts)
                index += 1
            } else {
                words[words.count - 1] += " held"
            }
        case .publish(let step): words.append("publish \(step.transition.to)\(line(step.counts))")
        case .connect(let id): words.append("connect \(id)")
        case .use(let id): words.append("use \(id)")
        case .abort(let id, let reason):
            words.append("abort \(id) \(reason.code)\(reason.error.map { " \($0.code)" } ?? "")")
        case .close(let id): words.append("close \(id)")
        case .probe(let id): words.append("probe \(id)")
        case .handOver(let send, let id): words.append("offer m\(send) to \(id)")
        case .withdraw(let send): words.append("withdraw m\(send)")
        case .endSend(let ended, let id):
            words.append("m\(ended.id) \(line(ended.outcome))\(id.map { " by \($0)" } ?? "")")
        case .finish: words.append("finish")
        }
    }
    return words.joined(separator: ", ")
}

private func line(_ counts: MessageCounts?) -> String {
    counts.map { " lost \($0.undelivered.map { "\($0)" } ?? "?") of \($0.accepted)" } ?? ""
}

private func line(_ outcome: SendQueue.Outcome) -> String {
    if case .failed(let code) = outcome { "\(code)" } else { "\(outcome)" }
}

extension ClosureReport {
    /// Both sides ended; one of three messages did not arrive.
    static let inOrder = ClosureReport(acceptedFrameCount: 3, unacknowledgedFrameCount: 1)
    static let reset = ClosureReport(
        failure: ConnectionError(code: .closedByPeer, message: "reset"),
        acceptedFrameCount: 3,
        unacknowledgedFrameCount: 1
    )
    static let withinFrame = ClosureReport(
        failure: ConnectionError(code: .truncated, message: "cut"),
        acceptedFrameCount: 3,
        unacknowledgedFrameCount: 1
    )
    static let violated = ClosureReport(
        failure: ConnectionError(code: .protocolViolation, message: "no frame"),
        acceptedFrameCount: 3,
        unacknowledgedFrameCount: 1
    )
    static let withoutPeersEnd = ClosureReport(
        peerEndedInTime: false,
        acceptedFrameCount: 3,
        unacknowledgedFrameCount: 1
    )
    /// The peer was silent from the beginning.
    static let silent = ClosureReport(
        failure: ConnectionError(code: .heartbeatTimeout, message: "silent"),
        acceptedFrameCount: 3,
        unacknowledgedFrameCount: nil
    )
}
