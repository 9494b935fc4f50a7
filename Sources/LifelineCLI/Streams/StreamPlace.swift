internal import LifelineCore

/// Where a message stands in a delimited stream.
struct StreamPlace: CustomStringConvertible {
    /// The stream, as the user calls it.
    let name: String
    /// The messages before this place.
    private(set) var messageCount = 0
    /// Behind all lengths and messages before this place.
    private var byteOffset = 0

    init(name: String) {
        self.name = name
    }

    /// Moves behind a message.
    ///
    /// - Parameter byteCount: how long it is, its length included.
    mutating func advance(by byteCount: Int) {
        messageCount += 1
        byteOffset += byteCount
    }

    /// The message that begins here, in words.
    var description: String { "message \(messageCount + 1) of \(name), at byte \(byteOffset)" }

    /// The failure for a stream that does not go on with a message here.
    func failure(for error: FramingError) -> CommandFailure {
        let text =
            switch error.code {
            case .frameTooLarge: "It is longer than --limit allows. Is this a delimited stream?"
            case .truncatedFrame: "The stream ends inside a message."
            default: "The bytes here are not the length of a message. Is this a delimited stream?"
            }
        return CommandFailure(status: .badData, message: "Cannot read \(self). \(text)")
    }
}
