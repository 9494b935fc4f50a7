/// Compares the first echo of a run and one in 64 with the sent message, too few to affect the times.
struct EchoCheck {
    private var untilNext = 0

    /// - Parameters:
    ///   - count: how many have arrived together.
    ///   - isEqual: whether the first of them equals the sent message.
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
