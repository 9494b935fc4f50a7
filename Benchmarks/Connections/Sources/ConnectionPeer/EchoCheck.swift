/// Compares one echo in 64 with what was sent, the first one of a run among them: too few to be seen in times.
struct EchoCheck {
    private var untilNext = 0

    /// - Parameters:
    ///   - count: how many have come together.
    ///   - isEqual: whether the first of them is what was sent.
    mutating func received(_ count: Int = 1, _ isEqual: () -> Bool) throws {
        defer { untilNext -= count }
        guard untilNext <= 0 else { return }
        untilNext = 64
        guard isEqual() else { throw WrongEcho() }
    }
}

struct WrongEcho: Error, CustomStringConvertible {
    var description: String { "What came back is not what was sent." }
}

struct WrongCount: Error, CustomStringConvertible {
    var description: String { "Not as many messages came as were sent." }
}
