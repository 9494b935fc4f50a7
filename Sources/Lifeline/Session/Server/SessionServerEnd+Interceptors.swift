extension SessionServerEnd {
    /// Sends a push through the server's interceptors. Separate from `push`, whose task would otherwise keep the memory
    /// for the call.
    @inline(never)
    nonisolated(nonsending) func pushIntercepted(
        _ method: String,
        _ payload: [UInt8],
        _ delivery: SessionDelivery,
        until stage: SessionPushStage,
        metadata: SessionMetadata
    ) async throws(SessionError) {
        let push = SessionCall(method, .push, metadata: metadata, delivery: delivery, until: stage, payload: payload)
        try await server.interceptors[...].send(push, session: self) { (push) async throws(SessionError) in
            try await self.send(push, until: stage)
        }
    }
}
