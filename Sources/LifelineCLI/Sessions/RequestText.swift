internal import LifelineMessages
internal import LifelineReflection

/// Where the requests of a call come from: JSON, one or more values.
enum RequestText {
    case literal(String)
    case standardInput
    case file(String)

    /// - Parameter argument: JSON, `@FILE`, or `@-` for standard input.
    init(_ argument: String) {
        if argument == "@-" {
            self = .standardInput
        } else if argument.hasPrefix("@") {
            self = .file(String(argument.dropFirst()))
        } else {
            self = .literal(argument)
        }
    }

    /// As the user calls it.
    fileprivate var name: String {
        switch self {
        case .literal: "--data"
        case .standardInput: "standard input"
        case .file(let path): path
        }
    }

    /// Opens the file; nil for a literal.
    fileprivate func open() throws(CommandFailure) -> InputFile? {
        switch self {
        case .literal: nil
        case .standardInput: .standardInput()
        case .file(let path): try InputFile(path: path)
        }
    }
}

/// Reads the requests of a call.
struct RequestReader: ~Copyable {
    private let decoder: MessageTextDecoder
    private let name: String
    /// Nil for a literal.
    private let input: InputFile?
    private var splitter: MessageSplitter
    private var isAtEnd = false
    /// What is still to be split, if it is no file.
    private var literal: [UInt8] = []
    /// What was split and not yet decoded, the last one first.
    private var waiting: [MessageSplitter.Piece] = []
    private var readCount = 0

    init(_ text: RequestText, decoder: MessageTextDecoder, limit: Int) throws(CommandFailure) {
        input = try text.open()
        name = text.name
        if case .literal(let json) = text { literal = Array(json.utf8) }
        self.decoder = decoder
        splitter = MessageSplitter(.json, limit: max(limit, 1 << 20) * 8)
    }

    /// Waits for the next request, and returns it; nil after the last one.
    ///
    /// - Throws: `CommandFailure` when it is not of the type; `CancellationError`.
    mutating func next() async throws -> RawMessage? {
        while waiting.isEmpty {
            if isAtEnd { return nil }
            let chunk = try await input?.readChunk() ?? literal
            literal = []
            isAtEnd = chunk.isEmpty
            try split(chunk)
        }
        let piece = waiting.removeLast()
        readCount += 1
        do throws(MessageError) {
            return RawMessage(bytes: try decoder.message(piece.text).serializedBytes())
        } catch {
            throw CommandFailure(
                status: .badData,
                message: "Cannot encode request \(readCount) of \(name), at line \(piece.line). \(error.words)"
            )
        }
    }

    private mutating func split(_ chunk: [UInt8]) throws(CommandFailure) {
        do throws(MessageSplitter.TooLong) {
            try splitter.split(chunk, into: &waiting)
        } catch {
            throw CommandFailure(status: .badData, message: "The request at line \(error.line) of \(name) is too long.")
        }
        if isAtEnd { splitter.finish(into: &waiting) }
        waiting.reverse()
    }
}
