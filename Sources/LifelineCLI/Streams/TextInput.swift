internal import LifelineCore
internal import LifelineMessages
internal import LifelineReflection

/// A file that is read in pieces, and can be copied.
final class OpenFile: Sendable {
    private let file: InputFile
    let name: String

    init(_ file: consuming InputFile) {
        name = file.name
        self.file = file
    }

    /// Waits for the next bytes; returns none at the end, and when the task is cancelled.
    func readChunk() async throws(CommandFailure) -> [UInt8] {
        do {
            return try await file.readChunk()
        } catch let failure as CommandFailure {
            throw failure
        } catch {
            return []
        }
    }
}

/// Reads messages of one type from text, in a file or an option.
struct TextInput {
    /// The most typed bytes of a line that the terminal keeps (`N_TTY_BUF_SIZE` of Linux, less one).
    private static let maximumTypedCount = 4095
    private static let typingAdvice =
        "A terminal takes the first 4,095 bytes of a line only; longer messages can come from a file or a pipe."

    /// Nil for the text of an option.
    private let file: OpenFile?
    /// The rest of an option's text, which was not read yet.
    private var literal: [UInt8]
    /// The beginning of a line that is not complete yet.
    private var line: [UInt8] = []
    private let encoder: FrameEncoder
    private var reader: TextMessageReader
    /// Whether a user types the text: a wrong line is reported, and the next one can be right.
    private let isTyped: Bool

    /// - Parameters:
    ///   - byteLimit: the most bytes of an encoded message.
    ///   - isTyped: whether a user types the text, line by line.
    init(_ file: consuming InputFile, _ decoder: MessageTextDecoder, byteLimit: Int, isTyped: Bool = false) {
        let file = OpenFile(file)
        self.init(file, [], of: file.name, decoder, byteLimit: byteLimit, isTyped: isTyped)
    }

    /// - Parameter option: the name of the option for the user.
    init(_ text: String, of option: String, _ decoder: MessageTextDecoder, byteLimit: Int) {
        self.init(nil, Array(text.utf8), of: option, decoder, byteLimit: byteLimit, isTyped: false)
    }

    private init(
        _ file: OpenFile?,
        _ literal: [UInt8],
        of name: String,
        _ decoder: MessageTextDecoder,
        byteLimit: Int,
        isTyped: Bool
    ) {
        (self.file, self.literal, self.isTyped) = (file, literal, isTyped)
        encoder = FrameEncoder(maximumFrameLength: byteLimit)
        reader = TextMessageReader(decoder, of: name, limit: byteLimit)
    }

    /// Waits for the next messages.
    ///
    /// - Returns: whether this was the end.
    mutating func read(into messages: inout [RawMessage]) async throws(CommandFailure) -> Bool {
        let chunk: [UInt8]
        if let file {
            chunk = try await file.readChunk()
        } else {
            chunk = literal
            literal = []
        }
        if isTyped {
            readLines(chunk, into: &messages)
        } else {
            try read(chunk, into: &messages)
        }
        return chunk.isEmpty
    }

    private mutating func read(_ text: [UInt8], into messages: inout [RawMessage]) throws(CommandFailure) {
        try reader.read(text) { message in
            let bytes = try message.serializedBytes()
            try encoder.checkPayload(ofLength: bytes.count)
            messages.append(RawMessage(bytes: bytes))
        }
    }

    /// Reads the lines that end in a chunk, each as a separate text, so that an unclosed brace in one of them does not
    /// affect the next.
    private mutating func readLines(_ chunk: [UInt8], into messages: inout [RawMessage]) {
        line += chunk
        while let end = line.firstIndex(of: UInt8(ascii: "\n"))
            ?? (chunk.isEmpty && !line.isEmpty ? line.count - 1 : nil)
        {
            let text = Array(line[...end])
            line.removeFirst(text.count)
            do throws(CommandFailure) {
                try read(text, into: &messages)
                try read([], into: &messages)
            } catch {
                reader.skip()
                let advice = text.count >= Self.maximumTypedCount ? " \(Self.typingAdvice)" : ""
                let words = "lifeline: not sent: \(error.message)\(advice)"
                writeErrorLine(TerminalStyle.error.line(words.escaped(limit: .max)))
            }
        }
    }
}
