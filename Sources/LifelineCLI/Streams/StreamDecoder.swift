internal import Glibc
internal import LifelineCore
internal import LifelineMessages

/// Reads a delimited stream, and prints its messages.
struct StreamDecoder: ~Copyable {
    private let input: InputFile
    private var assembler: FrameAssembler
    private var printer: FramePrinter

    /// - Parameter limit: the most bytes of an encoded message.
    init(
        input: consuming InputFile,
        encoder: MessageTextEncoder,
        maximumCount: Int,
        skipsBadMessages: Bool,
        limit: Int
    ) {
        assembler = FrameAssembler(decoder: FrameDecoder(maximumFrameLength: limit))
        printer = FramePrinter(
            encoder: encoder,
            name: input.name,
            maximumCount: maximumCount,
            skipsBadMessages: skipsBadMessages
        )
        self.input = input
    }

    /// Runs to the end of the stream, or until there are enough messages.
    ///
    /// - Throws: `CommandFailure`, after what stands before the failure was printed.
    mutating func run() throws(CommandFailure) {
        let result = decodeAll()
        try printer.flush()
        try result.get()
        printer.reportEnd()
    }

    private mutating func decodeAll() -> Result<Void, CommandFailure> {
        do {
            while !printer.isDone {
                // What came is printed before the next read, which may wait.
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
            // Nobody asked for what stands behind the last message.
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
    private let encoder: MessageTextEncoder
    private let maximumCount: Int
    private let skipsBadMessages: Bool
    private var output: [UInt8] = []
    /// Where the next message begins.
    private(set) var place: StreamPlace
    /// How many of the messages before it are bad.
    private var badCount = 0
    private var progress = Progress(verb: "decoded", isQuiet: isatty(STDOUT_FILENO) == 1)

    init(encoder: MessageTextEncoder, name: String, maximumCount: Int, skipsBadMessages: Bool) {
        self.encoder = encoder
        place = StreamPlace(name: name)
        self.maximumCount = maximumCount
        self.skipsBadMessages = skipsBadMessages
    }

    var isDone: Bool { place.messageCount - badCount >= maximumCount }

    mutating func receive(_ run: FrameRun) throws {
        var sizes = run.makeIterator()
        for frame in run {
            if isDone { return }
            do throws(MessageError) {
                try encoder.append(frame, to: &output)
            } catch {
                guard skipsBadMessages else { throw failure(for: error) }
                badCount += 1
                writeErrorLine("lifeline: left out \(place): \(error.words.escaped())")
            }
            place.advance(by: sizes.skip() ?? 0)
            // The text of a message may be many times as long as its encoding.
            if output.count >= 256 << 10 { try flush() }
        }
        progress.report(count: place.messageCount)
    }

    mutating func flush() throws(CommandFailure) {
        defer { output.removeAll(keepingCapacity: true) }
        try writeBlockingToStandardOutput(output)
    }

    /// Tells how it went.
    func reportEnd() {
        progress.finish(count: place.messageCount)
        if badCount > 0 {
            writeErrorLine("lifeline: left out \(badCount) of \(place.messageCount) messages, which cannot be decoded")
        }
    }

    private func failure(for error: MessageError) -> CommandFailure {
        let text = "Cannot decode \(place). \(error.words) Is --type right? --skip-bad leaves such messages out."
        return CommandFailure(status: .badData, message: text)
    }
}
