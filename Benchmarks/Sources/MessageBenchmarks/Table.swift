internal import Foundation

extension Results {
    /// The results as people read them: a table for each case.
    var table: String {
        cases.map { table(of: $0) }.joined(separator: "\n\n")
    }

    private func table(of case: String) -> String {
        let rows = contenders.compactMap { contender -> [String]? in
            let cells = workloads.map { cell(`case`, $0, contender) }
            return cells.contains { !$0.isEmpty } ? [contender] + cells : nil
        }
        let header = ["\(`case`), \(unit(of: `case`))"] + workloads
        return ([header] + rows).map { line in
            let cells = line.dropFirst().map { pad($0, to: 17, right: true) }
            return pad(line[0], to: 30, right: false) + cells.joined()
        }
        .joined(separator: "\n")
    }

    private func cell(_ case: String, _ workload: String, _ contender: String) -> String {
        guard let row = row(`case`, workload, contender) else { return "" }
        let value = row.value < 10 ? String(format: "%.1f", row.value) : String(format: "%.0f", row.value)
        return contender == Self.reference ? value + "        " : value + String(format: " (%5.2f)", row.ratio)
    }

    private func pad(_ text: String, to width: Int, right: Bool) -> String {
        let padding = String(repeating: " ", count: max(0, width - text.count))
        return right ? padding + text : text + padding
    }
}
