internal import Glibc

/// Why messages could not be read from a delimited stream, or not be written to one.
public struct DelimitedStreamError: Error, Sendable, CustomStringConvertible {
    /// The message that failed: how many stand before it in the stream.
    public let messageIndex: Int
    /// Where its frame begins: how many bytes stand before it in the stream.
    public let byteOffset: Int
    /// The reason: `FramingError` when the bytes are not frames or a message is over the limit, `MessageError` when a
    /// message cannot be decoded or encoded, `FileError` when a file cannot be read or written.
    public let cause: any Error

    /// The place and the cause.
    public var description: String { "Message \(messageIndex), at byte \(byteOffset) of the stream: \(cause)" }
}

/// A file could not be opened, read or written.
public struct FileError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The system's number of the error: see errno(3).
    public let number: Int32
    /// The file, what could not be done with it, and the system's text of the error.
    public let description: String

    /// - Parameter action: what failed, as in "Cannot read a.binpb".
    init(_ action: String, number: Int32 = errno) {
        self.number = number
        description = "\(action): \(String(cString: strerror(number)))."
    }
}
