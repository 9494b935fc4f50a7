/// Stands between a server's sessions and its handlers: sees every call, and may refuse it, watch it, or change its
/// metadata; what else is changed in a call has no effect any more.
///
/// The first interceptor of a server is the outermost. For a stream, `next` returns when the handler has. Requests for methods
/// that the server does not have come by as unary ones; `next` throws `unimplemented`. Not among them are requests above
/// `SessionLimits.maximumHandlerCount`, which are refused at once: `SessionStatistics.refusedRequestCount` counts those.
public protocol SessionServerInterceptor: Sendable {
    /// A call came in.
    ///
    /// - Parameters:
    ///   - session: whose call it is.
    ///   - next: handles it: by way of the next interceptor, or the method's handler. It runs in the task that calls it.
    /// - Throws: what becomes the call's status, as `SessionMethod` says.
    func intercept(
        _ call: SessionCall,
        session: ServerSession,
        next: @escaping @Sendable (SessionCall) async throws -> SessionReply
    ) async throws -> SessionReply
}

extension ArraySlice<any SessionServerInterceptor> {
    func make(
        _ call: SessionCall,
        session: ServerSession,
        by last: @escaping @Sendable (SessionCall) async throws -> SessionReply
    ) async throws -> SessionReply {
        guard let first else { return try await last(call) }
        let rest = dropFirst()
        return try await first.intercept(call, session: session) { call in
            try await rest.make(call, session: session, by: last)
        }
    }
}
