internal import Glibc
internal import LifelineMessages
internal import LifelineReflection

/// The source of a call's requests: one or more JSON values.
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

    /// The name of the source for the user.
    var name: String {
        switch self {
        case .literal: "--data"
        case .standardInput: "standard input"
        case .file(let path): path
        }
    }

    /// Opens the source, if it is a file.
    fileprivate func input(_ decoder: MessageTextDecoder, limit: Int) throws(CommandFailure) -> TextInput {
        switch self {
        case .literal(let json): TextInput(json, of: name, decoder, byteLimit: limit)
        case .standardInput:
            TextInput(.standardInput(), decoder, byteLimit: limit, isTyped: isatty(STDIN_FILENO) == 1)
        case .file(let path): TextInput(try InputFile(path: path), decoder, byteLimit: limit)
        }
    }
}

/// Reads the requests of a call, one by one.
struct RequestReader {
    private var input: TextInput
    private var isAtEnd = false
    /// The requests that were read and not returned yet, the last one first.
    private var waiting: [RawMessage] = []
    /// The reason why nothing can be read after those.
    private var failure: CommandFailure?

    /// - Parameter limit: the most bytes of an encoded request.
    /// - Throws: `CommandFailure` when the file cannot be opened.
    init(_ text: RequestText, _ decoder: MessageTextDecoder, limit: Int) throws(CommandFailure) {
        input = try text.input(decoder, limit: limit)
    }

    /// Waits for the next request, and returns it; nil after the last one.
    ///
    /// - Throws: `CommandFailure` when it is not of the type, or too long; `CancellationError`.
    mutating func next() async throws -> RawMessage? {
        while waiting.isEmpty {
            if let failure { throw failure }
            if isAtEnd { return nil }
            var requests: [RawMessage] = []
            do throws(CommandFailure) {
                isAtEnd = try await input.read(into: &requests)
            } catch {
                failure = error
            }
            try Task.checkCancellation()
            waiting = requests.reversed()
        }
        return waiting.removeLast()
    }
}
