internal import LifelineCore

/// The expected behavior of the client in a fault.
package struct Trial: Sendable, CustomStringConvertible {
    package let fault: Fault
    let reaction: Reaction
    let bound: Duration
    /// The time from the repair, or, without a repair, from the fault.
    let healBound: Duration
    var accounting = Accounting.exact
    /// The number of messages that are sent during the fault, and their size in bytes.
    var messagesIntoIt = 20
    var messageSize = 0

    package var description: String { fault.name }

    /// The number of messages that the client reports as undelivered, compared with the number that never arrive.
    enum Accounting: String {
        /// Equal: nothing was on its way when the fault began, or in the end every message has arrived or is reported.
        case exact = ""
        /// No message is lost: both sides end in order, even while messages are on their way.
        case nothingLost = "none may be lost"
        /// At most as many: the peer's kernel acknowledges messages that the peer never reads. But when the peer reads
        /// again, messages at the end of a further connection may be reported, because their acknowledgement is lost
        /// with that connection.
        case reportedAtMost = "reported ≤ lost: the peer's kernel acknowledged what was never read"
        /// At least as many: packets that waited in the client's kernel for the link are sent when it is back, after
        /// the connection was given up.
        case reportedAtLeast = "lost ≤ reported: what waited for the link leaves when it is back"

        /// - Parameters:
        ///   - late: how many of the reported messages were lost after the repair.
        ///   - isBusy: whether the machine may be busy. Then acknowledgements may be late, so the last messages may be
        ///     reported although they arrived.
        func allows(lost: Int, reported: Int, late: Int, isBusy: Bool) -> Bool {
            switch self {
            case .exact: reported == lost
            case .nothingLost: lost == 0 && reported == 0
            case .reportedAtMost: isBusy || reported - late <= lost
            case .reportedAtLeast: reported >= lost
            }
        }
    }
}

/// The result of a fault, or of many of the same kind.
package struct Outcome: Sendable {
    package let name: String
    package internal(set) var reason = ""
    /// The duration of causing the fault. The time to notice may be too long by this much.
    package internal(set) var applied: [Duration] = []
    package internal(set) var noticed: [Duration] = []
    package internal(set) var healed: [Duration] = []
    /// The time just before the last repair; nil without a repair.
    var mended: MonotonicTime?
    package internal(set) var messages = MessageCount(sent: 0)
    /// The failures.
    package internal(set) var misses: [String] = []
    /// The exceeded bounds.
    package internal(set) var delays: [String] = []
    /// Further remarks.
    package internal(set) var note = ""
}
