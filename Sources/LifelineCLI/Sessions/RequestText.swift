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
    var name: String {
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
    /// Nil for a literal.
    private let input: InputFile?
    private var reader: TextMessageReader
    /// What is still to be read, if it is no file.
    private var literal: [UInt8] = []
    private var isAtEnd = false
    /// What was read and not yet handed on, the last one first.
    private var waiting: [RawMessage] = []
    /// Why nothing can be read behind those.
    private var failure: CommandFailure?

    /// - Throws: `CommandFailure` when the file cannot be opened.
    init(_ text: RequestText, _ decoder: MessageTextDecoder, limit: Int) throws(CommandFailure) {
        input = try text.open()
        reader = TextMessageReader(decoder, of: text.name, limit: limit)
        if case .literal(let json) = text { literal = Array(json.utf8) }
    }

    /// Waits for the next request, and returns it; nil after the last one.
    ///
    /// - Throws: `CommandFailure` when it is not of the type; `CancellationError`.
    mutating func next() async throws -> RawMessage? {
        while waiting.isEmpty {
            if let failure { throw failure }
            if isAtEnd { return nil }
            let chunk = try await input?.readChunk() ?? literal
            literal = []
            isAtEnd = chunk.isEmpty
            var requests: [RawMessage] = []
            do throws(CommandFailure) {
                try reader.read(chunk) { requests.append(RawMessage(bytes: try $0.serializedBytes())) }
            } catch {
                failure = error
            }
            waiting = requests.reversed()
        }
        return waiting.removeLast()
    }
}
