import FaultSupport
import SessionCutSupport

/// What came of a run.
struct CutReport {
    let messageCount: Int
    var cutCounts: [RelayCut: Int] = [:]
    var connectionCount = 0
    /// From when the client was started to when everything was processed.
    var duration = Duration.zero
    var tally: CutTally?
    /// What else went wrong.
    var problems: [String] = []

    init(messageCount: Int) {
        self.messageCount = messageCount
    }

    /// Adds what the client said of its session, and the relay of connections.
    mutating func add(client events: [FaultEvent], relay relayEvents: [FaultEvent]) {
        connectionCount = relayEvents.count { $0.event == .accepted }
        let begun = events.count { $0.event == .opened && $0.reason != nil }
        if begun != 1 { problems.append("There were \(begun) sessions.") }
        // So many bytes pass only when the client has its session, and behind the last cut there is another connection.
        let isCutOpen = relayEvents.contains { $0.event == .cut && $0.count ?? 0 > CutReport.openingByteCount }
        if isCutOpen, !events.contains(where: { $0.event == .opened && $0.reason == nil }) {
            problems.append("No session went on after a cut.")
        }
        for event in events where event.event == .forgotten {
            problems.append("\(event.reason ?? ""), with \(event.count ?? 0) messages in doubt")
        }
        for event in events where event.event == .ended {
            problems.append("The client has failed: \(event.reason ?? "")")
        }
    }

    /// What was wrong; empty: nothing.
    var findings: [String] {
        problems + (tally?.findings ?? ["The records could not be compared."])
    }

    /// The totals.
    var line: String {
        let silences = cutCount - count(.reset) - count(.kill)
        let kinds = "\(count(.reset)) resets, \(silences) silences, \(count(.kill)) killed relays"
        let result = [(tally?.lost, "lost"), (tally?.doubled, "doubled"), (tally?.reordered, "reordered")]
            .map { "\($0.0 ?? 0) \($0.1)" }
        return "\(messageCount) messages, \(cutCount) cuts (\(kinds)), \(connectionCount) connections "
            + "in \(duration.components.seconds) s: \(result.joined(separator: ", "))"
    }

    /// More than a hello and a welcome have together, which is about 150.
    static let openingByteCount = 300

    private var cutCount: Int { cutCounts.values.reduce(0, +) }

    private func count(_ cut: RelayCut) -> Int { cutCounts[cut] ?? 0 }
}
