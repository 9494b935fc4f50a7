/// The receiver's side of the credit of one pushed method or stream: how much the peer may send, and when more is
/// granted.
///
/// It never refuses a message that the peer's `SendCredit` allows, however late grants arrive.
///
/// All sums count from the beginning of the session, for a method, or of the request, for a stream.
package struct ReceiveCredit: Equatable, Sendable {
    /// The limit of unconsumed bytes; the last message may exceed it.
    private let limit: Int
    package private(set) var received: UInt64 = 0
    private var consumed: UInt64 = 0
    /// The sum that the peer was told, or the initial credit.
    package private(set) var told: UInt64

    /// - Parameter limit: the credit of this side's terms.
    package init(limit: Int) {
        self.limit = max(limit, 0)
        told = UInt64(self.limit)
    }

    /// Makes a credit after everything received was consumed.
    init(limit: Int, received: UInt64, told: UInt64) {
        self.limit = max(limit, 0)
        (self.received, consumed, self.told) = (received, received, told)
    }

    /// Whether the peer has to be told `told` again on a connection that resumes the session.
    package var needsTelling: Bool { told != UInt64(limit) }

    /// Notes a received message.
    ///
    /// - Throws: `creditExceeded` if all granted credit was used before.
    package mutating func receive(_ cost: Int) throws(SessionViolation) {
        guard received < told else { throw .creditExceeded }
        received += UInt64(cost)
    }

    /// Notes a consumed message. Returns the sum to tell the peer, if at least half of the credit is new to it.
    ///
    /// If everything is consumed and less than half was not told, the peer still has more than half of the credit.
    package mutating func consume(_ cost: Int) -> UInt64? {
        consumed += UInt64(cost)
        precondition(consumed <= received, "more was consumed than came")
        let grantable = consumed + UInt64(limit)
        guard grantable - told >= max(1, UInt64(limit / 2)) else { return nil }
        told = grantable
        return told
    }
}
