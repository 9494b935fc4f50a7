internal import LifelineCore

extension SessionError {
    /// Makes the error for the end of a session.
    init(_ end: SessionEndReason) {
        switch end {
        case .closed, .abandoned, .shutDown: self = .sessionEnded
        case .expired: self = .expired
        case .madeWay: self = .madeWay
        case .moved: self = .moved
        case .begunAgain: self = .begunAgain
        case .storeDamaged(let error):
            self = SessionError(code: .storeFailed, message: error.message, cause: error)
        case .misconfigured(let error):
            self = SessionError(code: .closedLocally, message: error.message, cause: error)
        case .violated(let violation):
            self = SessionError(SessionGoodbye(.violation, violation.message), byPeer: false)
        case .saidByPeer(let goodbye):
            self = SessionError(goodbye, byPeer: true)
        }
    }

    /// Makes the error for the loss of a session.
    init(_ loss: SessionLoss) {
        switch loss {
        case .forgotten: self = .sessionLost
        case .violated(let violation):
            self = SessionError(SessionGoodbye(.violation, violation.message), byPeer: false)
        case .accused(let goodbye): self = SessionError(goodbye, byPeer: true)
        }
    }

    /// - Parameter end: the reason for the end of the session; nil if it continues.
    init(_ code: RequestError.Code, _ end: SessionError? = nil) {
        switch code {
        case .timedOut: self = .timedOut
        case .cancelled: self = .cancelled
        case .sessionLost: self = end.map { .endedInDoubt($0) } ?? .sessionLost
        case .tooManyInFlight: self = .tooManyInFlight(nil)
        case .messageRefused: self = .messageRefused(nil)
        default: self = end ?? .sessionEnded
        }
    }

    /// - Parameter end: the reason for the end of the session; nil if it continues.
    init(_ error: RequestError, _ end: SessionEndReason?) {
        switch error.code {
        case .tooManyInFlight: self = .tooManyInFlight(error)
        case .messageRefused: self = .messageRefused(error)
        default: self = SessionError(error.code, end.map { SessionError($0) })
        }
    }

    /// - Parameter status: the status of a handler, which is not ok.
    init(status: SessionStatus) {
        let message =
            status.message.isEmpty ? "The handler ended the request with \(status.code)." : status.message.escaped()
        self.init(code: .status, message: message, status: status)
    }

    /// Returns the error of a request that was sent before the session ended.
    private static func endedInDoubt(_ end: SessionError) -> SessionError {
        SessionError(
            code: .sessionLost,
            message:
                "The session ended after the request was sent, so it is unknown whether it was processed. "
                + "Repeat it only if that does no harm.",
            cause: end
        )
    }

    static var timedOut: SessionError {
        SessionError(
            code: .timedOut,
            message:
                "No response came in time. The peer may have acted on the request; repeat it only if that does no harm."
        )
    }

    static var cancelled: SessionError {
        SessionError(code: .cancelled, message: "The task was cancelled. The peer may have acted on what was sent.")
    }

    static var sessionEnded: SessionError { SessionError(SessionGoodbye(.closed), byPeer: false) }

    static var moved: SessionError {
        SessionError(
            code: .moved,
            message: "The session goes on at another server of the fleet. The message was not sent; push it there."
        )
    }

    static func messageRefused(_ cause: (any Error)?) -> SessionError {
        SessionError(
            code: .messageRefused,
            message: "The peer takes no frame of the message's length. Send less at once, or raise its limit.",
            cause: cause
        )
    }

    static var badMethod: SessionError {
        SessionError(
            code: .messageRefused,
            message:
                "The name of the method is empty, longer than \(MethodName.maximumByteCount) bytes, or one of more than "
                + "\(MethodNumbers.maximumCount) in one session."
        )
    }

    static var answeredByStream: SessionError {
        SessionError(
            code: .malformedMessage,
            message: "The peer answered with a stream of messages instead of a single one."
        )
    }

    static func tooManyInFlight(_ cause: (any Error)?) -> SessionError {
        SessionError(
            code: .tooManyInFlight,
            message: "The limit of requests under way is reached. Make fewer at once.",
            cause: cause
        )
    }

    static var serverExhausted: SessionError {
        SessionError(
            code: .serverExhausted,
            message:
                "All sessions of the server together keep as much as SessionServerConfiguration.maximumKeptByteCount allows. "
                + "Send it later, or raise the limit."
        )
    }
}
