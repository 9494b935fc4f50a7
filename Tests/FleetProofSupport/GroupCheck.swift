/// The messages of a group as they come to one member, from several senders, each with its own numbers.
package struct GroupCheck: Codable, Hashable, Sendable {
    private struct Sender: Codable, Hashable {
        var numbers = NumberCheck()
        /// How many gaps the member was told of when the sender's last message came.
        var gapCount = 0
    }

    private var senders: [String: Sender] = [:]
    private var epoch: UInt64 = 0
    private var offset: UInt64 = 0
    /// How many gaps messages have told of.
    package private(set) var gapCount = 0
    /// How many messages came behind one with a higher position.
    package private(set) var misplacedCount = 0
    /// How often the member was told beside the messages that some may be missing: with the loss of its session, or by
    /// the way in which it joined again. Where among the messages that was, it was not told.
    package private(set) var interruptionCount = 0

    package init() {}

    /// A message came.
    ///
    /// - Parameter followsGap: whether it tells that messages of the group before it may be missing.
    package mutating func receive(_ number: Int, of sender: String, epoch: UInt64, offset: UInt64, followsGap: Bool) {
        if followsGap { gapCount += 1 }
        if epoch == self.epoch, offset <= self.offset { misplacedCount += 1 }
        (self.epoch, self.offset) = (epoch, offset)
        let isGapTold = senders[sender, default: Sender()].gapCount < gapCount
        senders[sender, default: Sender()].numbers.receive(number, isGapTold: isGapTold)
        senders[sender]?.gapCount = gapCount
    }

    /// The member was told beside the messages that some may be missing.
    package mutating func wasInterrupted() { interruptionCount += 1 }

    /// What came of a sender.
    package func numbers(of sender: String) -> NumberCheck { senders[sender]?.numbers ?? NumberCheck() }

    /// Whether the member was told of a gap after the last message of a sender that came.
    package func isEndTold(of sender: String) -> Bool { (senders[sender]?.gapCount ?? 0) < gapCount }

    /// How many messages came, each counted once.
    package var count: Int { senders.values.reduce(0) { $0 + $1.numbers.count } }

    /// Those that came twice or late.
    package var doubled: Int { senders.values.reduce(0) { $0 + $1.numbers.doubled.count } }
    package var reordered: Int { senders.values.reduce(misplacedCount) { $0 + $1.numbers.reordered.count } }
}
