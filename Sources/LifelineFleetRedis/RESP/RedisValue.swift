package import NIOCore

/// A reply of Redis, as RESP2 has it.
package enum RedisValue: Sendable, Hashable {
    /// A status, such as `OK`.
    case status(String)
    /// An error that stands in the place of a value, inside an array too.
    case error(RedisReplyError)
    case integer(Int64)
    /// Bytes: a slice of the memory of a whole read. Copy bytes that you keep for long.
    case bytes(ByteBuffer)
    case array([RedisValue])
    case null
}

/// An error in the place of a value: `-WRONGTYPE Operation against a key holding the wrong kind of value`.
package struct RedisReplyError: Sendable, Hashable {
    /// The whole line, as the server wrote it. Escape it before it becomes part of a log or of an error's text.
    package let text: String

    package init(_ text: String) { self.text = text }

    /// The first word, which says what kind of error it is: `WRONGTYPE`.
    package var code: Substring { text.prefix { $0 != " " } }
}
