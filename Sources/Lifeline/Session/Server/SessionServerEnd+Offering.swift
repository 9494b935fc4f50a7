// Pushes to many sessions at once, without waiting.
extension SessionServerEnd {
    /// The outcome of a push that was offered.
    package enum Offer: Sendable {
        /// The push is accepted, or was dropped, as its delivery allows.
        case accepted
        /// The sender would have to wait for room, for credit or for interceptors.
        case wouldWait
        /// The session refuses the push, or has ended.
        case refused(SessionError)
    }

    /// A push that is encoded once for any number of sessions.
    package struct EncodedPush: Sendable {
        package let method: String
        package let metadata: SessionMetadata
        package let delivery: SessionDelivery
        let content: EncodedContent

        /// - Throws: `messageRefused` when there is more metadata than a push may have.
        package init(
            _ method: String,
            payload: [UInt8],
            metadata: SessionMetadata,
            delivery: SessionDelivery
        ) throws(SessionError) {
            (self.method, self.metadata, self.delivery) = (method, metadata, delivery)
            content = try EncodedContent(.push, metadata, payload: payload)
        }

        /// The approximate number of bytes that the push takes.
        package var byteCount: Int { content.byteCount + SessionSize.frameOverhead }
    }

    /// Whether the session has ended, and takes no more pushes.
    package var hasEnded: Bool { engine.endReason != nil }

    /// Whether pushes pass through interceptors, so that none is accepted at once.
    package var hasInterceptors: Bool { !interceptors.isEmpty }

    /// Sends a push if it can be accepted at once.
    package func offer(_ push: EncodedPush) -> Offer {
        if hasInterceptors { return .wouldWait }
        do throws(SessionError) {
            try push.content.check(frameLimit: frameLimit)
            return try engine.offer(push.method, push.content, push.delivery) ? .accepted : .wouldWait
        } catch {
            return .refused(error)
        }
    }

    /// Waits until the push is accepted.
    ///
    /// - Throws: `SessionError`, as `push` does.
    package nonisolated(nonsending) func send(_ push: EncodedPush) async throws(SessionError) {
        guard interceptors.isEmpty else {
            return try await pushIntercepted(
                push.method,
                push.content.payload,
                push.delivery,
                until: .accepted,
                metadata: push.metadata
            )
        }
        try push.content.check(frameLimit: frameLimit)
        try await engine.send(.push(method: push.method), push.content, push.delivery, until: .accepted)
    }
}
