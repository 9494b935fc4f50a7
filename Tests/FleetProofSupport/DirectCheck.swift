/// The messages to one session as they come. At each server, the session has a sender with its own numbers: the next
/// sender begins where the one before has ended.
package struct DirectCheck: Codable, Hashable, Sendable {
    private var senders: [String: NumberCheck] = [:]
    private var newest = ""
    /// How many messages came behind those of a later sender.
    private var lateCount = 0

    package init() {}

    /// A message came.
    package mutating func receive(_ number: Int, of sender: String) {
        if sender != newest {
            if senders[sender] != nil { lateCount += 1 } else { newest = sender }
        }
        senders[sender, default: NumberCheck()].receive(number)
    }

    /// What came of a sender.
    package func numbers(of sender: String) -> NumberCheck { senders[sender] ?? NumberCheck() }

    /// How many messages came, each counted once.
    package var count: Int { senders.values.reduce(0) { $0 + $1.count } }

    /// Those that came twice or late.
    package var doubled: Int { senders.values.reduce(0) { $0 + $1.doubled.count } }
    package var reordered: Int { senders.values.reduce(lateCount) { $0 + $1.reordered.count } }
}
