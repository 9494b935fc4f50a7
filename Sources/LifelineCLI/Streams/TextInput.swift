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

    /// Waits for the next bytes; empty at the end, and when the task is cancelled.
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

/// Reads messages of one type from text: a file's, or what an option says.
struct TextInput {
    /// Nil for what an option says.
    private let file: OpenFile?
    /// What is still to be read of that.
    private var literal: [UInt8]
    private let encoder: FrameEncoder
    private var reader: TextMessageReader

    /// - Parameter byteLimit: the most bytes of an encoded message.
    init(_ file: consuming InputFile, _ decoder: MessageTextDecoder, byteLimit: Int) {
        let file = OpenFile(file)
        self.init(file, [], of: file.name, decoder, byteLimit: byteLimit)
    }

    /// - Parameter option: the option, as the user calls it.
    init(_ text: String, of option: String, _ decoder: MessageTextDecoder, byteLimit: Int) {
        self.init(nil, Array(text.utf8), of: option, decoder, byteLimit: byteLimit)
    }

    private init(_ file: OpenFile?, _ literal: [UInt8], of name: String, _ decoder: MessageTextDecoder, byteLimit: Int)
    {
        (self.file, self.literal) = (file, literal)
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
        try reader.read(chunk) { message in
            let bytes = try message.serializedBytes()
            try encoder.checkPayload(ofLength: bytes.count)
            messages.append(RawMessage(bytes: bytes))
        }
        return chunk.isEmpty
    }
}
