internal import Lifeline

/// What waits to be sent to one member, bounded: when it is full, what comes is left out, and counted.
///
/// A member takes up about 0.8 MiB so, at most: 256 KiB here, as much of what was taken and is being sent, and as much
/// and one message in its connection.
struct Outbox {
    /// In bytes, as `cost(of:)` counts them.
    static let capacity = 256 << 10

    private var messages: [RawMessage] = []
    private var cost = 0
    private var missedCount = 0

    /// Takes a message, or counts it when there is no room.
    mutating func put(_ message: RawMessage) {
        let cost = Outbox.cost(of: message)
        // Once one is missing, those after it are too, so that the notice comes where they were.
        guard missedCount == 0, self.cost + cost <= Outbox.capacity else {
            missedCount += 1
            return
        }
        messages.append(message)
        self.cost += cost
    }

    /// Hands out what there is, and how many messages were left out after it.
    mutating func takeAll() -> (messages: [RawMessage], missedCount: Int) {
        defer { self = Outbox() }
        return (messages, missedCount)
    }

    /// Its bytes, and 64 for the array that holds them and the reference to it.
    private static func cost(of message: RawMessage) -> Int {
        message.bytes.count + 64
    }
}
