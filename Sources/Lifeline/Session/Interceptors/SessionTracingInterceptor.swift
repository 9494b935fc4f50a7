public import Tracing

/// Makes a span of every call: on a client one of kind `client`, whose context travels in the call's metadata; on a server one
/// of kind `server`, which goes on with it. So a handler's work belongs to the trace of who asked.
public struct SessionTracingInterceptor: Sendable {
    private let tracer: any Tracer

    /// - Parameter tracer: makes the spans, and writes and reads their contexts. Default: the process's.
    public init(tracer: any Tracer = InstrumentationSystem.tracer) {
        self.tracer = tracer
    }
}

extension SessionTracingInterceptor: SessionClientInterceptor {
    public func intercept(
        _ call: SessionCall,
        next: @escaping @Sendable (SessionCall) async throws(SessionError) -> SessionReply
    ) async throws(SessionError) -> SessionReply {
        let result = await tracer.withAnySpan(call.method, ofKind: .client) { span in
            var call = call
            tracer.inject(span.context, into: &call.metadata, using: MetadataCarrier())
            do throws(SessionError) {
                return Result<SessionReply, SessionError>.success(try await next(call))
            } catch {
                span.fail(error)
                return .failure(error)
            }
        }
        return try result.get()
    }
}

extension SessionTracingInterceptor: SessionServerInterceptor {
    public func intercept(
        _ call: SessionCall,
        session: ServerSession,
        next: @escaping @Sendable (SessionCall) async throws -> SessionReply
    ) async throws -> SessionReply {
        var context = ServiceContext.topLevel
        tracer.extract(call.metadata, into: &context, using: MetadataCarrier())
        return try await tracer.withAnySpan(call.keptName, context: context, ofKind: .server) { span in
            do {
                return try await next(call)
            } catch {
                span.setStatus(SpanStatus(code: .error, message: "\(SessionStatus.Code(of: error))"))
                throw error
            }
        }
    }
}

extension Tracing.Span {
    fileprivate func fail(_ error: SessionError) {
        recordError(error)
        setStatus(SpanStatus(code: .error, message: "\(SessionStatus.Code(of: error))"))
    }
}

/// A call's metadata, as what carries a span's context.
private struct MetadataCarrier: Injector, Extractor {
    func inject(_ value: String, forKey key: String, into metadata: inout SessionMetadata) {
        metadata[key] = value
    }

    func extract(key: String, from metadata: SessionMetadata) -> String? {
        metadata[key]
    }
}
