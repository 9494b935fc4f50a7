/// Counts tokens, and missing and repeated ones, by their numbers.
struct TokenTally {
    private(set) var receivedCount = 0
    private(set) var lostCount = 0
    private(set) var repeatedCount = 0
    /// The highest number so far.
    private var lastNumber = 0

    mutating func receive(number: Int) {
        receivedCount += 1
        if number > lastNumber {
            lostCount += number - lastNumber - 1
            lastNumber = number
        } else {
            repeatedCount += 1
        }
    }

    /// The stream has ended. It should have had `expectedCount` tokens.
    mutating func finish(expectedCount: Int) {
        lostCount += max(expectedCount - lastNumber, 0)
    }

    var isComplete: Bool { lostCount == 0 && repeatedCount == 0 }

    /// The last line of the client.
    func summary(connectionCount: Int) -> String {
        func count(_ number: Int, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }
        func fault(_ number: Int, _ word: String) -> String { "\(number == 0 ? "none" : "\(number)") \(word)" }
        return "\(count(receivedCount, "token")) over \(count(connectionCount, "connection")): "
            + "\(fault(lostCount, "lost")), \(fault(repeatedCount, "repeated"))"
    }
}
