internal import LifelineCore

/// Received durable calls that have to wait, because the limit of running ones is reached. The window that they arrived
/// in bounds their number.
struct HeldCalls: Sendable {
    struct Call: Sendable {
        let receipt: SessionMachine.Receipt
        /// The body of the call's frame.
        let body: [UInt8]
    }

    private var calls = FIFO<Call>()
    /// The time to check again whether a call may begin; nil to wait for another event.
    var deadline: MonotonicTime?

    var isEmpty: Bool { calls.isEmpty }
    var first: Call? { calls.first }

    mutating func append(_ call: Call) { calls.append(call) }

    mutating func removeFirst() { _ = calls.popFirst() }
}
