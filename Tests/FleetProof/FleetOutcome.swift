import FaultSupport
import FleetProofSupport

/// The outcome of one fault.
struct FleetOutcome {
    let name: String
    /// The description of the fault.
    let note: String
    let clientCount: Int
    let tally: FleetTally
    /// The longest pause in deliveries of each client whose pauses are measured.
    let pauses: Durations
    /// Failures other than those of messages.
    let misses: [String]

    init(
        _ name: String,
        _ note: String,
        _ tally: FleetTally,
        _ reports: [ClientReport],
        misses: [String] = []
    ) {
        (self.name, self.note, self.tally, self.misses) = (name, note, tally, misses)
        clientCount = reports.count
        pauses = Durations(of: reports)
    }

    /// - Parameter isPauseBound: whether a long pause is a failure.
    init(
        _ fault: FleetFault,
        _ note: String,
        _ tally: FleetTally,
        _ reports: [ClientReport],
        isPauseBound: Bool
    ) {
        var misses: [String] = []
        if tally.isClean, fault.isHarmless, !tally.isFlawless {
            misses.append("messages or sessions were lost, although all losses were reported")
        }
        let pause = Durations(of: reports).percentile(99)
        if isPauseBound, let bound = fault.pauseBound, pause > bound {
            misses.append("a pause of \(Int(pause.milliseconds)) ms for 1 % of the clients")
        }
        self.init(fault.rawValue, note, tally, reports, misses: misses)
    }

    var isMissed: Bool { !tally.isClean || !misses.isEmpty }

    // MARK: The table

    static let head = row([
        "fault", "clients", "delivered", "lost", "doubled", "reordered", "in doubt", "lost as told", "gaps told",
        "sessions lost",
        "pause 50 %/99 %/most, ms", "",
    ])

    var line: String {
        let counts = [
            clientCount, tally.deliveredCount, tally.lost, tally.doubled, tally.reordered, tally.inDoubt,
            tally.lostAsTold, tally.gapCount, tally.lostSessions,
        ]
        let times = [pauses.percentile(50), pauses.percentile(99), pauses.maximum].map { "\(Int($0.milliseconds))" }
        let verdict = isMissed ? "MISSED\(misses.isEmpty ? "" : ": " + misses.joined(separator: "; "))" : "ok"
        return FleetOutcome.row(
            [name] + counts.map(String.init) + [times.joined(separator: "/"), "\(verdict) (\(note))"]
        )
    }

    private static func row(_ cells: [String]) -> String {
        let widths = [16, 7, 9, 5, 7, 9, 8, 12, 9, 13, 24, 0]
        return zip(cells, widths).map { $0 + String(repeating: " ", count: max(0, $1 - $0.count)) }
            .joined(separator: " ")
    }
}

extension Durations {
    /// Never empty: client 0 is always included.
    fileprivate init(of reports: [ClientReport]) {
        self.init(reports.filter { FleetSample.contains($0.client) }.map { .nanoseconds($0.pause.longest) })
    }
}
