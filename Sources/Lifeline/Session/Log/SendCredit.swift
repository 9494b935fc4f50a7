/// The sender's side of the credit of one pushed method or stream: how much it may send.
///
/// All sums count from the beginning of the session, for a method, or of the request, for a stream.
package struct SendCredit: Equatable, Sendable {
    /// All bytes that the peer has granted, the initial credit among them.
    package private(set) var granted: UInt64
    /// All bytes that were used and not given back.
    package private(set) var used: UInt64 = 0

    /// - Parameter initial: the credit of the peer's terms; while they are not known, the least that there is: 64 KiB.
    package init(initial: Int) {
        granted = UInt64(max(initial, 0))
    }

    /// One that was used before.
    init(granted: UInt64, used: UInt64) { (self.granted, self.used) = (granted, used) }

    /// Whether a message may be sent now, of whatever size: the last one may use more than is left, as a large message
    /// would wait for ever otherwise.
    package var hasLeft: Bool { used < granted }

    /// Whether so much is left. A message that takes the place of an earlier one needs that, as others stand behind it.
    package func covers(_ cost: Int) -> Bool { used + UInt64(cost) <= granted }

    /// A message is to be sent, for which there is credit left.
    package mutating func use(_ cost: Int) {
        used += UInt64(cost)
    }

    /// A message that has used credit is not sent, or a blank is sent in its place.
    package mutating func giveBack(_ cost: Int) {
        precondition(used >= UInt64(cost), "more credit was given back than used")
        used -= UInt64(cost)
    }

    /// The peer has granted so many bytes in all. Returns whether that is more than before; a lower sum says nothing.
    @discardableResult
    package mutating func grant(_ bytes: UInt64) -> Bool {
        guard bytes > granted else { return false }
        granted = bytes
        return true
    }
}
