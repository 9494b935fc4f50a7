internal import LifelineCore
public import Logging

/// Logs every call and push of a client or a server with its method, outcome, duration and size.
public struct SessionLoggingInterceptor: Sendable {
    private let logger: Logger
    private let level: Logger.Level

    /// - Parameters:
    ///   - logger: receives the calls.
    ///   - level: the level of successful calls; failed ones have at least `info`. Default: `debug`.
    public init(logger: Logger, level: Logger.Level = .debug) {
        self.logger = logger
        self.level = level
    }

    private func log<Failure: Error>(
        _ call: SessionCall,
        _ work: () async throws(Failure) -> SessionReply
    ) async throws(Failure) -> SessionReply {
        let start = ContinuousClock.now
        do throws(Failure) {
            let reply = try await work()
            log(call, since: start, .success(reply))
            return reply
        } catch {
            log(call, since: start, .failure(error))
            throw error
        }
    }

    private func log(_ call: SessionCall, since start: ContinuousClock.Instant, _ end: Result<SessionReply, any Error>)
    {
        var metadata: Logger.Metadata = [
            "method": "\(call.method.escaped(limit: 100))",
            "kind": "\(call.kind)",
            "duration": "\(ContinuousClock.now - start)",
            "sentBytes": "\(call.payloadByteCount)",
        ]
        switch end {
        case .success(let reply):
            metadata["replyBytes"] = "\(reply.payloadByteCount)"
            logger.log(level: level, "A call succeeded", metadata: metadata)
        case .failure(let error):
            metadata["status"] = "\(SessionStatus.Code(of: error))"
            metadata["error"] = "\("\(error)".escaped())"
            logger.log(level: max(level, .info), "A call failed", metadata: metadata)
        }
    }
}

extension SessionLoggingInterceptor: SessionClientInterceptor {
    public func intercept(
        _ call: SessionCall,
        next: @escaping @Sendable (SessionCall) async throws(SessionError) -> SessionReply
    ) async throws(SessionError) -> SessionReply {
        try await log(call) { () async throws(SessionError) in try await next(call) }
    }

    public func interceptServerPush(
        _ push: SessionCall,
        next: @escaping @Sendable (SessionCall) async throws -> Void
    ) async throws {
        _ = try await log(push) {
            try await next(push)
            return SessionReply(payload: [])
        }
    }
}

extension SessionLoggingInterceptor: SessionServerInterceptor {
    public func intercept(
        _ call: SessionCall,
        session: SessionServerEnd,
        next: @escaping @Sendable (SessionCall) async throws -> SessionReply
    ) async throws -> SessionReply {
        try await log(call) { try await next(call) }
    }

    public func interceptServerPush(
        _ push: SessionCall,
        session: SessionServerEnd,
        next: @escaping @Sendable (SessionCall) async throws(SessionError) -> Void
    ) async throws(SessionError) {
        _ = try await log(push) { () async throws(SessionError) in
            try await next(push)
            return SessionReply(payload: [])
        }
    }
}

extension SessionStatus.Code {
    /// Makes the outcome of a call that ended with an error.
    init(of error: any Error) {
        switch error {
        case let status as SessionStatus: self = status.code
        case is CancellationError: self = .cancelled
        case let error as SessionError:
            switch error.code {
            case .status: self = error.status?.code ?? .unknown
            case .timedOut: self = .deadlineExceeded
            case .cancelled: self = .cancelled
            case .tooManyInFlight: self = .resourceExhausted
            case .messageRefused: self = .invalidArgument
            case .malformedMessage: self = .internal
            case .refused: self = .unauthenticated
            default: self = .unavailable
            }
        default: self = .unknown
        }
    }
}
