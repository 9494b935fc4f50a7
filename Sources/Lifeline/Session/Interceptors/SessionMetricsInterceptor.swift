public import Metrics

/// Counts and times every call of a client, or of a server:
///
/// | metric | kind | dimensions |
/// |---|---|---|
/// | `lifeline.session.calls` | counter | `role`, `method`, `status` (a code's name, as `SessionStatus.Code` has it) |
/// | `lifeline.session.call.duration` | timer | `role`, `method` |
///
/// All methods that a server does not have are `(unimplemented)`: names that clients make up would fill the memory.
public struct SessionMetricsInterceptor: Sendable {
    private let factory: any MetricsFactory

    /// - Parameter factory: where metrics go. Default: the process's.
    public init(factory: any MetricsFactory = MetricsSystem.factory) {
        self.factory = factory
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
        let start = ContinuousClock.now
        do throws(SessionError) {
            let reply = try await next(call)
            record(call, "client", since: start, nil)
            return reply
        } catch {
            record(call, "client", since: start, error)
            throw error
        }
    }
}

extension SessionMetricsInterceptor: SessionServerInterceptor {
    public func intercept(
        _ call: SessionCall,
        session: ServerSession,
        next: @escaping @Sendable (SessionCall) async throws -> SessionReply
    ) async throws -> SessionReply {
        let start = ContinuousClock.now
        do {
            let reply = try await next(call)
            record(call, "server", since: start, nil)
            return reply
        } catch {
            record(call, "server", since: start, error)
            throw error
        }
    }
}
