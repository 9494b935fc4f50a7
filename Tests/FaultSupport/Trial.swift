internal import LifelineCore

/// What is expected of the client in a fault.
package struct Trial: Sendable, CustomStringConvertible {
    package let fault: Fault
    let reaction: Reaction
    let bound: Duration
    /// From when all is right again, or, where there is nothing to put right, from the fault.
    let healBound: Duration
    var accounting = Accounting.exact
    /// So much is sent into the fault, with so many bytes each.
    var messagesIntoIt = 20
    var messageSize = 0

    package var description: String { fault.name }

    /// How many messages the client reports as not delivered, beside how many never arrive.
    enum Accounting: String {
        /// As many: nothing was on its way when the fault began, or at the end everything has arrived or is reported.
        case exact = ""
        /// None is lost: both sides end in order, also while messages are on their way.
        case nothingLost = "none may be lost"
        /// At most as many: the peer's kernel acknowledges what the peer never reads. But once the peer reads again,
        /// what it gets of a further connection's end may be reported, as its acknowledgement vanishes with that
        /// connection.
        case reportedAtMost = "reported ≤ lost: the peer's kernel acknowledged what was never read"
        /// At least as many: packets that waited for the link in the client's kernel leave when it is back, after the
        /// connection was given up.
        case reportedAtLeast = "lost ≤ reported: what waited for the link leaves when it is back"

        /// - Parameters:
        ///   - late: so many of the reported ones were after all was right again.
        ///   - isBusy: whether the machine may be busy. Then acknowledgements may be late, so that what arrived last is
        ///     reported.
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

/// What came of a fault, or of many of a kind.
package struct Outcome: Sendable {
    package let name: String
    package internal(set) var reason = ""
    /// How long making the fault took: so much too long may the time to notice be.
    package internal(set) var applied: [Duration] = []
    package internal(set) var noticed: [Duration] = []
    package internal(set) var healed: [Duration] = []
    /// When all was about to be put right, the last time; nil where there was nothing to put right.
    var mended: MonotonicTime?
    package internal(set) var messages = MessageCount(sent: 0)
    /// What was not as it must be.
    package internal(set) var misses: [String] = []
    /// What took too long.
    package internal(set) var delays: [String] = []
    /// What else is worth knowing.
    package internal(set) var note = ""
}
