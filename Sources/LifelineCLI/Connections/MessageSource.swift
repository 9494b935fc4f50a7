internal import LifelineCore
internal import LifelineMessages
internal import LifelineReflection

/// The encoded messages that a command sends, a batch at a time.
struct MessageSource {
    private enum Content {
        case example(RawMessage, count: Int)
        case text(TextInput)
        case delimited(DelimitedInput)
    }

    private var content: Content
    private var remaining: Int
    /// The reason why the input cannot be read to its end, if so. The messages before that place are sent nevertheless.
    private(set) var failure: CommandFailure?

    private init(_ content: Content, limit: Int?) {
        self.content = content
        remaining = limit ?? .max
    }

    /// Makes a source of one repeated message.
    static func example(_ message: RawMessage, count: Int) -> MessageSource {
        MessageSource(.example(message, count: count), limit: count)
    }

    /// - Parameters:
    ///   - limit: the most messages; nil for all.
    ///   - byteLimit: the most bytes of an encoded message.
    static func text(
        _ input: consuming InputFile,
        _ decoder: MessageTextDecoder,
        limit: Int?,
        byteLimit: Int
    ) -> MessageSource {
        MessageSource(.text(TextInput(input, decoder, byteLimit: byteLimit)), limit: limit)
    }

    /// - Parameter decoder: checks each message; nil to check nothing.
    static func delimited(
        _ input: consuming InputFile,
        checking decoder: TypedDecoder?,
        limit: Int?,
        byteLimit: Int
    ) -> MessageSource {
        MessageSource(.delimited(DelimitedInput(input, decoder, byteLimit: byteLimit)), limit: limit)
    }

    /// Waits for the next messages; returns nil at the end, or when the input cannot be read further.
    ///
    /// - Throws: `CancellationError`.
    mutating func next() async throws -> [RawMessage]? {
        guard remaining > 0, failure == nil else { return nil }
        var messages: [RawMessage] = []
        var isAtEnd = false
        do throws(CommandFailure) {
            isAtEnd = try await read(into: &messages)
        } catch {
            failure = error
        }
        try Task.checkCancellation()
        if messages.count >= remaining {
            messages.removeLast(messages.count - remaining)
            // Bytes after the last message that is sent do not matter.
            failure = nil
        }
        remaining -= messages.count
        if isAtEnd { remaining = 0 }
        return messages
    }

    private mutating func read(into messages: inout [RawMessage]) async throws(CommandFailure) -> Bool {
        switch content {
        case .example(let message, let count):
            let batch = min(count, 256)
            messages = Array(repeating: message, count: batch)
            content = .example(message, count: count - batch)
            return batch == count
        case .text(var input):
            defer { content = .text(input) }
            return try await input.read(into: &messages)
        case .delimited(var input):
            defer { content = .delimited(input) }
            return try await input.read(into: &messages)
        }
    }
}

private struct DelimitedInput {
    private let file: OpenFile
    private let decoder: TypedDecoder?
    private var assembler: FrameAssembler
    private var place: StreamPlace

    init(_ file: consuming InputFile, _ decoder: TypedDecoder?, byteLimit: Int) {
        self.file = OpenFile(file)
        self.decoder = decoder
        assembler = FrameAssembler(decoder: FrameDecoder(maximumFrameLength: byteLimit))
        place = StreamPlace(name: self.file.name)
    }

    /// - Returns: whether this was the end.
    mutating func read(into messages: inout [RawMessage]) async throws(CommandFailure) -> Bool {
        let chunk = try await file.readChunk()
        var collector = MessageCollector(decoder: decoder, place: place)
        let result = Result {
            if chunk.isEmpty { try assembler.finish() }
            try chunk.withUnsafeBytes { try assembler.receive($0, into: &collector) }
        }
        messages = collector.messages
        place = collector.place
        switch result {
        case .success: return chunk.isEmpty
        case .failure(let error as MessageError):
            throw CommandFailure(
                status: .badData,
                message: "Cannot decode \(place). \(error.words) Is --type right?"
            )
        case .failure(let error as FramingError): throw place.failure(for: error)
        case .failure(let error): throw CommandFailure(status: .software, message: "\(error)")
        }
    }
}

/// Collects the frames of a chunk as messages.
private struct MessageCollector: FrameRunSink {
    let decoder: TypedDecoder?
    var place: StreamPlace
    private(set) var messages: [RawMessage] = []

    init(decoder: TypedDecoder?, place: StreamPlace) {
        self.decoder = decoder
        self.place = place
    }

    mutating func receive(_ run: FrameRun) throws {
        var sizes = run.makeIterator()
        for frame in run {
            _ = try decoder?.message(frame)
            messages.append(RawMessage(bytes: [UInt8](frame)))
            place.advance(by: sizes.skip() ?? 0)
        }
    }
}
