package import NIOCore

/// A reply of Redis in RESP2.
package enum RedisValue: Sendable, Hashable {
    /// A status, such as `OK`.
    case status(String)
    /// An error in the place of a value, also inside an array.
    case error(RedisReplyError)
    case integer(Int64)
    /// Bytes: a slice of the memory of a whole read. Copy bytes that you keep for long.
    case bytes(ByteBuffer)
    case array([RedisValue])
    case null
}

/// An error in the place of a value: `-WRONGTYPE Operation against a key holding the wrong kind of value`.
package struct RedisReplyError: Sendable, Hashable {
    /// The whole line from the server. Escape it before it becomes part of a log or of an error's text.
    package let text: String

    package init(_ text: String) { self.text = text }

    /// The first word, which is the kind of the error: `WRONGTYPE`.
    package var code: Substring { text.prefix { $0 != " " } }
}
