internal import Glibc
internal import LifelineCore
internal import LifelineMessages
internal import LifelineReflection

/// Reads messages as text, and writes them as a delimited stream.
struct StreamEncoder: ~Copyable {
    private let input: InputFile
    private let decoder: MessageTextDecoder
    private let encoder: FrameEncoder
    private var splitter: MessageSplitter
    private var output: [UInt8] = []
    private var messageCount = 0
    private var progress = Progress(verb: "encoded")

    /// - Parameter limit: the most bytes of an encoded message.
    init(input: consuming InputFile, decoder: MessageTextDecoder, form: TextForm, limit: Int) {
        self.input = input
        self.decoder = decoder
        encoder = FrameEncoder(maximumFrameLength: limit)
        // JSON may have an escape of six characters for a byte, and names besides.
        splitter = MessageSplitter(form, limit: max(limit, 1 << 20) * 8)
    }

    /// Runs to the end of the input.
    ///
    /// - Throws: `CommandFailure`, after the messages before the failure were written.
    mutating func run() throws(CommandFailure) {
        let result = encodeAll()
        try flush()
        try result.get()
        progress.finish(count: messageCount)
    }

    private mutating func encodeAll() -> Result<Void, CommandFailure> {
        do throws(CommandFailure) {
            var isAtEnd = false
            while !isAtEnd {
                // What came is written before the next read, which may wait.
                try flush()
                let chunk = try input.read(atMost: 256 << 10)
                isAtEnd = chunk.isEmpty
                var pieces: [MessageSplitter.Piece] = []
                let result = split(chunk, into: &pieces)
                for piece in pieces { try encode(piece) }
                try result.get()
                progress.report(count: messageCount)
            }
            return .success(())
        } catch {
            return .failure(error)
        }
    }

    /// - Parameter chunk: the next text; empty at the end.
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
            let text = "The text of a message of \(input.name), at line \(error.line), is longer than --limit allows."
            return .failure(CommandFailure(status: .badData, message: text))
        }
    }

    private mutating func encode(_ piece: MessageSplitter.Piece) throws(CommandFailure) {
        do {
            try decoder.message(piece.text).withDelimitedBytes { frame in
                try encoder.checkFrame(frame)
                output += frame
            }
        } catch {
            let text =
                switch error {
                case let error as MessageError where error.code == .unknownField || error.code == .unknownEnumValue:
                    "\(error.words) --ignore-unknown passes over such fields and values."
                case let error as MessageError: error.words
                default: "It is longer than --limit allows."
                }
            let place = "message \(messageCount + 1) of \(input.name), at line \(piece.line)"
            throw CommandFailure(status: .badData, message: "Cannot encode \(place). \(text)")
        }
        messageCount += 1
        if output.count >= 256 << 10 { try flush() }
    }

    private mutating func flush() throws(CommandFailure) {
        defer { output.removeAll(keepingCapacity: true) }
        try writeBlockingToStandardOutput(output)
    }
}
