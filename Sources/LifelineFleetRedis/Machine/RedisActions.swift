package import NIOCore

/// What a machine has decided is to be done, in this order.
struct RedisActions<Waiter: Sendable>: Sendable {
    /// Close the connection or the attempt that there is.
    var disconnects = false
    /// Begin this attempt to connect.
    var connects: UInt64?
    /// Write and flush these bytes.
    var bytes = ByteBuffer()
    /// Hand these to the handler of messages.
    var events: [RedisSubscriptionEvent] = []
    /// Resume these.
    var results: [(waiter: Waiter, result: Result<RedisValue, any Error>)] = []
    /// Log these.
    var steps: [RedisConnectionStep] = []

    mutating func resume(_ waiter: Waiter, _ result: Result<RedisValue, any Error>) {
        results.append((waiter, result))
    }

    mutating func write(_ other: ByteBuffer) {
        if bytes.readableBytes == 0 { bytes = other } else { bytes.writeImmutableBuffer(other) }
    }
}

/// What happens to a connection.
enum RedisConnectionStep: Sendable {
    case connected(attempt: UInt64)
    case lost(RedisError, retryIn: Duration)
}

/// What the handler of messages is told, in order.
package enum RedisSubscriptionEvent: Sendable {
    /// All channels are subscribed to. After a gap, messages may have been missed since `disconnected`.
    case connected(afterGap: Bool)
    /// A message came on a channel. Copy a payload that is kept for long: it is a slice of the memory of a read.
    case message(channel: String, payload: ByteBuffer)
    /// The connection was lost. Messages are missed until `connected`.
    case disconnected(RedisError)
}
