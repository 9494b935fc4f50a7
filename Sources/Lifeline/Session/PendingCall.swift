internal import LifelineProtos
internal import LifelineTransport
internal import NIOConcurrencyHelpers

/// A request of this side's, and who waits for its end: one task, which learns of it by one continuation.
final class PendingCall: Sendable {
    typealias Outcome = Result<Lifeline_Session_V1_Response, SessionError>

    private struct State {
        enum Stage {
            /// Can go to: awaited, ended.
            case begun
            /// Can go to: ended.
            case awaited(CheckedContinuation<Outcome, Never>)
            /// Can go to: nothing.
            case ended(Outcome)
        }

        var stage = Stage.begun
        var wasSent = false
    }

    let payload: OutgoingPayload
    /// Where pushes that belong to it go; nil when it is to have none.
    let inbox: SessionInbox?
    private let state = NIOLockedValueBox(State())

    init(_ payload: OutgoingPayload, inbox: SessionInbox?) {
        self.payload = payload
        self.inbox = inbox
    }

    /// Whether the peer may have seen it.
    var wasSent: Bool { state.withLockedValue { $0.wasSent } }

    /// It is sent. Returns whether that is for the first time.
    func sent() -> Bool {
        state.withLockedValue { state in
            defer { state.wasSent = true }
            return !state.wasSent
        }
    }

    /// It has ended, which it does once.
    func resolve(with outcome: Outcome) {
        let continuation = state.withLockedValue { state -> CheckedContinuation<Outcome, Never>? in
            defer { state.stage = .ended(outcome) }
            if case .awaited(let continuation) = state.stage { return continuation }
            return nil
        }
        continuation?.resume(returning: outcome)
    }

    /// Waits for its end, whether or not the task is cancelled: that ends it, too. One task may wait, once.
    nonisolated(nonsending) func wait() async -> Outcome {
        await withCheckedContinuation { continuation in
            let outcome = state.withLockedValue { state -> Outcome? in
                if case .ended(let outcome) = state.stage { return outcome }
                state.stage = .awaited(continuation)
                return nil
            }
            if let outcome { continuation.resume(returning: outcome) }
        }
    }
}

/// A push of this side's whose end is not known yet.
struct PendingPush: Sendable {
    let payload: OutgoingPayload
    let delivery: SessionDelivery
    /// Whether the user is told when it is in doubt. Who waits for a stream learns from its end what its messages are worth.
    let isTracked: Bool
    /// Who waits for room; nil when nobody does. Opens with an error when the push will never be sent.
    var admission: Latch<SessionError?>?
    /// Who waits until it is processed; nil when nobody does. Opens with an error when it does not come to that.
    let processing: Latch<SessionError?>?

    /// The same when nobody waits for room any more.
    var admitted: PendingPush {
        var push = self
        push.admission = nil
        return push
    }
}
