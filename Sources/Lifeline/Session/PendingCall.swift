internal import LifelineProtos
internal import LifelineTransport

/// A request of this side's, and who waits for its end.
final class PendingCall: Sendable {
    let payload: OutgoingPayload
    /// Where pushes that belong to it go; nil when it is to have none.
    let inbox: SessionInbox?
    let result = Latch<Result<Lifeline_Session_V1_Response, SessionError>>()

    init(_ payload: OutgoingPayload, inbox: SessionInbox?) {
        self.payload = payload
        self.inbox = inbox
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
