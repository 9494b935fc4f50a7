/// Intercepts every call between a server's sessions and its handlers. It may refuse or watch the call, and change its
/// metadata and its payload. Changes of other properties have no effect. Also intercepts the server's own pushes to
/// clients.
///
/// The first interceptor of a server is the outermost. For a stream, `next` returns when the handler has returned.
/// Requests for methods that the server does not have are intercepted as unary calls, and `next` throws
/// `unimplemented`. Requests above `SessionLimits.maximumHandlerCount` are not intercepted, but refused at once, and
/// counted by `SessionStatistics.refusedRequestCount`.
public protocol SessionServerInterceptor: Sendable {
    /// Intercepts a call or a push of a client.
    ///
    /// - Parameters:
    ///   - session: the session of the call.
    ///   - next: passes the call to the next interceptor, or to the method's handler, in the task that calls it.
    /// - Throws: an error that becomes the call's status, as `SessionMethod` says. An error for a push is logged.
    func intercept(
        _ call: SessionCall,
        session: SessionServerEnd,
        next: @escaping @Sendable (SessionCall) async throws -> SessionReply
    ) async throws -> SessionReply

    /// Intercepts a push to a client with `SessionServerEnd.push`. Default: calls `next` with the unchanged push.
    ///
    /// Runs in the task that pushes. Messages of streams are not intercepted, because they belong to their call.
    ///
    /// - Parameters:
    ///   - push: may be changed, except for its stage.
    ///   - session: the session of the client.
    ///   - next: sends the push through the next interceptor, or over the session. Returns when the push has reached
    ///     its `SessionCall.stage`.
    /// - Throws: an error that `SessionServerEnd.push` then throws.
    func interceptServerPush(
        _ push: SessionCall,
        session: SessionServerEnd,
        next: @escaping @Sendable (SessionCall) async throws(SessionError) -> Void
    ) async throws(SessionError)
}

extension SessionServerInterceptor {
    public func interceptServerPush(
        _ push: SessionCall,
        session: SessionServerEnd,
        next: @escaping @Sendable (SessionCall) async throws(SessionError) -> Void
    ) async throws(SessionError) {
        try await next(push)
    }
}

extension ArraySlice<any SessionServerInterceptor> {
    /// Handles a call through these interceptors, and finally with `last`.
    func make(
        _ call: SessionCall,
        session: SessionServerEnd,
        by last: @escaping @Sendable (SessionCall) async throws -> SessionReply
    ) async throws -> SessionReply {
        guard let first else { return try await last(call) }
        let rest = dropFirst()
        return try await first.intercept(call, session: session) { call in
            try await rest.make(call, session: session, by: last)
        }
    }

    /// Sends a push through these interceptors, and finally with `last`.
    func send(
        _ push: SessionCall,
        session: SessionServerEnd,
        by last: @escaping @Sendable (SessionCall) async throws(SessionError) -> Void
    ) async throws(SessionError) {
        guard let first else { return try await last(push) }
        let rest = dropFirst()
        try await first.interceptServerPush(push, session: session) { (push) async throws(SessionError) in
            try await rest.send(push, session: session, by: last)
        }
    }
}
