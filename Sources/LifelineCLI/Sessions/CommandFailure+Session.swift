internal import Lifeline

extension CommandFailure {
    /// Makes the failure that a session's or call's error means for the user.
    init(_ error: SessionError) {
        if error.code == .messageUnsent, let cause = error.cause as? SessionError {
            // The reason for the end of the session has more details.
            self.init(cause)
            return
        }
        let status = error.status
        switch error.code {
        case .status: self.init(status: status.map(Self.status(of:)) ?? .software, message: "\(error)")
        case .refused: self.init(status: .noPermission, message: "\(error)")
        case .versionMismatch, .protocolViolation: self.init(status: .protocolBroken, message: "\(error)")
        case .closedByPeer, .replaced, .messageUnsent, .messageDropped:
            self.init(status: .unavailable, message: "\(error)")
        case .timedOut, .messageExpired: self.init(status: .temporary, message: "\(error)")
        case .malformedMessage, .messageRefused: self.init(status: .badData, message: "\(error)")
        default: self.init(status: .inputOutput, message: "\(error)")
        }
    }

    private static func status(of status: SessionStatus) -> Status {
        switch status.code {
        case .unauthenticated, .permissionDenied: .noPermission
        case .unavailable, .resourceExhausted: .unavailable
        case .deadlineExceeded, .cancelled, .aborted: .temporary
        case .invalidArgument, .outOfRange: .badData
        default: .software
        }
    }
}
