internal import Foundation

extension Results {
    /// The results for people: a table for each panel.
    ///
    /// - Parameter contenders: all contenders, in the order of display.
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
        if isReference { return value + "         " }
        let ratio = row.ratio?.inThreeDigits ?? "-"
        return value + " (" + String(repeating: " ", count: max(0, 6 - ratio.count)) + ratio + ")"
    }
}

extension Double {
    /// A number with three significant digits, or all digits of a larger number: 0.0123, 1.23, 12.3, 1234.
    var inThreeDigits: String {
        guard isFinite, self != 0 else { return String(format: "%.2f", self) }
        let magnitude = Int(log10(abs(self)).rounded(.down))
        return String(format: "%.\(max(0, 2 - magnitude))f", self)
    }
}

/// Lines of cells in columns; the first column is aligned to the left, and the others to the right.
public func alignedTable(_ lines: [[String]]) -> String {
    let widths = (0..<(lines.map(\.count).max() ?? 0)).map { column in
        let longest = lines.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0
        return max(longest + 2, column == 0 ? 30 : 17)
    }
    return lines.map { line in
        line.enumerated().map { column, cell in
            let padding = String(repeating: " ", count: widths[column] - cell.count)
            return column == 0 ? cell + padding : padding + cell
        }
        .joined()
    }
    .joined(separator: "\n")
}
