/// A line on the terminal that counts during work. When standard error is not a terminal, nothing is printed.
struct Progress {
    private let verb: String
    private let noun: String
    private let isShown: Bool
    private let start = ContinuousClock.now
    private var lastReport = ContinuousClock.now

    /// - Parameters:
    ///   - noun: the name of the counted things.
    ///   - isQuiet: whether to print nothing even on a terminal.
    init(verb: String, noun: String = "messages", isQuiet: Bool = false) {
        (self.verb, self.noun) = (verb, noun)
        isShown = isInteractive && !isQuiet
    }

    /// Updates the line, at most ten times a second.
    mutating func report(count: Int) {
        guard isShown, lastReport.duration(to: .now) > .milliseconds(100) else { return }
        lastReport = .now
        writeError(line(count: count))
    }

    /// Writes the last count.
    func finish(count: Int) {
        guard isShown else { return }
        writeError(line(count: count) + "\n")
    }

    /// Replaces the line before, which may have been longer.
    private func line(count: Int) -> String {
        let seconds = start.duration(to: .now) / .seconds(1)
        let rate = seconds > 0 ? " (\(Int(Double(count) / seconds)) a second)" : ""
        return "\r\u{1b}[K\(verb) \(count) \(noun)\(rate)"
    }
}
