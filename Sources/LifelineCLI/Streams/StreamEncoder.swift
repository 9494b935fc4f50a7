internal import LifelineCore
internal import LifelineReflection

/// Reads messages as text, and writes them as a delimited stream.
struct StreamEncoder: ~Copyable {
    private let input: InputFile
    private let encoder: FrameEncoder
    private var reader: TextMessageReader
    private var output: [UInt8] = []
    private var progress = Progress(verb: "encoded")

    /// - Parameter limit: the most bytes of an encoded message.
    init(input: consuming InputFile, decoder: MessageTextDecoder, limit: Int) {
        encoder = FrameEncoder(maximumFrameLength: limit)
        reader = TextMessageReader(decoder, of: input.name, limit: limit)
        self.input = input
    }

    /// Runs to the end of the input.
    ///
    /// - Throws: `CommandFailure`, after the messages before the failure were written.
    mutating func run() throws(CommandFailure) {
        let result = encodeAll()
        try flush()
        try result.get()
        progress.finish(count: reader.messageCount)
    }

    private mutating func encodeAll() -> Result<Void, CommandFailure> {
        do throws(CommandFailure) {
            var isAtEnd = false
            while !isAtEnd {
                // Write the messages before the next read, which may wait.
                try flush()
                let chunk = try input.read(atMost: 256 << 10)
                isAtEnd = chunk.isEmpty
                try encode(chunk)
                progress.report(count: reader.messageCount)
            }
            return .success(())
        } catch {
            return .failure(error)
        }
    }

    private mutating func encode(_ chunk: [UInt8]) throws(CommandFailure) {
        var output: [UInt8] = []
        swap(&output, &self.output)
        defer { swap(&output, &self.output) }
        try reader.read(chunk) { message in
            try message.withDelimitedBytes { frame in
                try encoder.checkFrame(frame)
                output += frame
            }
            if output.count >= 256 << 10 {
                try OutputFile.standardOutput.writeBlocking(output)
                output.removeAll(keepingCapacity: true)
            }
        }
    }

    private mutating func flush() throws(CommandFailure) {
        defer { output.removeAll(keepingCapacity: true) }
        try OutputFile.standardOutput.writeBlocking(output)
    }
}
