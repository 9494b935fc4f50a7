/// Which echoes were asked for, and what became of them.
struct EchoTally {
    let count: Int
    private(set) var askedCount = 0
    private(set) var repliedCount = 0
    private(set) var inDoubtCount = 0

    init(count: Int) { self.count = count }

    /// The next number to ask for: 1, 2, 3 and so on; nil when there is none left.
    mutating func next() -> UInt64? {
        guard askedCount < count else { return nil }
        askedCount += 1
        return UInt64(askedCount)
    }

    mutating func replied() { repliedCount += 1 }

    /// A call had been sent when its session was lost, and is asked again.
    mutating func wasInDoubt() { inDoubtCount += 1 }

    /// How it went, in a line.
    var summary: String {
        var line = "\(count) \(count == 1 ? "call" : "calls"): \(repliedCount) replied"
        if askedCount > repliedCount { line += ", \(askedCount - repliedCount) asked and not replied" }
        if count > askedCount { line += ", \(count - askedCount) not asked" }
        switch inDoubtCount {
        case 0: return line
        case 1: return line + "; 1 was in doubt when a session was lost, and was asked again"
        default: return line + "; \(inDoubtCount) were in doubt when a session was lost, and were asked again"
        }
    }
}

/// Numbers as people write them: `3–5, 8`.
func ranges(of numbers: [UInt64]) -> String {
    var ranges: [ClosedRange<UInt64>] = []
    for number in numbers.sorted() {
        if let last = ranges.last, number - last.upperBound <= 1 {
            ranges[ranges.count - 1] = last.lowerBound...number
        } else {
            ranges.append(number...number)
        }
    }
    return ranges.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)–\($0.upperBound)" }.joined(
        separator: ", "
    )
}
