public import LifelineMessages
internal import LifelineRuntime

/// Where one side of a call sends its messages.
public struct SessionStreamWriter<Message: DelimitedMessage>: Sendable {
    /// The messages' call.
    enum Target: Sendable {
        /// A handler's, which answer a request.
        case response(IncomingRequest)
        /// Those of a request of this side's.
        case request(CallStart)
    }

    let engine: SessionEngine
    let target: Target
    let frameLimit: Int

    /// Sends a message. Returns when it is accepted; waits while the other side has not taken enough of this stream, or
    /// too much is kept for it. When the other side does not wait for the stream any more, messages are dropped; a
    /// handler's task is cancelled then.
    ///
    /// - Parameter stage: `processed` waits until whoever iterates has asked for the next message, so that the sender
    ///   goes at their pace, or has left.
    /// - Throws: `SessionError`: `cancelled`, `messageRefused`, or why the session has ended; until it is processed
    ///   also `notWaitedFor`, and those of `SessionPushStage`.
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
            // Most have begun, and a function that waits costs more than all the rest.
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
