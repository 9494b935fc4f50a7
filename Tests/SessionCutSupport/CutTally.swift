/// The check of the records of sent messages: each has to be there once and in order.
package struct CutTally: Sendable, Hashable {
    package private(set) var lost = 0
    package private(set) var doubled = 0
    package private(set) var reordered = 0
    /// The received bytes differ from the sent ones, or the number was not sent.
    package private(set) var damaged = 0
    /// The failures, a line for each flow.
    package private(set) var findings: [String] = []

    /// - Parameter messageCount: the number of all messages; see `CutFlow.count(of:)`.
    package init(of messageCount: Int, server: [CutRecord.Entry?], client: [CutRecord.Entry?]) {
        for flow in CutFlow.allCases {
            let entries = (flow.isHandledByServer ? server : client).compactMap { $0 }.filter { $0.flow == flow }
            add(flow, entries, count: flow.count(of: messageCount))
        }
        // In the record of the wrong side, or malformed.
        let strays = [(server, true), (client, false)].map { entries, isServer in
            entries.count { $0?.flow.isHandledByServer != isServer }
        }.reduce(0, +)
        if strays > 0 {
            damaged += strays
            findings.append("\(strays) lines of the records are no entries.")
        }
    }

    private mutating func add(_ flow: CutFlow, _ entries: [CutRecord.Entry], count: Int) {
        var seen: Set<Int> = []
        var last = 0
        var (twice, late, wrong): ([Int], [Int], [Int]) = ([], [], [])
        for entry in entries {
            let number = entry.number
            guard entry.isIntact, number >= 1, number <= count else {
                wrong.append(number)
                continue
            }
            guard seen.insert(number).inserted else {
                twice.append(number)
                continue
            }
            if number < last, flow.isOrdered { late.append(number) }
            last = max(last, number)
        }
        let missing = count == 0 ? [] : (1...count).filter { !seen.contains($0) }
        lost += missing.count
        doubled += twice.count
        reordered += late.count
        damaged += wrong.count
        let kinds = [("lost", missing), ("doubled", twice), ("out of order", late), ("damaged", wrong)]
        let words = kinds.filter { !$0.1.isEmpty }.map { "\($0.1.count) \($0.0): \(CutTally.list($0.1))" }
        if !words.isEmpty { findings.append("\(flow): \(words.joined(separator: "; "))") }
    }

    /// The first few.
    private static func list(_ numbers: [Int]) -> String {
        numbers.prefix(10).map(String.init).joined(separator: ", ") + (numbers.count > 10 ? "…" : "")
    }
}
