/// Stands between a client's callers and its session: sees every call, and may change it, refuse it, answer it, or make
/// it again. Sees the server's pushes on their way to the loops that take them, too.
///
/// The first interceptor of a client is the outermost. For a stream, `next` returns when the stream has ended, and
/// whoever leaves its loop cancels the task that the interceptor runs in. A stream that has brought a message is not
/// made again: `next` throws `messageRefused`, as its messages would come twice. Metadata of replies are seen here
/// only.
public protocol SessionClientInterceptor: Sendable {
    /// A call is made, or something is pushed to the server.
    ///
    /// - Parameter next: makes it: by way of the next interceptor, or over the session. For a push it returns when the
    ///   push has come to its `SessionCall.stage`.
    func intercept(
        _ call: SessionCall,
        next: @escaping @Sendable (SessionCall) async throws(SessionError) -> SessionReply
    ) async throws(SessionError) -> SessionReply

    /// A push of the server's that `SessionClient.pushes` was asked for is handed to its loop. Default: `next` is
    /// called with the push as it is.
    ///
    /// Runs in a task of its own for each push, which is cancelled with the task of the loop while that waits for the
    /// push. The loop waits for the end of one push's interceptors before it takes the next push. Metadata of pushes
    /// are seen here only. Values that the interceptor binds to its task do not reach the loop's body.
    ///
    /// - Parameters:
    ///   - push: its method, its metadata and its content. Another payload takes the place of the server's.
    ///   - next: hands it over: by way of the next interceptor, or to the loop. Returns when the loop asks for another
    ///     push or is
    ///     left. Throws `malformedMessage` when the loop takes no such message, and `messageRefused` for a second call.
    /// - Throws: anything: where `next` was not called, the push is dropped. The error is logged as a `warning`. For
    ///   the server the push is processed in either case.
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
    /// Makes a call by way of these, and by `last` in the end.
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

    /// Hands a push of the server's over by way of these, and by `last` in the end.
    func deliver(
        _ push: SessionCall,
        by last: @escaping @Sendable (SessionCall) async throws -> Void
    ) async throws {
        guard let first else { return try await last(push) }
        let rest = dropFirst()
        try await first.interceptServerPush(push) { try await rest.deliver($0, by: last) }
    }
}
