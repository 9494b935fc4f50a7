internal import Glibc
public import LifelineMessages

/// Reads messages from a file, or from anything else that has a descriptor: a pipe, standard input, a socket.
///
///     var reader = try DelimitedMessageReader(of: Telemetry_Sample.self, path: "samples.binpb")
///     while let sample = try reader.next() { … }
///
/// It reads 64 KiB at a time, and holds no more of a file than the messages of these. It blocks its thread while a pipe
/// or a socket has nothing to read: in a task, use `delimitedMessages(of:)` of an asynchronous sequence.
public struct DelimitedMessageReader<Decoded: DelimitedMessage>: ~Copyable {
    private static var chunkLength: Int { 64 << 10 }

    private let file: OpenFile
    private var decoder: DelimitedMessageDecoder<Decoded>
    private var batch: [Decoded] = []
    /// How many messages of the batch were handed out.
    private var handedOut = 0
    private var isAtEnd = false

    /// Opens a file, which is closed with the reader.
    ///
    /// - Parameters: as `DelimitedMessageDecoder` has them.
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

    /// Reads from a descriptor, which stays open, and has to be one whose reads block.
    ///
    /// - Parameters: as `DelimitedMessageDecoder` has them.
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

    /// The next message; nil at the end of the file.
    ///
    /// - Throws: `DelimitedStreamError`, after the messages before the one that failed, and at every later call.
    public mutating func next() throws(DelimitedStreamError) -> Decoded? {
        while handedOut == batch.count {
            guard try readBatch() else { return nil }
        }
        defer { handedOut += 1 }
        return batch[handedOut]
    }

    /// The next messages: those of `next()` that were read already, or those that the next read completes; nil at the
    /// end of the file.
    ///
    /// - Throws: as `next()` does.
    public mutating func nextBatch() throws(DelimitedStreamError) -> [Decoded]? {
        while handedOut == batch.count {
            guard try readBatch() else { return nil }
        }
        defer { (batch, handedOut) = ([], 0) }
        return handedOut == 0 ? batch : Array(batch[handedOut...])
    }

    /// Reads once. Returns false at the end.
    private mutating func readBatch() throws(DelimitedStreamError) -> Bool {
        batch.removeAll(keepingCapacity: true)
        handedOut = 0
        if !isAtEnd {
            let bytes: [UInt8]
            do throws(FileError) {
                bytes = try file.read(atMost: Self.chunkLength)
            } catch {
                throw DelimitedStreamError(
                    messageIndex: decoder.messageCount,
                    byteOffset: decoder.byteCount,
                    cause: error
                )
            }
            isAtEnd = bytes.isEmpty
            do throws(DelimitedStreamError) {
                try decoder.decode(bytes, into: &batch)
            } catch {
                // `finish()` throws it again, behind the messages before it.
                isAtEnd = true
            }
        }
        if isAtEnd, batch.isEmpty {
            try decoder.finish()
            return false
        }
        return true
    }
}
