internal import Glibc
public import LifelineMessages

/// Reads messages from a file, or from anything else that has a descriptor: a pipe, standard input, a socket.
///
///     var reader = try DelimitedMessageReader(of: Telemetry_Sample.self, path: "samples.binpb")
///     while let sample = try reader.next() { … }
///
/// Reads 64 KiB at a time and holds the messages of one read. It blocks its thread while a pipe or a socket has nothing
/// to read. In a task, use `delimitedMessages(of:)` of an asynchronous sequence.
public struct DelimitedMessageReader<Decoded: DelimitedMessage>: ~Copyable, Sendable {
    private static var chunkLength: Int { 64 << 10 }

    private let file: OpenFile
    private var decoder: DelimitedMessageDecoder<Decoded>
    /// The messages of the last read, the last one first. Returning one removes it, so that the caller has the only
    /// reference, and changing it needs no copy.
    private var waiting: [Decoded] = []
    /// Whether nothing more is read. The decoder has the error, if there was one.
    private var isAtEnd = false

    /// Opens a file, which is closed with the reader.
    ///
    /// - Parameters:
    ///   - type: the type of the messages: a generated one, or `RawMessage`.
    ///   - path: the file.
    ///   - maximumFrameLength: the most bytes that an encoded message may have. Values below 0 count as 0, and those
    ///     above 2³²−1 as 2³²−1.
    ///   - partial: whether `required` fields may be absent.
    ///   - options: the limits of each message.
    /// - Throws: `FileError` when it cannot be opened.
    public init(
        of type: Decoded.Type = Decoded.self,
        path: String,
        maximumFrameLength: Int = 4 << 20,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) throws(FileError) {
        file = try OpenFile(path: path, flags: O_RDONLY)
        decoder = DelimitedMessageDecoder(
            of: type,
            maximumFrameLength: maximumFrameLength,
            partial: partial,
            options: options
        )
    }

    /// Reads from a descriptor.
    ///
    /// - Parameters:
    ///   - type: the type of the messages: a generated one, or `RawMessage`.
    ///   - descriptor: the descriptor. Its reads have to block. The reader does not close it.
    ///   - maximumFrameLength: the most bytes that an encoded message may have. Values below 0 count as 0, and those
    ///     above 2³²−1 as 2³²−1.
    ///   - partial: whether `required` fields may be absent.
    ///   - options: the limits of each message.
    public init(
        of type: Decoded.Type = Decoded.self,
        descriptor: CInt,
        maximumFrameLength: Int = 4 << 20,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) {
        file = OpenFile(descriptor: descriptor)
        decoder = DelimitedMessageDecoder(
            of: type,
            maximumFrameLength: maximumFrameLength,
            partial: partial,
            options: options
        )
    }

    /// Returns the next message; nil at the end of the file.
    ///
    /// - Throws: `DelimitedStreamError`, after the messages before the one that failed, and again at every later call.
    public mutating func next() throws(DelimitedStreamError) -> Decoded? {
        try readIfNeeded()
        return waiting.popLast()
    }

    /// Returns the messages that were read but not yet returned or, if there are none, those that the next read
    /// completes; nil at the end of the file.
    ///
    /// - Throws: as `next()` does.
    public mutating func nextBatch() throws(DelimitedStreamError) -> [Decoded]? {
        try readIfNeeded()
        if waiting.isEmpty { return nil }
        defer { waiting = [] }
        waiting.reverse()
        return waiting
    }

    /// Reads until there are messages, or the file ends.
    private mutating func readIfNeeded() throws(DelimitedStreamError) {
        while waiting.isEmpty {
            // Throws the error of an earlier read or decoding again.
            if isAtEnd { return try decoder.finish() }
            let bytes: [UInt8]
            do throws(FileError) {
                bytes = try file.read(atMost: Self.chunkLength)
            } catch {
                isAtEnd = true
                throw decoder.fail(error)
            }
            isAtEnd = bytes.isEmpty
            do throws(DelimitedStreamError) {
                try decoder.decode(bytes, into: &waiting)
            } catch {
                // `finish()` throws it again, after the messages before it.
                isAtEnd = true
            }
            waiting.reverse()
        }
    }
}
