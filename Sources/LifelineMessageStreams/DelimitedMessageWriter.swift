internal import Glibc
internal import LifelineCore
public import LifelineMessages

/// Writes messages to a file, or to anything else that has a descriptor, each behind its length as a varint.
///
///     var writer = try DelimitedMessageWriter(path: "samples.binpb")
///     for sample in samples { try writer.write(sample) }
///     try writer.close()
///
/// It writes 64 KiB at a time, which blocks its thread where a pipe or a socket takes nothing.
public struct DelimitedMessageWriter: ~Copyable {
    private static var chunkLength: Int { 64 << 10 }

    private let file: OpenFile
    private let encoder: FrameEncoder
    private var waiting: [UInt8] = []
    /// Behind the messages that were taken, written or not.
    private var place = StreamPlace()

    /// Opens a file, and makes it if there is none.
    ///
    /// - Parameters:
    ///   - appending: whether to keep the messages that it has, and write behind them.
    ///   - maximumFrameLength: the most bytes that an encoded message may have: what its readers take.
    /// - Throws: `FileError` when it cannot be opened.
    public init(path: String, appending: Bool = false, maximumFrameLength: Int = 4 << 20) throws(FileError) {
        file = try OpenFile(path: path, flags: O_WRONLY | O_CREAT | (appending ? O_APPEND : O_TRUNC))
        encoder = FrameEncoder(maximumFrameLength: maximumFrameLength)
    }

    /// Writes to a descriptor, which stays open, and has to be one whose writes block.
    public init(descriptor: CInt, maximumFrameLength: Int = 4 << 20) {
        file = OpenFile(descriptor: descriptor)
        encoder = FrameEncoder(maximumFrameLength: maximumFrameLength)
    }

    /// Without `close()`, as after an error, what was taken is written if that can be done; nobody learns
    /// whether it was.
    deinit {
        try? file.write(waiting)
    }

    /// How many messages were taken.
    public var messageCount: Int { place.messageCount }

    /// Takes a message.
    ///
    /// - Parameter partial: whether `required` fields may be absent.
    /// - Throws: `DelimitedStreamError`: with `MessageError` when it cannot be encoded, with `FramingError` when it is
    ///   over the limit, and nothing of it is written then; with `FileError` when the file takes nothing, and what it
    ///   has got of those that were taken is not known then.
    @inlinable public mutating func write(
        _ message: some DelimitedMessage,
        partial: Bool = false
    ) throws(DelimitedStreamError) {
        // Inlined, so that it is compiled for the very type: looking that up at run time costs more than most messages.
        do {
            try message.withDelimitedBytes(partial: partial) { try take($0) }
        } catch {
            throw failure(error)
        }
        try flushIfFull()
    }

    @usableFromInline mutating func take(_ frame: UnsafeRawBufferPointer) throws {
        try encoder.checkFrame(frame)
        waiting.append(contentsOf: frame)
        place.messageCount += 1
        place.byteCount += frame.count
    }

    @usableFromInline mutating func flushIfFull() throws(DelimitedStreamError) {
        if waiting.count >= Self.chunkLength { try flush() }
    }

    /// Writes all that was taken.
    ///
    /// - Throws: `DelimitedStreamError` with `FileError` when the file does not take it.
    public mutating func flush() throws(DelimitedStreamError) {
        defer { waiting.removeAll(keepingCapacity: true) }
        do throws(FileError) {
            try file.write(waiting)
        } catch {
            throw failure(error)
        }
    }

    /// Writes all that was taken, and closes the file unless it was given as a descriptor.
    ///
    /// - Throws: as `flush()` does.
    public consuming func close() throws(DelimitedStreamError) {
        try flush()
    }

    @usableFromInline func failure(_ cause: any Error) -> DelimitedStreamError {
        DelimitedStreamError(messageIndex: place.messageCount, byteOffset: place.byteCount, cause: cause)
    }
}

extension RangeReplaceableCollection<UInt8> {
    /// Appends a message behind its length as a varint.
    ///
    /// - Parameter partial: whether `required` fields may be absent.
    /// - Throws: `MessageError` when it cannot be encoded.
    public mutating func append(delimited message: some DelimitedMessage, partial: Bool = false) throws {
        try message.withDelimitedBytes(partial: partial) { append(contentsOf: $0) }
    }
}
