internal import Glibc
internal import LifelineCore
public import LifelineMessages

/// Writes messages to a file, or to anything else that has a descriptor, each after its length, a varint.
///
///     var writer = try DelimitedMessageWriter(path: "samples.binpb")
///     for sample in samples { try writer.write(sample) }
///     try writer.close()
///
/// Writes at least 64 KiB at a time, and what remains at the end. It blocks its thread while a pipe or a socket has no
/// room.
///
/// After a `FileError`, every later call throws it again; the file may end inside a message.
public struct DelimitedMessageWriter: ~Copyable, Sendable {
    private static var chunkLength: Int { 64 << 10 }

    private var file: OpenFile
    private let encoder: FrameEncoder
    private var waiting: [UInt8] = []
    /// The number and bytes of the accepted messages, written or not.
    private var place = StreamPlace()
    /// The file's error.
    @usableFromInline var failure: DelimitedStreamError?

    /// Creates a file. An existing file is emptied first, unless `appending`.
    ///
    /// - Parameters:
    ///   - path: the file.
    ///   - appending: whether to keep the content of an existing file, and write after it.
    ///   - maximumFrameLength: the most bytes that an encoded message may have. Readers need the same limit or a higher
    ///     one. Values below 0 count as 0, and those above 2³²−1 as 2³²−1.
    /// - Throws: `FileError` when it cannot be opened.
    public init(path: String, appending: Bool = false, maximumFrameLength: Int = 4 << 20) throws(FileError) {
        file = try OpenFile(path: path, flags: O_WRONLY | O_CREAT | (appending ? O_APPEND : O_TRUNC))
        encoder = FrameEncoder(maximumFrameLength: maximumFrameLength)
    }

    /// Writes to a descriptor.
    ///
    /// Ignore SIGPIPE (`signal(SIGPIPE, SIG_IGN)`) when the descriptor is a pipe or a socket: otherwise a reader that
    /// closes it ends the process. With it ignored, `write` throws `FileError` `EPIPE`.
    ///
    /// - Parameters:
    ///   - descriptor: the descriptor. Its writes have to block. The writer does not close it.
    ///   - maximumFrameLength: the most bytes that an encoded message may have. Readers need the same limit or a higher
    ///     one. Values below 0 count as 0, and those above 2³²−1 as 2³²−1.
    public init(descriptor: CInt, maximumFrameLength: Int = 4 << 20) {
        file = OpenFile(descriptor: descriptor)
        encoder = FrameEncoder(maximumFrameLength: maximumFrameLength)
    }

    /// Writes what is buffered and ignores errors. Call `close()` to get them.
    deinit {
        if failure == nil { try? file.write(waiting) }
    }

    /// The number of messages that were accepted.
    public var messageCount: Int { place.messageCount }

    /// Accepts a message, and writes when 64 KiB or more are buffered.
    ///
    /// - Parameters:
    ///   - message: the message.
    ///   - partial: whether `required` fields may be absent.
    /// - Throws: `DelimitedStreamError`. Its cause is a `MessageError` when the message cannot be encoded, or a
    ///   `FramingError` when it is over the limit; neither writes anything. A `FileError` means that the file cannot be
    ///   written; it may hold part of the accepted messages.
    @inlinable public mutating func write(
        _ message: some DelimitedMessage,
        partial: Bool = false
    ) throws(DelimitedStreamError) {
        // Inlined, so that it is compiled for the specific type: looking it up at run time costs more than most
        // messages.
        if let failure { throw failure }
        do {
            try message.withDelimitedBytes(partial: partial) { try accept($0) }
        } catch {
            throw streamError(error)
        }
        try flushIfFull()
    }

    @usableFromInline mutating func accept(_ frame: UnsafeRawBufferPointer) throws {
        try encoder.checkFrame(frame)
        waiting.append(contentsOf: frame)
        place.messageCount += 1
        place.byteCount += frame.count
    }

    @usableFromInline mutating func flushIfFull() throws(DelimitedStreamError) {
        if waiting.count >= Self.chunkLength { try flush() }
    }

    /// Writes all accepted messages.
    ///
    /// - Throws: `DelimitedStreamError` with `FileError` when the file cannot be written.
    public mutating func flush() throws(DelimitedStreamError) {
        if let failure { throw failure }
        defer { waiting.removeAll(keepingCapacity: true) }
        do throws(FileError) {
            try file.write(waiting)
        } catch {
            let error = streamError(error)
            failure = error
            throw error
        }
    }

    /// Writes all accepted messages, and closes the file unless it was given as a descriptor.
    ///
    /// The system may still hold them in memory afterwards: this does not wait for the disk, as fsync(2) does.
    ///
    /// - Throws: `DelimitedStreamError` with `FileError` when the file cannot be written or closed.
    public consuming func close() throws(DelimitedStreamError) {
        try flush()
        do throws(FileError) {
            try file.close()
        } catch {
            throw streamError(error)
        }
    }

    @usableFromInline func streamError(_ cause: any Error) -> DelimitedStreamError {
        DelimitedStreamError(messageIndex: place.messageCount, byteOffset: place.byteCount, cause: cause)
    }
}

extension RangeReplaceableCollection<UInt8> {
    /// Appends a message after its length, a varint.
    ///
    /// - Parameter partial: whether `required` fields may be absent.
    /// - Throws: `MessageError` when it cannot be encoded.
    public mutating func append(delimited message: some DelimitedMessage, partial: Bool = false) throws {
        try message.withDelimitedBytes(partial: partial) { append(contentsOf: $0) }
    }
}
