package import FaultSupport

extension Spoil {
    /// The entries that replace one entry.
    package func entries(for entry: CutRecord.Entry, of messageCount: Int) -> [CutRecord.Entry] {
        guard entry.flow == .reports else { return [entry] }
        let victim = max(CutFlow.reports.count(of: messageCount) / 2, 1)
        return numbers(for: entry.number, spoiling: victim).map {
            $0 == entry.number ? entry : CutRecord.Entry(.reports, $0)
        }
    }
}
