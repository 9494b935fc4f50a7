import FaultSupport

/// What is expected of the client in a fault.
struct Trial: Sendable {
    let fault: Fault
    /// Any of these reasons is right for leaving `ready`.
    let reasons: Set<String>
    let bound: Duration
    /// From when all is right again, or, where there is nothing to put right, from the fault.
    let healBound: Duration
    /// Nothing that was sent before may be lost: the peer takes leave in order.
    var isGraceful = false
    /// The peer's kernel acknowledges what the peer never reads, so that more can be lost than the client can know.
    var isAcknowledgedUnread = false
    /// So much is sent into the fault, with so many bytes each.
    var messagesIntoIt = 20
    var messageSize = 0
}

/// What came of a fault, or of many of a kind.
struct Outcome: Sendable {
    var name: String
    var reason = ""
    /// How long making the fault took: so much too long may the time to notice be.
    var applied: [Duration] = []
    var noticed: [Duration] = []
    var healed: [Duration] = []
    var messages = MessageCount(sent: 0)
    /// Of these, what was sent before the fault.
    var messagesBefore = MessageCount(sent: 0)
    /// What was not as it must be.
    var misses: [String] = []
    /// What else is worth knowing.
    var note = ""
}
