internal import LifelineCore
internal import LifelineTesting

/// A connection of the client, as the network sees it.
final class WatchedConnection {
    let stream: SimulatedStream
    let beganAt: MonotonicTime
    /// The client's number of the connection; nil if it was not reported to the user.
    var id: UInt64?
    /// The messages in the bytes that the client's kernel has taken, in order, with the positions of their ends.
    private(set) var written: [(number: Int, end: UInt64)] = []
    private(set) var deliveredCount = 0
    /// The place of the last offer that was not overtaken.
    var lastOffer = 0
    /// The number of bytes that the server's kernel had acknowledged by a time.
    private var acknowledgements: [(time: MonotonicTime, total: UInt64)] = []
    private(set) var lastReadAt: MonotonicTime?
    private var readCount = 0
    private(set) var isOpen = false
    /// The time at which it was first seen closed; before it opens, the time at which it began.
    private(set) var closedAt: MonotonicTime
    private(set) var reads = false
    /// The time since which the client's kernel has room; nil while it has none.
    private(set) var roomSince: MonotonicTime?
    private var scanner = FrameScanner()

    init(_ stream: SimulatedStream, _ now: MonotonicTime) {
        self.stream = stream
        (beganAt, closedAt) = (now, now)
    }

    /// - Parameter status: nil if the connection is not open.
    func look(at status: ChannelStatus?, _ now: MonotonicTime) {
        if isOpen, status == nil { closedAt = now }
        isOpen = status != nil
        let total = stream.acknowledgedClientByteCount
        if total > acknowledgements.last?.total ?? 0 { acknowledgements.append((now, total)) }
        guard let status else { return roomSince = nil }
        if status.readCount > readCount { lastReadAt = now }
        (readCount, reads) = (status.readCount, status.readsSince != nil)
        roomSince = stream.hasClientRoom ? roomSince ?? now : nil
    }

    /// Records bytes that the client's kernel has taken.
    func wrote(_ bytes: ArraySlice<UInt8>, _ body: (_ number: Int) -> Void) {
        scanner.scan(bytes) { message, end in
            guard message.kind == .message else { return }
            written.append((Int(message.number), end))
            body(Int(message.number))
        }
    }

    /// Returns the message to be delivered next, and advances to the one after it.
    func takeDelivered() -> Int? {
        guard deliveredCount < written.count else { return nil }
        deliveredCount += 1
        return written[deliveredCount - 1].number
    }

    /// Returns the number of messages that the server's kernel has acknowledged: at least those known at an earlier
    /// time, at most those known now.
    func acknowledgedCount(isEarlier: (MonotonicTime) -> Bool) -> ClosedRange<Int> {
        let total = acknowledgements.last?.total ?? 0
        let earlier = acknowledgements.last { isEarlier($0.time) }?.total ?? 0
        return written.count { $0.end <= earlier }...written.count { $0.end <= total }
    }
}

/// Finds the messages in a stream of frames.
private struct FrameScanner {
    private var head: [UInt8] = []
    /// The number of missing bytes of the current frame; nil until its head is complete.
    private var rest: Int?
    private var position: UInt64 = 0

    mutating func scan(_ bytes: ArraySlice<UInt8>, _ body: (SimulatedMessage, _ end: UInt64) -> Void) {
        var bytes = bytes
        while !bytes.isEmpty {
            if let rest {
                let count = min(rest, bytes.count)
                bytes = bytes.dropFirst(count)
                position += UInt64(count)
                self.rest = count < rest ? rest - count : nil
                if self.rest == nil { finish(body) }
            } else {
                head.append(bytes.removeFirst())
                position += 1
                let overhead = SimulatedMessage.overhead
                guard let (length, prefix) = headLength, head.count == prefix + overhead else { continue }
                rest = length - overhead
                if rest == 0 {
                    rest = nil
                    finish(body)
                }
            }
        }
    }

    private mutating func finish(_ body: (SimulatedMessage, UInt64) -> Void) {
        guard let (_, prefix) = headLength else { return }
        let message = head[prefix...].withUnsafeBytes { SimulatedMessage($0) }
        head = []
        if let message { body(message, position) }
    }

    /// The declared length, and the length of the prefix; nil until the prefix is complete.
    private var headLength: (length: Int, prefix: Int)? {
        var length = 0
        for (index, byte) in head.enumerated() {
            length |= Int(byte & 0x7F) << (7 * index)
            if byte < 0x80 { return (length, index + 1) }
        }
        return nil
    }
}
