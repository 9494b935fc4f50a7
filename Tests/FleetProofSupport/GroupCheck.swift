/// The messages of a group that one member receives, from several senders with their own numbers.
package struct GroupCheck: Codable, Hashable, Sendable {
    private struct Sender: Codable, Hashable {
        var numbers = NumberCheck()
        /// How many gaps had been reported to the member when the sender's last message arrived.
        var gapCount = 0
    }

    private var senders: [String: Sender] = [:]
    private var epoch: UInt64 = 0
    private var offset: UInt64 = 0
    /// How many gaps messages have reported.
    package private(set) var gapCount = 0
    /// How many messages arrived after one with a higher position.
    package private(set) var misplacedCount = 0
    /// How often a gap was reported to the member outside of the messages: by the loss of its session, or by the way in
    /// which it joined again. The position of such a gap is unknown.
    package private(set) var interruptionCount = 0

    package init() {}

    /// A message arrived.
    ///
    /// - Parameter followsGap: whether it reports that messages of the group before it may be missing.
    package mutating func receive(_ number: Int, of sender: String, epoch: UInt64, offset: UInt64, followsGap: Bool) {
        if followsGap { gapCount += 1 }
        if epoch == self.epoch, offset <= self.offset { misplacedCount += 1 }
        (self.epoch, self.offset) = (epoch, offset)
        let isGapTold = senders[sender, default: Sender()].gapCount < gapCount
        senders[sender, default: Sender()].numbers.receive(number, isGapTold: isGapTold)
        senders[sender]?.gapCount = gapCount
    }

    /// A gap was reported to the member outside of the messages.
    package mutating func wasInterrupted() { interruptionCount += 1 }

    /// The messages of a sender.
    package func numbers(of sender: String) -> NumberCheck { senders[sender]?.numbers ?? NumberCheck() }

    /// Whether a gap was reported to the member after the last received message of a sender.
    package func isEndTold(of sender: String) -> Bool { (senders[sender]?.gapCount ?? 0) < gapCount }

    /// How many messages arrived, each counted once.
    package var count: Int { senders.values.reduce(0) { $0 + $1.numbers.count } }

    /// The messages that arrived twice or late.
    package var doubled: Int { senders.values.reduce(0) { $0 + $1.numbers.doubled.count } }
    package var reordered: Int { senders.values.reduce(misplacedCount) { $0 + $1.numbers.reordered.count } }
}
