/// One result, as it is written to JSON.
struct Row: Codable {
    var `case`: String
    var workload: String
    var contender: String
    var value: Double
    var unit: String
    /// `value` over that of `lifeline`: 2 means twice the time or memory.
    var ratio: Double
}

/// The file that holds the results.
struct Results: Codable {
    var rows: [Row] = []

    /// The contender that the others are compared with.
    static let reference = Contender.names[0]

    /// Adds the results of contenders, the reference among them, in one case on one workload.
    mutating func add(_ values: [(contender: String, value: Double)], case: String, workload: String, unit: String) {
        let reference = values.first { $0.contender == Self.reference }?.value ?? .nan
        rows += values.map {
            Row(
                case: `case`,
                workload: workload,
                contender: $0.contender,
                value: rounded($0.value, to: 10),
                unit: unit,
                ratio: rounded($0.value / reference, to: 1_000)
            )
        }
    }

    private func rounded(_ value: Double, to steps: Double) -> Double { (value * steps).rounded() / steps }
}

extension Results {
    var cases: [String] { unique(rows.map(\.case)) }
    var workloads: [String] { unique(rows.map(\.workload)) }
    var contenders: [String] { Contender.names.filter { name in rows.contains { $0.contender == name } } }

    func row(_ case: String, _ workload: String, _ contender: String) -> Row? {
        rows.first { $0.case == `case` && $0.workload == workload && $0.contender == contender }
    }

    func unit(of case: String) -> String { rows.first { $0.case == `case` }?.unit ?? "" }

    /// In the order in which they first come.
    private func unique(_ names: [String]) -> [String] {
        names.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    }
}
