extension SessionServerEnd {
    /// Pushes by way of the server's interceptors. Apart from `push`, whose task would have room for the call otherwise.
    @inline(never)
    nonisolated(nonsending) func pushIntercepted(
        _ method: String,
        _ content: CallContent,
        _ delivery: SessionDelivery,
        until stage: SessionPushStage,
        metadata: SessionMetadata
    ) async throws(SessionError) {
        let push = SessionCall(method, .push, metadata: metadata, delivery: delivery, until: stage, content: content)
        try await server.interceptors[...].send(push, session: self) { (push) async throws(SessionError) in
            let payload = OutgoingPayload.push(
                method: push.method,
                metadata: push.metadata,
                payload: push.content.bytes
            )
            try payload.check(limit: self.frameLimit)
            try await self.engine.push(payload, push.delivery, until: stage)
        }
    }
}
