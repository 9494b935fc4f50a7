internal import ArgumentParser

/// What a handler does wrong on purpose with one message, to see that it is found.
package enum CutSpoil: String, CaseIterable, ExpressibleByArgument, Sendable {
    /// It is left out of the record.
    case drop
    /// It is put into the record twice.
    case double
    /// It is put into the record behind the one that comes next.
    case swap

    /// The entries that are made of one.
    package func entries(for entry: CutRecord.Entry, of messageCount: Int) -> [CutRecord.Entry] {
        let victim = max(CutFlow.reports.count(of: messageCount) / 2, 1)
        guard entry.flow == .reports else { return [entry] }
        switch self {
        case .drop: return entry.number == victim ? [] : [entry]
        case .double: return entry.number == victim ? [entry, entry] : [entry]
        case .swap:
            if entry.number == victim { return [] }
            return entry.number == victim + 1 ? [entry, CutRecord.Entry(.reports, victim)] : [entry]
        }
    }
}
