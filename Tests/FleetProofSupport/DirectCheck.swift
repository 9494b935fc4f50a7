/// The received messages of one session. At each server, the session has a sender with its own numbers. The next sender
/// begins where the previous one has ended.
package struct DirectCheck: Codable, Hashable, Sendable {
    private var senders: [String: NumberCheck] = [:]
    private var newest = ""
    /// How many messages arrived after those of a later sender.
    private var lateCount = 0

    package init() {}

    /// A message arrived.
    package mutating func receive(_ number: Int, of sender: String) {
        if sender != newest {
            if senders[sender] != nil { lateCount += 1 } else { newest = sender }
        }
        senders[sender, default: NumberCheck()].receive(number)
    }

    /// The messages of a sender.
    package func numbers(of sender: String) -> NumberCheck { senders[sender] ?? NumberCheck() }

    /// How many messages arrived, each counted once.
    package var count: Int { senders.values.reduce(0) { $0 + $1.count } }

    /// The messages that arrived twice or late.
    package var doubled: Int { senders.values.reduce(0) { $0 + $1.doubled.count } }
    package var reordered: Int { senders.values.reduce(lateCount) { $0 + $1.reordered.count } }
}
