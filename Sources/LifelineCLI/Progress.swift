/// A line on the terminal that counts messages while work goes on. When standard error is no terminal, it says nothing.
struct Progress {
    private let verb: String
    private let start = ContinuousClock.now
    private var lastReport = ContinuousClock.now

    init(verb: String) { self.verb = verb }

    /// Updates the line, at most ten times a second.
    mutating func report(count: Int) {
        guard isInteractive, lastReport.duration(to: .now) > .milliseconds(100) else { return }
        lastReport = .now
        writeError("\r\(verb) \(count) messages")
    }

    /// Writes the last count.
    func finish(count: Int) {
        guard isInteractive else { return }
        let seconds = start.duration(to: .now) / .seconds(1)
        let rate = seconds > 0 ? " (\(Int(Double(count) / seconds)) a second)" : ""
        writeError("\r\(verb) \(count) messages\(rate)\n")
    }
}
