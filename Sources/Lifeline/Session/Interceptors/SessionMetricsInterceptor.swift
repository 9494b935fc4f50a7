public import Metrics

/// Counts and times every call and push of a client or a server:
///
/// | metric | kind | dimensions |
/// |---|---|---|
/// | `lifeline.session.calls` | counter | `role`, `method`, `status` (a code's name, as `SessionStatus.Code` has it) |
/// | `lifeline.session.call.duration` | timer | `role`, `method` |
///
/// The role is the side that counts. At its sender, a push lasts until it has reached its stage; at its receiver, until
/// it is processed. All methods that a server does not have are counted as `(unimplemented)`, because names that
/// clients make up would fill the memory.
public struct SessionMetricsInterceptor: Sendable {
    private let factory: any MetricsFactory

    /// - Parameter factory: makes the metrics. Default: the factory of the process.
    public init(factory: any MetricsFactory = MetricsSystem.factory) {
        self.factory = factory
    }

    private func record<Failure: Error>(
        _ call: SessionCall,
        _ role: String,
        _ work: () async throws(Failure) -> SessionReply
    ) async throws(Failure) -> SessionReply {
        let start = ContinuousClock.now
        do throws(Failure) {
            let reply = try await work()
            record(call, role, since: start, nil)
            return reply
        } catch {
            record(call, role, since: start, error)
            throw error
        }
    }

    private func record(
        _ call: SessionCall,
        _ role: String,
        since start: ContinuousClock.Instant,
        _ error: (any Error)?
    ) {
        let dimensions = [("role", role), ("method", call.keptName)]
        let status = error.map { SessionStatus.Code(of: $0) } ?? .ok
        Counter(
            label: "lifeline.session.calls",
            dimensions: dimensions + [("status", "\(status)")],
            factory: factory
        ).increment()
        Timer(label: "lifeline.session.call.duration", dimensions: dimensions, factory: factory)
            .recordNanoseconds((ContinuousClock.now - start).saturatedNanoseconds)
    }
}

extension SessionMetricsInterceptor: SessionClientInterceptor {
    public func intercept(
        _ call: SessionCall,
        next: @escaping @Sendable (SessionCall) async throws(SessionError) -> SessionReply
    ) async throws(SessionError) -> SessionReply {
        try await record(call, "client") { () async throws(SessionError) in try await next(call) }
    }

    public func interceptServerPush(
        _ push: SessionCall,
        next: @escaping @Sendable (SessionCall) async throws -> Void
    ) async throws {
        _ = try await record(push, "client") {
            try await next(push)
            return SessionReply(payload: [])
        }
    }
}

extension SessionMetricsInterceptor: SessionServerInterceptor {
    public func intercept(
        _ call: SessionCall,
        session: SessionServerEnd,
        next: @escaping @Sendable (SessionCall) async throws -> SessionReply
    ) async throws -> SessionReply {
        try await record(call, "server") { try await next(call) }
    }

    public func interceptServerPush(
        _ push: SessionCall,
        session: SessionServerEnd,
        next: @escaping @Sendable (SessionCall) async throws(SessionError) -> Void
    ) async throws(SessionError) {
        _ = try await record(push, "server") { () async throws(SessionError) in
            try await next(push)
            return SessionReply(payload: [])
        }
    }
}
