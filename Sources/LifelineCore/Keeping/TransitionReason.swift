/// The reason why a connection went from one state to another.
///
/// Two reasons are equal when their codes are, and the codes and messages of their errors; the errors' causes, which
/// can be of any type, are not compared.
public struct TransitionReason: Sendable {
    /// The kind of reason. More kinds may be added.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Kind {
            case started, networkUp, networkLost, connected, connectFailed, retryDue, attemptsUsedUp
            case closedByPeer, connectionFailed, heartbeatTimeout, protocolViolation, tlsRejected
            case reconnectRequested, closedByUser, drained, cancelled
        }
        private let kind: Kind

        /// The client was started.
        public static let started = Code(kind: .started)
        /// The network came, or came back.
        public static let networkUp = Code(kind: .networkUp)
        /// The network went away.
        public static let networkLost = Code(kind: .networkLost)
        /// The attempt to connect succeeded.
        public static let connected = Code(kind: .connected)
        /// The attempt to connect failed; the error has the reason.
        public static let connectFailed = Code(kind: .connectFailed)
        /// The time of the next attempt came.
        public static let retryDue = Code(kind: .retryDue)
        /// The last attempt failed, or its connection was lost; the error has the reason.
        public static let attemptsUsedUp = Code(kind: .attemptsUsedUp)
        /// The peer ended the connection: in order, or, when there is an error, by a reset or a cut.
        public static let closedByPeer = Code(kind: .closedByPeer)
        /// The connection failed; the error has the reason.
        public static let connectionFailed = Code(kind: .connectionFailed)
        /// The peer gave no sign of life: the peer, or the way to it, is gone.
        public static let heartbeatTimeout = Code(kind: .heartbeatTimeout)
        /// The peer sent a malformed frame or message; the error has the details.
        public static let protocolViolation = Code(kind: .protocolViolation)
        /// One side did not accept the other's certificate or TLS parameters; the error's code has the details. Waiting
        /// does not help, so no attempt follows. A change of the network, which may lead out of a captive portal, or
        /// `reconnect()` starts again.
        public static let tlsRejected = Code(kind: .tlsRejected)
        /// The user asked for a new connection.
        public static let reconnectRequested = Code(kind: .reconnectRequested)
        /// The user closed.
        public static let closedByUser = Code(kind: .closedByUser)
        /// The user closed, everything was written, and both sides have ended.
        public static let drained = Code(kind: .drained)
        /// The task that runs the client was cancelled.
        public static let cancelled = Code(kind: .cancelled)

        /// The code's name.
        public var description: String { "\(kind)" }
    }

    /// The kind of reason.
    public let code: Code
    /// The error behind the reason, if there is one.
    public let error: ConnectionError?

    package init(_ code: Code, error: ConnectionError? = nil) {
        self.code = code
        self.error = error
    }
}

extension TransitionReason: Equatable {
    /// Whether the codes, and the errors' codes and messages, are equal.
    public static func == (first: TransitionReason, second: TransitionReason) -> Bool {
        first.code == second.code && first.error?.code == second.error?.code
            && first.error?.message == second.error?.message
    }
}

extension TransitionReason: CustomStringConvertible {
    /// The code, and the error if there is one.
    public var description: String {
        guard let error else { return "\(code)" }
        return "\(code) (\(error))"
    }
}

extension TransitionReason {
    /// Makes the reason for a failed attempt to connect.
    package static func connectFailed(_ error: ConnectionError) -> TransitionReason {
        TransitionReason(error.code.isTLSRejection ? .tlsRejected : .connectFailed, error: error)
    }

    /// Makes the reason for the end of a connection from the transport's error; nil means that the peer ended it in
    /// order.
    package static func ended(by error: ConnectionError?) -> TransitionReason {
        guard let error else { return TransitionReason(.closedByPeer) }
        let code: Code =
            switch error.code {
            case .closedByPeer, .truncated: .closedByPeer
            case .protocolViolation: .protocolViolation
            case _ where error.code.isTLSRejection: .tlsRejected
            case .heartbeatTimeout: .heartbeatTimeout
            case .networkLost: .networkLost
            default: .connectionFailed
            }
        return TransitionReason(code, error: error)
    }

    /// Whether the same attempt would end the same way again, because this side's configuration was refused.
    package var isFatal: Bool {
        guard let error else { return false }
        if let refusal = error.cause as? WebSocketRefusal { return !refusal.isTransient }
        return error.code.isTLSRejection
            || [
                .invalidConfiguration, .invalidEndpoint, .unixSocketPathTooLong, .proxyRefused,
                .proxyAuthenticationRequired,
            ].contains(error.code)
    }

    /// The error of a connection that was given up for this reason.
    package var asError: ConnectionError {
        if let error { return error }
        return switch code {
        case .closedByPeer:
            ConnectionError(code: .closedByPeer, message: "The peer ended the connection.")
        case .heartbeatTimeout:
            ConnectionError(
                code: .heartbeatTimeout,
                message: "The peer gave no sign of life; the peer, or the way to it, is gone."
            )
        case .networkLost:
            ConnectionError(code: .networkLost, message: "The network went away.")
        case .reconnectRequested:
            ConnectionError(
                code: .closedLocally,
                message: "The connection was replaced by a new one, as requested."
            )
        case .cancelled:
            ConnectionError(code: .closedLocally, message: "The task that runs the client was cancelled.")
        default:
            ConnectionError(code: .closedLocally, message: "The connection was closed on this side.")
        }
    }
}
