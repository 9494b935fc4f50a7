/// Stands between a client's callers and its session: sees every call, and may change it, refuse it, answer it, or make it
/// again.
///
/// The first interceptor of a client is the outermost. For a stream, `next` returns when the stream has ended, and whoever
/// leaves its loop cancels the task that the interceptor runs in. A stream that has brought a message is not made again:
/// `next` throws `messageRefused`, as its messages would come twice. Metadata of replies are seen here only.
public protocol SessionClientInterceptor: Sendable {
    /// A call is made.
    ///
    /// - Parameter next: makes it: by way of the next interceptor, or over the session.
    func intercept(
        _ call: SessionCall,
        next: @escaping @Sendable (SessionCall) async throws(SessionError) -> SessionReply
    ) async throws(SessionError) -> SessionReply
}

extension [any SessionClientInterceptor] {
    /// Makes a call by way of these, and by `last` in the end.
    func make(
        _ call: SessionCall,
        by last: @escaping @Sendable (SessionCall) async throws(SessionError) -> SessionReply
    ) async throws(SessionError) -> SessionReply {
        try await self[...].make(call, by: last)
    }
}

extension ArraySlice<any SessionClientInterceptor> {
    fileprivate func make(
        _ call: SessionCall,
        by last: @escaping @Sendable (SessionCall) async throws(SessionError) -> SessionReply
    ) async throws(SessionError) -> SessionReply {
        guard let first else { return try await last(call) }
        let rest = dropFirst()
        return try await first.intercept(call) { (call) async throws(SessionError) in
            try await rest.make(call, by: last)
        }
    }
}
