/// Stands between a server's sessions and its handlers: sees every call, and may refuse it, watch it, or change its
/// metadata and its payload; what else is changed in a call has no effect any more. Sees the server's own pushes on
/// their way to clients, too.
///
/// The first interceptor of a server is the outermost. For a stream, `next` returns when the handler has. Requests for
/// methods that the server does not have come by as unary ones; `next` throws `unimplemented`. Not among them are
/// requests above `SessionLimits.maximumHandlerCount`, which are refused at once:
/// `SessionStatistics.refusedRequestCount` counts those.
public protocol SessionServerInterceptor: Sendable {
    /// A call or a push came in.
    ///
    /// - Parameters:
    ///   - session: whose call it is.
    ///   - next: handles it: by way of the next interceptor, or the method's handler. It runs in the task that calls
    ///     it.
    /// - Throws: what becomes the call's status, as `SessionMethod` says. What is thrown for a push is logged.
    func intercept(
        _ call: SessionCall,
        session: SessionServerEnd,
        next: @escaping @Sendable (SessionCall) async throws -> SessionReply
    ) async throws -> SessionReply

    /// `SessionServerEnd.push` was called: something is pushed to a client. Default: `next` is called with the push as
    /// it is.
    ///
    /// Runs in the task that pushes. Messages of streams do not come by here, as they belong to their call.
    ///
    /// - Parameters:
    ///   - push: may be changed in all but its stage.
    ///   - session: whose client it is for.
    ///   - next: sends it: by way of the next interceptor, or over the session. Returns when the push has come to its
    ///     `SessionCall.stage`.
    /// - Throws: what `SessionServerEnd.push` throws then.
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
    /// Handles a call by way of these, and by `last` in the end.
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

    /// Sends a push by way of these, and by `last` in the end.
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
