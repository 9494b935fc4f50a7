internal import Glibc
internal import LifelineCore

// Errors as a transport would report them.
extension ConnectionError {
    private static func system(_ code: Code, _ message: String, _ number: CInt) -> ConnectionError {
        ConnectionError(code: code, message: message, cause: nil, systemErrorNumber: number)
    }

    static var connectionReset: ConnectionError {
        system(.closedByPeer, "The peer reset the connection.", ECONNRESET)
    }

    static var connectionRefused: ConnectionError {
        system(.connectFailed, "The peer refused the connection.", ECONNREFUSED)
    }

    static var networkUnreachable: ConnectionError {
        system(.connectFailed, "There is no route to the peer.", ENETUNREACH)
    }

    static var certificateRejected: ConnectionError {
        ConnectionError(code: .tlsRejected, message: "The peer's certificate was not accepted.")
    }

    static var transmissionTimedOut: ConnectionError {
        system(.ioError, "The peer acknowledged nothing for too long.", ETIMEDOUT)
    }

    static var handshakeTimedOut: ConnectionError {
        system(.connectFailed, "The peer did not answer for too long.", ETIMEDOUT)
    }

    static func violation(_ cause: any Error) -> ConnectionError {
        ConnectionError(code: .protocolViolation, message: "The peer sent what is no frame.", cause: cause)
    }

    static var gone: ConnectionError { TransitionReason(.heartbeatTimeout).asError }
}
