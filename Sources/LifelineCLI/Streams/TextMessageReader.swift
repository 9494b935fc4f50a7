internal import LifelineMessages
internal import LifelineReflection

/// Reads messages of one type from text that arrives in pieces.
struct TextMessageReader {
    private let name: String
    private let decoder: MessageTextDecoder
    private var splitter: MessageSplitter
    private(set) var messageCount = 0

    /// - Parameters:
    ///   - name: the name of the text for the user.
    ///   - limit: the most bytes of an encoded message.
    init(_ decoder: MessageTextDecoder, of name: String, limit: Int) {
        self.name = name
        self.decoder = decoder
        // JSON may have an escape of six characters for a byte, and also names.
        splitter = MessageSplitter(decoder.form, limit: max(limit, 1 << 20) * 8)
    }

    /// Passes on the messages that end in a piece of the text.
    ///
    /// - Parameters:
    ///   - chunk: the next piece; empty at the end of the text.
    ///   - take: receives each message. Any error other than a `CommandFailure` means that the message cannot be
    ///     encoded.
    /// - Throws: `CommandFailure`, after the messages before the failure were passed on.
    mutating func read(_ chunk: [UInt8], _ take: (DynamicMessage) throws -> Void) throws(CommandFailure) {
        var pieces: [MessageSplitter.Piece] = []
        let result = split(chunk, into: &pieces)
        for piece in pieces { try read(piece, take) }
        try result.get()
    }

    /// Drops the message that has begun, so that the next text starts new.
    mutating func skip() {
        var pieces: [MessageSplitter.Piece] = []
        splitter.finish(into: &pieces)
    }

    private mutating func split(
        _ chunk: [UInt8],
        into pieces: inout [MessageSplitter.Piece]
    ) -> Result<Void, CommandFailure> {
        if chunk.isEmpty {
            splitter.finish(into: &pieces)
            return .success(())
        }
        do throws(MessageSplitter.TooLong) {
            try splitter.split(chunk, into: &pieces)
            return .success(())
        } catch {
            let text = "The text of a message of \(name), at line \(error.line), is longer than --limit allows."
            return .failure(CommandFailure(status: .badData, message: text))
        }
    }

    private mutating func read(
        _ piece: MessageSplitter.Piece,
        _ take: (DynamicMessage) throws -> Void
    ) throws(CommandFailure) {
        do {
            try take(try decoder.message(piece.text))
        } catch let failure as CommandFailure {
            throw failure
        } catch {
            let text =
                switch error {
                case let error as MessageError: error.words
                default: "It is longer than --limit allows."
                }
            let place = "message \(messageCount + 1) of \(name), at line \(piece.line)"
            throw CommandFailure(status: .badData, message: "Cannot encode \(place). \(text)")
        }
        messageCount += 1
    }
}
