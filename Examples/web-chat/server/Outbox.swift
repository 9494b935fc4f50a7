internal import Lifeline

/// The bounded queue of messages for one member: when it is full, further messages are omitted and counted.
///
/// So a member takes at most about 0.8 MiB: 256 KiB here, as much in messages that are being sent, and as much and one
/// message in its connection.
struct Outbox {
    /// In bytes, as `cost(of:)` counts them.
    static let capacity = 256 << 10

    private var messages: [RawMessage] = []
    private var cost = 0
    private var missedCount = 0

    /// Takes a message, or counts it when there is no room.
    mutating func put(_ message: RawMessage) {
        let cost = Outbox.cost(of: message)
        // After the first omitted message, later ones are omitted, too, so that the notice is in their place.
        guard missedCount == 0, self.cost + cost <= Outbox.capacity else {
            missedCount += 1
            return
        }
        messages.append(message)
        self.cost += cost
    }

    /// Hands out the messages, and the number of messages that were omitted after them.
    mutating func takeAll() -> (messages: [RawMessage], missedCount: Int) {
        defer { self = Outbox() }
        return (messages, missedCount)
    }

    /// Its bytes, and 64 for the array that holds them and the reference to it.
    private static func cost(of message: RawMessage) -> Int {
        message.bytes.count + 64
    }
}
