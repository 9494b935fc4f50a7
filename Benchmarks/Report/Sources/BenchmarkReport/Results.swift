public import Foundation

/// The file that holds the results.
public struct Results: Codable, Sendable {
    public var rows: [Row] = []

    public init() {}

    /// Adds the results of contenders in one case on one workload. The first one is the reference for the others.
    ///
    /// - Parameter isRate: whether more is better.
    public mutating func add(
        _ values: [(contender: String, value: Double)],
        case: String,
        workload: String,
        unit: String,
        isRate: Bool = false
    ) {
        guard let reference = values.first?.value else { return }
        rows += values.map {
            Row(
                case: `case`,
                workload: workload,
                contender: $0.contender,
                value: ($0.value * 10).rounded() / 10,
                unit: unit,
                ratio: ratio(isRate ? reference : $0.value, over: isRate ? $0.value : reference)
            )
        }
    }

    /// In three digits.
    private func ratio(_ value: Double, over other: Double) -> Double? {
        let ratio = value / other
        return ratio.isFinite ? Double(ratio.inThreeDigits) : nil
    }

    /// As JSON, one row in a line, so that people can compare two files.
    public func encoded() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let rows = try rows.map { String(decoding: try encoder.encode($0), as: UTF8.self) }
        return Data("{\"rows\":[\n\(rows.joined(separator: ",\n"))\n]}\n".utf8)
    }
}

extension Results {
    /// Results that are shown together: all results of a case in one unit.
    public struct Panel: Sendable, Hashable {
        public let `case`: String
        public let unit: String
        public let rows: [Row]

        /// In the order of their first appearance.
        public var workloads: [String] { unique(rows.map(\.workload)) }

        /// The contenders of `order` that have rows.
        public func contenders(of order: [String]) -> [String] {
            order.filter { name in rows.contains { $0.contender == name } }
        }

        public func row(_ workload: String, _ contender: String) -> Row? {
            rows.first { $0.workload == workload && $0.contender == contender }
        }

        /// The reference row of a workload.
        public func reference(of workload: String) -> Row? { rows.first { $0.workload == workload } }
    }

    /// In the order of their first appearance.
    public var panels: [Panel] {
        unique(rows.map { [$0.case, $0.unit] }).map { name in
            Panel(case: name[0], unit: name[1], rows: rows.filter { [$0.case, $0.unit] == name })
        }
    }
}

private func unique<Element: Hashable>(_ elements: [Element]) -> [Element] {
    var seen: Set<Element> = []
    return elements.filter { seen.insert($0).inserted }
}
