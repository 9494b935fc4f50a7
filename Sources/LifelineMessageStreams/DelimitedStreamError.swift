internal import Glibc

/// An error of reading messages from a delimited stream, or writing them to one.
public struct DelimitedStreamError: Error, Sendable, CustomStringConvertible {
    /// The number of messages before the one that failed, counted from where the reader or writer began.
    ///
    /// In a `FileError` of a writer, the number of messages that it had accepted. The file may have fewer of them.
    public let messageIndex: Int
    /// The number of bytes before the message that failed, with the lengths of messages, counted from where the reader
    /// or writer began.
    ///
    /// In a `FileError` of a writer, the number of bytes that it had accepted. The file may have fewer of them.
    public let byteOffset: Int
    /// The reason: `FramingError` when the bytes are not frames or a message is over the limit, `MessageError` when a
    /// message cannot be decoded or encoded, `FileError` when a file cannot be read, written or closed.
    public let cause: any Error

    /// The place and the cause.
    public var description: String { "Message \(messageIndex), at byte \(byteOffset): \(cause)" }
}

/// A file could not be opened, read, written or closed.
public struct FileError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The system's number of the error: see errno(3).
    public let number: Int32
    /// The file, the action that failed, and the system's text of the error.
    public let description: String

    /// - Parameters:
    ///   - action: what failed, as in "Cannot read a.binpb".
    ///   - number: the call's `errno`.
    init(_ action: String, number: Int32) {
        self.number = number
        description = "\(action): \(String(cString: strerror(number)))."
    }
}
