// Pushes that do not wait, to many sessions at once.
extension SessionServerEnd {
    /// The answer to a push that was offered.
    package enum Offer: Sendable {
        /// It is accepted, or its delivery let it be dropped.
        case accepted
        /// Its sender would have to wait: for room or credit, or for interceptors.
        case wouldWait
        /// The session does not take it, or any more.
        case refused(SessionError)
    }

    /// A push that is encoded once, for any number of sessions.
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

        /// How many bytes it takes, about.
        package var byteCount: Int { content.byteCount + SessionSize.frameOverhead }
    }

    /// Whether it takes nothing any more.
    package var hasEnded: Bool { engine.endReason != nil }

    /// Whether pushes go by way of interceptors, so that none is accepted at once.
    package var hasInterceptors: Bool { !interceptors.isEmpty }

    /// Takes a push if it can be accepted at once.
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
