internal import LifelineCore

/// Reads a delimited stream, and prints its messages.
struct StreamDecoder: ~Copyable {
    private let input: InputFile
    private var assembler: FrameAssembler
    private var printer: FramePrinter

    /// - Parameter limit: the most bytes of an encoded message.
    init(
        input: consuming InputFile,
        form: PrintedForm,
        maximumCount: Int,
        skipsBadMessages: Bool,
        limit: Int
    ) {
        assembler = FrameAssembler(decoder: FrameDecoder(maximumFrameLength: limit))
        let messages = PrintedMessages(
            form,
            maximumCount: maximumCount,
            skipsBadMessages: skipsBadMessages,
            progress: Progress(verb: "decoded", isQuiet: OutputFile.standardOutput.isTerminal)
        )
        printer = FramePrinter(messages: messages, name: input.name)
        self.input = input
    }

    /// Runs to the end of the stream, or until there are enough messages.
    ///
    /// - Throws: `CommandFailure`, after the messages before the failure were printed.
    mutating func run() throws(CommandFailure) {
        let result = decodeAll()
        try printer.flush()
        try result.get()
        printer.reportEnd()
    }

    private mutating func decodeAll() -> Result<Void, CommandFailure> {
        do {
            while !printer.isDone {
                // Print the messages before the next read, which may wait.
                try printer.flush()
                let chunk = try input.read(atMost: 256 << 10)
                if chunk.isEmpty {
                    try assembler.finish()
                    break
                }
                try chunk.withUnsafeBytes { try assembler.receive($0, into: &printer) }
            }
            return .success(())
        } catch is FramingError where printer.isDone {
            // Bytes after the last requested message do not matter.
            return .success(())
        } catch let error as FramingError {
            return .failure(printer.place.failure(for: error))
        } catch {
            return .failure(CommandFailure(error) ?? CommandFailure(status: .software, message: "\(error)"))
        }
    }
}

/// Prints frames as messages.
private struct FramePrinter: FrameRunSink {
    private var messages: PrintedMessages
    private var output: [UInt8] = []
    /// The place of the next message.
    private(set) var place: StreamPlace

    init(messages: PrintedMessages, name: String) {
        self.messages = messages
        place = StreamPlace(name: name)
    }

    var isDone: Bool { messages.isDone }

    mutating func receive(_ run: FrameRun) throws {
        var sizes = run.makeIterator()
        for frame in run {
            if isDone { return }
            try messages.append(frame, at: "\(place)", to: &output)
            place.advance(by: sizes.skip() ?? 0)
            if output.count >= PrintedMessages.batchLength { try flush() }
        }
        messages.reportProgress()
    }

    mutating func flush() throws(CommandFailure) {
        defer { output.removeAll(keepingCapacity: true) }
        try OutputFile.standardOutput.writeBlocking(output)
    }

    /// Reports the result.
    func reportEnd() { messages.reportEnd() }
}
