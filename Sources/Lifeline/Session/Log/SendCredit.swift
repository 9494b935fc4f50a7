/// The sender's side of the credit of one pushed method or stream: how much it may send.
///
/// All sums count from the beginning of the session, for a method, or of the request, for a stream.
package struct SendCredit: Equatable, Sendable {
    /// All bytes that the peer has granted, including the initial credit.
    package private(set) var granted: UInt64
    /// All bytes that were used and not given back.
    package private(set) var used: UInt64 = 0

    /// - Parameter initial: the credit of the peer's terms; until they are known, the minimum of 64 KiB.
    package init(initial: Int) {
        granted = UInt64(max(initial, 0))
    }

    /// Makes a credit that was used before.
    init(granted: UInt64, used: UInt64) { (self.granted, self.used) = (granted, used) }

    /// Whether a message of any size may be sent now. The last one may use more than is left, because otherwise a large
    /// message would wait for ever.
    package var hasLeft: Bool { used < granted }

    /// Whether this much is left. A message that replaces an earlier one needs that, because others wait behind it.
    package func covers(_ cost: Int) -> Bool { used + UInt64(cost) <= granted }

    /// Uses credit for a message. There must be credit left.
    package mutating func use(_ cost: Int) {
        used += UInt64(cost)
    }

    /// Returns the credit of a message that is not sent, or is replaced by a blank.
    package mutating func giveBack(_ cost: Int) {
        precondition(used >= UInt64(cost), "more credit was given back than used")
        used -= UInt64(cost)
    }

    /// Notes the sum of bytes that the peer has granted. Returns whether it is more than before; a lower sum is
    /// ignored.
    @discardableResult
    package mutating func grant(_ bytes: UInt64) -> Bool {
        guard bytes > granted else { return false }
        granted = bytes
        return true
    }
}
