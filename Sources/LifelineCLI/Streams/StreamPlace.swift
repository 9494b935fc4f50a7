internal import LifelineCore

/// The place of a message in a delimited stream.
struct StreamPlace: CustomStringConvertible {
    /// The name of the stream for the user.
    let name: String
    /// The number of messages before this place.
    private(set) var messageCount = 0
    /// The offset in bytes of this place.
    private var byteOffset = 0

    init(name: String) {
        self.name = name
    }

    /// Moves past a message.
    ///
    /// - Parameter byteCount: the length of the message, including its length prefix.
    mutating func advance(by byteCount: Int) {
        messageCount += 1
        byteOffset += byteCount
    }

    /// The message that begins here, in words for the user.
    var description: String { "message \(messageCount + 1) of \(name), at byte \(byteOffset)" }

    /// Returns the failure for a stream that has no valid message here.
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
