import FaultSupport
import SessionCutSupport

/// The result of a run.
struct CutReport {
    let messageCount: Int
    var cutCounts: [RelayCut: Int] = [:]
    var connectionCount = 0
    /// The time from the start of the client until everything was processed.
    var duration = Duration.zero
    var tally: CutTally?
    /// Other failures.
    var problems: [String] = []

    init(messageCount: Int) {
        self.messageCount = messageCount
    }

    /// Adds the client's events about its session, and the relay's about connections.
    mutating func add(client events: [FaultEvent], relay relayEvents: [FaultEvent]) {
        connectionCount = relayEvents.count { $0.event == .accepted }
        let begun = events.count { $0.event == .opened && $0.reason != nil }
        if begun != 1 { problems.append("There were \(begun) sessions.") }
        // This many bytes pass only when the client has its session, and another connection follows the last cut.
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

    /// The failures; empty if there are none.
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

    /// More than the size of a hello and a welcome together, which is about 150.
    static let openingByteCount = 300

    private var cutCount: Int { cutCounts.values.reduce(0, +) }

    private func count(_ cut: RelayCut) -> Int { cutCounts[cut] ?? 0 }
}
