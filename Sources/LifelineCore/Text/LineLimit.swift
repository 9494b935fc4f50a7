/// Decides which lines go into a log that a peer can fill: a few of each kind in a period. The others are counted.
package struct LineLimit: Sendable {
    /// The decision about a line.
    package enum Verdict: Sendable, Equatable {
        /// Write it. Has the number of lines of its kind left out since the last one that was written.
        case write(leftOut: Int)
        /// Leave it out.
        case leaveOut
    }

    private struct Kind {
        var periodEnd: MonotonicTime
        var writtenCount = 0
        var leftOutCount = 0
    }

    /// More kinds than a program has. Kinds above this number count as one, so that memory stays bounded.
    private static let maximumKindCount = 64

    private let lineCount: Int
    private let period: Duration
    private var kinds: [String: Kind] = [:]

    /// - Parameters:
    ///   - lineCount: the number of lines of one kind that are written in a period.
    ///   - period: the time from the first line of a kind until more are written.
    package init(lineCount: Int, period: Duration) {
        self.lineCount = lineCount
        self.period = period
    }

    /// Decides about a line.
    ///
    /// - Parameter kind: the program's own words, without any text of the peer.
    package mutating func verdict(on kind: String, now: MonotonicTime) -> Verdict {
        let kind = kinds[kind] != nil || kinds.count < Self.maximumKindCount ? kind : "others"
        var entry = kinds[kind] ?? Kind(periodEnd: now + period)
        defer { kinds[kind] = entry }
        if entry.periodEnd <= now { (entry.periodEnd, entry.writtenCount) = (now + period, 0) }
        guard entry.writtenCount < lineCount else {
            entry.leftOutCount += 1
            return .leaveOut
        }
        entry.writtenCount += 1
        defer { entry.leftOutCount = 0 }
        return .write(leftOut: entry.leftOutCount)
    }

    /// Returns and resets the numbers of unreported left-out lines of each kind, in the order of the kinds.
    package mutating func takeLeftOut() -> [(kind: String, count: Int)] {
        let leftOut = kinds.filter { $0.value.leftOutCount > 0 }.map { (kind: $0.key, count: $0.value.leftOutCount) }
        for (kind, _) in leftOut { kinds[kind]?.leftOutCount = 0 }
        return leftOut.sorted { $0.kind < $1.kind }
    }
}
