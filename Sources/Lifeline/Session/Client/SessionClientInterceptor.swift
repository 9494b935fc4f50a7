/// Intercepts every call between a client's callers and its session, and may change, refuse, answer or repeat it. Also
/// intercepts the server's pushes on their way to the loops that take them.
///
/// The first interceptor of a client is the outermost. For a stream, `next` returns when the stream has ended, and
/// leaving the stream's loop cancels the interceptor's task. A stream that has delivered a message is not repeated,
/// because its messages would come twice: `next` throws `messageRefused`. Only interceptors see the metadata of
/// replies.
public protocol SessionClientInterceptor: Sendable {
    /// Intercepts a call, or a push to the server.
    ///
    /// - Parameter next: makes the call, through the next interceptor or over the session. For a push it returns when
    ///   the push has reached its `SessionCall.stage`.
    func intercept(
        _ call: SessionCall,
        next: @escaping @Sendable (SessionCall) async throws(SessionError) -> SessionReply
    ) async throws(SessionError) -> SessionReply

    /// Intercepts a push from the server to a loop over `SessionClient.pushes`. Default: calls `next` with the
    /// unchanged push.
    ///
    /// Runs in its own task for each push. The task is cancelled with the task of the loop while the loop waits for the
    /// push. The loop waits for one push's interceptors to end before it takes the next push. Task-local values of the
    /// interceptor do not reach the loop's body.
    ///
    /// - Parameters:
    ///   - push: the method, the metadata and the content. A changed payload replaces the server's.
    ///   - next: passes the push to the next interceptor or to the loop. Returns when the loop asks for another push or
    ///     is left. Throws `malformedMessage` when the loop takes no such message, and `messageRefused` for a second
    ///     call.
    /// - Throws: any error, which is logged as a `warning`. If `next` was not called, the push is dropped. For the
    ///   server the push counts as processed in either case.
    func interceptServerPush(
        _ push: SessionCall,
        next: @escaping @Sendable (SessionCall) async throws -> Void
    ) async throws
}

extension SessionClientInterceptor {
    public func interceptServerPush(
        _ push: SessionCall,
        next: @escaping @Sendable (SessionCall) async throws -> Void
    ) async throws {
        try await next(push)
    }
}

extension ArraySlice<any SessionClientInterceptor> {
    /// Makes a call through these interceptors, and finally with `last`.
    func make(
        _ call: SessionCall,
        by last: @escaping @Sendable (SessionCall) async throws(SessionError) -> SessionReply
    ) async throws(SessionError) -> SessionReply {
        guard let first else { return try await last(call) }
        let rest = dropFirst()
        return try await first.intercept(call) { (call) async throws(SessionError) in
            try await rest.make(call, by: last)
        }
    }

    /// Passes a push from the server through these interceptors, and finally to `last`.
    func deliver(
        _ push: SessionCall,
        by last: @escaping @Sendable (SessionCall) async throws -> Void
    ) async throws {
        guard let first else { return try await last(push) }
        let rest = dropFirst()
        try await first.interceptServerPush(push) { try await rest.deliver($0, by: last) }
    }
}
