internal import LifelineCore

/// Durable calls that have come, and are not begun: as many run as may. The window that they came in bounds them.
struct HeldCalls: Sendable {
    struct Call: Sendable {
        let receipt: SessionMachine.Receipt
        /// The body of its frame.
        let body: [UInt8]
    }

    private var calls = FIFO<Call>()
    /// When to look again whether one may begin; nil: not before something else happens.
    var deadline: MonotonicTime?

    var isEmpty: Bool { calls.isEmpty }
    var first: Call? { calls.first }

    mutating func append(_ call: Call) { calls.append(call) }

    mutating func removeFirst() { _ = calls.popFirst() }
}
