internal import Foundation

extension Results {
    /// The results as people read them: a table for each panel.
    ///
    /// - Parameter contenders: all of them, in the order in which they are shown.
    public func table(of contenders: [String]) -> String {
        panels.map { $0.table(of: contenders) }.joined(separator: "\n\n")
    }
}

extension Results.Panel {
    fileprivate func table(of contenders: [String]) -> String {
        let lines = self.contenders(of: contenders).map { contender in
            [contender] + workloads.map { cell($0, contender) }
        }
        return alignedTable([["\(self.case), \(unit)"] + workloads] + lines)
    }

    private func cell(_ workload: String, _ contender: String) -> String {
        guard let row = row(workload, contender) else { return "" }
        let value = row.value < 10 ? String(format: "%.1f", row.value) : String(format: "%.0f", row.value)
        let isReference = row == reference(of: workload)
        return isReference ? value + "        " : value + String(format: " (%5.2f)", row.ratio)
    }
}

/// Lines of cells in columns; the first column is aligned to the left, and the others to the right.
public func alignedTable(_ lines: [[String]]) -> String {
    let first = max(30, lines.map { ($0.first ?? "").count }.max() ?? 0)
    return lines.map { line in
        let cells = line.dropFirst().map { padding(of: $0, to: 17) + $0 }
        let name = line.first ?? ""
        return name + padding(of: name, to: first) + cells.joined()
    }
    .joined(separator: "\n")
}

private func padding(of text: String, to width: Int) -> String {
    String(repeating: " ", count: max(0, width - text.count))
}
