public import Tracing

/// Makes a span for every call. On a client it has the kind `client`, and the call's metadata carries its context. On a
/// server it has the kind `server`, and continues that context, so a handler's work belongs to the trace of its caller.
///
/// A push has a span of kind `producer` at its sender, and one of kind `consumer` at its receiver, in both directions.
/// On a client the latter lasts until the loop over the pushes asks for the next one; the body of the loop does not run
/// within it.
public struct SessionTracingInterceptor: Sendable {
    private let tracer: any Tracer

    /// - Parameter tracer: makes the spans, and writes and reads their contexts. Default: the tracer of the process.
    public init(tracer: any Tracer = InstrumentationSystem.tracer) {
        self.tracer = tracer
    }

    /// Runs the work that sends a call. The call carries the context of its span.
    private func sending(
        _ call: SessionCall,
        _ work: (SessionCall) async throws(SessionError) -> SessionReply
    ) async throws(SessionError) -> SessionReply {
        let result = await tracer.withAnySpan(call.method, ofKind: call.kind == .push ? .producer : .client) { span in
            var call = call
            tracer.inject(span.context, into: &call.metadata, using: MetadataCarrier())
            do throws(SessionError) {
                return Result<SessionReply, SessionError>.success(try await work(call))
            } catch {
                span.recordError(error)
                span.fail(error)
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// Runs the work that handles a call, in a span that continues the call's context.
    private func receiving<Result>(_ call: SessionCall, _ work: () async throws -> Result) async throws -> Result {
        var context = ServiceContext.topLevel
        tracer.extract(call.metadata, into: &context, using: MetadataCarrier())
        let kind = call.kind == .push ? SpanKind.consumer : .server
        return try await tracer.withAnySpan(call.keptName, context: context, ofKind: kind) { span in
            do {
                return try await work()
            } catch {
                // The tracer records the error.
                span.fail(error)
                throw error
            }
        }
    }
}

extension SessionTracingInterceptor: SessionClientInterceptor {
    public func intercept(
        _ call: SessionCall,
        next: @escaping @Sendable (SessionCall) async throws(SessionError) -> SessionReply
    ) async throws(SessionError) -> SessionReply {
        try await sending(call, next)
    }

    public func interceptServerPush(
        _ push: SessionCall,
        next: @escaping @Sendable (SessionCall) async throws -> Void
    ) async throws {
        try await receiving(push) { try await next(push) }
    }
}

extension SessionTracingInterceptor: SessionServerInterceptor {
    public func intercept(
        _ call: SessionCall,
        session: SessionServerEnd,
        next: @escaping @Sendable (SessionCall) async throws -> SessionReply
    ) async throws -> SessionReply {
        try await receiving(call) { try await next(call) }
    }

    public func interceptServerPush(
        _ push: SessionCall,
        session: SessionServerEnd,
        next: @escaping @Sendable (SessionCall) async throws(SessionError) -> Void
    ) async throws(SessionError) {
        _ = try await sending(push) { (push) async throws(SessionError) in
            try await next(push)
            return SessionReply(payload: [])
        }
    }
}

extension Tracing.Span {
    fileprivate func fail(_ error: any Error) {
        setStatus(SpanStatus(code: .error, message: "\(SessionStatus.Code(of: error))"))
    }
}

/// Lets a call's metadata carry a span's context.
private struct MetadataCarrier: Injector, Extractor {
    func inject(_ value: String, forKey key: String, into metadata: inout SessionMetadata) {
        metadata[key] = value
    }

    func extract(key: String, from metadata: SessionMetadata) -> String? {
        metadata[key]
    }
}
