public import LifelineMessages
internal import LifelineRuntime

/// Sends the messages of one side of a call.
public struct SessionStreamWriter<Message: DelimitedMessage>: Sendable {
    /// The messages' call.
    enum Target: Sendable {
        /// Messages of a handler, which answer a request.
        case response(IncomingRequest)
        /// Messages of a request of this side.
        case request(CallStart)
    }

    let engine: SessionEngine
    let target: Target
    let frameLimit: Int

    /// Sends a message. Returns when it is accepted. Waits while the other side has not taken enough of this stream, or
    /// too many messages are kept for it. When the other side no longer waits for the stream, messages are dropped, and
    /// a handler's task is cancelled.
    ///
    /// - Parameter stage: `processed` waits until the receiving loop has asked for the next message or was left, so
    ///   that the sender keeps the receiver's pace.
    /// - Throws: `SessionError`: `cancelled`, `messageRefused`, or the reason for the end of the session; with the
    ///   stage `processed` also `notWaitedFor`, and those of `SessionPushStage`.
    public nonisolated(nonsending) func send(
        _ message: Message,
        delivery: SessionDelivery = .reliable,
        until stage: SessionPushStage = .accepted
    ) async throws(SessionError) {
        let content = EncodedContent(payload: try message.sessionPayload())
        try content.check(frameLimit: frameLimit)
        let part: SessionEngine.Target
        switch target {
        case .response(let request): part = .partOfResponse(to: request)
        case .request(let start):
            // Most calls have begun, and a function that waits costs more than all the rest.
            let begunID = if let id = start.begunID { id } else { await start.wait() }
            guard let id = begunID else {
                if stage == .accepted { return }
                throw .notWaitedFor
            }
            part = .part(of: id)
        }
        try await engine.send(part, content, delivery, until: stage)
    }
}
