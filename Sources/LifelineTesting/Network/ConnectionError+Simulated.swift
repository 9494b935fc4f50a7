internal import LifelineCore

// Errors as a transport would report them.
extension ConnectionError {
    static var connectionReset: ConnectionError {
        ConnectionError(code: .closedByPeer, message: "The peer reset the connection.")
    }

    static var connectionRefused: ConnectionError {
        ConnectionError(code: .connectFailed, message: "The peer refused the connection.")
    }

    static var networkUnreachable: ConnectionError {
        ConnectionError(code: .connectFailed, message: "There is no route to the peer.")
    }

    static var certificateRejected: ConnectionError {
        ConnectionError(code: .tlsRejected, message: "The peer's certificate was not accepted.")
    }

    static var transmissionTimedOut: ConnectionError {
        ConnectionError(code: .ioError, message: "The peer acknowledged nothing for too long.")
    }

    static var handshakeTimedOut: ConnectionError {
        ConnectionError(code: .connectFailed, message: "The peer did not answer for too long.")
    }

    static func violation(_ cause: any Error) -> ConnectionError {
        ConnectionError(code: .protocolViolation, message: "The peer sent what is no frame.", cause: cause)
    }

    static var gone: ConnectionError { TransitionReason(.heartbeatTimeout).asError }
}
