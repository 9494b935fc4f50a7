import FaultSupport
import Foundation

/// The table, written line by line as results come.
struct Report {
    /// Whether exceeded bounds fail the run, as other failures do.
    let areTimesBound: Bool
    private var missedLines: [String] = []

    var isMissed: Bool { !missedLines.isEmpty }

    init(areTimesBound: Bool) {
        self.areTimesBound = areTimesBound
    }

    private static let widths = [24, 18, 13, 15, 15, 7, 6, 9]

    func begin() {
        write(["fault", "noticed as", "to make, ms", "to notice, ms", "to heal, ms", "sent", "lost", "reported"], "")
    }

    /// - Throws: `CancellationError`: an interrupted trial has no outcome.
    mutating func add(_ outcome: Outcome) throws {
        try Task.checkCancellation()
        let misses = outcome.misses + outcome.delays
        let line = write(
            [
                outcome.name, outcome.reason, text(outcome.applied), text(outcome.noticed), text(outcome.healed),
                "\(outcome.messages.sent)",
                "\(outcome.messages.lost)", "\(outcome.messages.reported)",
            ],
            (misses.isEmpty ? "ok" : "MISSED: " + misses.joined(separator: "; "))
                + (outcome.note.isEmpty ? "" : " (\(outcome.note))")
        )
        if !(areTimesBound ? misses : outcome.misses).isEmpty { missedLines.append(line) }
    }

    /// Repeats the failures, for readers who see only the end of the output.
    func end() {
        guard isMissed else { return }
        put("What failed, of all that is above:\n" + missedLines.joined())
    }

    /// One duration, or the 50th and 99th percentile and the maximum of many.
    private func text(_ durations: [Duration]) -> String {
        switch durations.count {
        case 0: return "-"
        case 1: return number(durations[0])
        default:
            let durations = Durations(durations)
            return [durations.percentile(50), durations.percentile(99), durations.maximum].map(number)
                .joined(separator: "/")
        }
    }

    private func number(_ duration: Duration) -> String { "\(Int(duration.milliseconds.rounded()))" }

    @discardableResult private func write(_ cells: [String], _ rest: String) -> String {
        let columns = zip(cells, Report.widths).map { cell, width in
            cell + String(repeating: " ", count: max(0, width - cell.count))
        }
        let line = (columns + [rest]).joined(separator: " ") + "\n"
        put(line)
        return line
    }

    /// Unbuffered, also into a file.
    private func put(_ text: String) {
        FileHandle.standardOutput.write(Data(text.utf8))
    }
}
