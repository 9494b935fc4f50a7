package import NIOCore

/// The decisions of a machine, to run in this order.
struct RedisActions<Waiter: Sendable>: Sendable {
    /// Close the present connection or attempt.
    var disconnects = false
    /// Begin this attempt to connect.
    var connects: UInt64?
    /// Write and flush these bytes.
    var bytes = ByteBuffer()
    /// Pass these to the handler of messages.
    var events: [RedisSubscriptionEvent] = []
    /// Resume these waiters.
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

/// A change of a connection, for the log.
enum RedisConnectionStep: Sendable {
    case connected(attempt: UInt64)
    case lost(RedisError, retryIn: Duration)
}

/// An event for the handler of messages.
package enum RedisSubscriptionEvent: Sendable {
    /// All channels are subscribed to. After a gap, messages may have been missed since `disconnected`.
    case connected(afterGap: Bool)
    /// A message on a channel. The payload is a slice of the memory of a whole read: copy it if you keep it for long.
    case message(channel: String, payload: ByteBuffer)
    /// The connection was lost. Messages are missed until `connected`.
    case disconnected(RedisError)
}
