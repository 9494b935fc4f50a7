internal import LifelineCore
internal import NIOSSL

extension ConnectionError {
    /// Returns the error of a TLS failure, during the handshake or later; nil when the error is not about TLS, but the
    /// peer went away.
    ///
    /// BoringSSL distinguishes its errors only by number and name; NIOSSL has them in its descriptions.
    ///
    /// - Parameter peer: the name of the peer: "the server".
    static func tlsError(_ error: any Error, peer: String) -> ConnectionError? {
        switch error {
        case NIOSSLError.uncleanShutdown:
            return ConnectionError(
                code: .truncated,
                message:
                    "The stream ended without the TLS end of \(peer). The last received data may be incomplete.",
                cause: error
            )
        case NIOSSLError.handshakeFailed(.sslError(let stack)), BoringSSLError.sslError(let stack),
            NIOSSLError.shutdownFailed(.sslError(let stack)):
            return tlsError(stack, peer: peer, cause: error)
        case NIOSSLError.readInInvalidTLSState:
            return ConnectionError(
                code: .protocolViolation,
                message: "The peer sent something after the end of its TLS stream.",
                cause: error
            )
        default:
            return nil
        }
    }

    private static func tlsError(_ stack: NIOBoringSSLErrorStack, peer: String, cause: any Error) -> ConnectionError? {
        // The machine at the other end is gone or has a fault: the next attempt may succeed.
        if stack == [.eofDuringHandshake] || stack.isEmpty { return nil }
        let names = stack.map(\.description).joined(separator: "; ")
        func containsAny(_ candidates: String...) -> Bool { candidates.contains { names.contains(":\($0)") } }

        if containsAny("TLSV1_ALERT_INTERNAL_ERROR", "TLSV1_ALERT_USER_CANCELLED") {
            return ConnectionError(
                code: .connectFailed,
                message: "The peer gave up the TLS connection for a reason of its own.",
                cause: cause
            )
        }
        if containsAny("UNSUPPORTED_PROTOCOL", "TLSV1_ALERT_PROTOCOL_VERSION") {
            return ConnectionError(
                code: .tlsVersionUnsupported,
                message: "This side and \(peer) have no version of TLS in common. Enable TLS 1.2 or 1.3 at \(peer).",
                cause: cause
            )
        }
        if containsAny("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST") {
            return ConnectionError(
                code: .tlsRejected,
                message: "The peer does not speak TLS. Check the port, and whether the endpoint is to be tcp or ws.",
                cause: cause
            )
        }
        if containsAny("PEER_DID_NOT_RETURN_A_CERTIFICATE") {
            return ConnectionError(
                code: .tlsRejected,
                message: "The peer presented no certificate, which this side requires.",
                cause: cause
            )
        }
        if containsAny(
            "SSLV3_ALERT_BAD_CERTIFICATE",
            "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE",
            "SSLV3_ALERT_CERTIFICATE_REVOKED",
            "SSLV3_ALERT_CERTIFICATE_EXPIRED",
            "SSLV3_ALERT_CERTIFICATE_UNKNOWN",
            "TLSV1_ALERT_UNKNOWN_CA",
            "TLSV1_ALERT_ACCESS_DENIED",
            "TLSV1_ALERT_CERTIFICATE_REQUIRED",
            "TLSV1_CERTIFICATE_REQUIRED"
        ) {
            return ConnectionError(
                code: .tlsRejected,
                message: "The peer did not accept this side's certificate, or requires one. Check which it trusts.",
                cause: cause
            )
        }
        if case is BoringSSLError = cause {
            return ConnectionError(
                code: .protocolViolation,
                message: "The peer sent a malformed TLS record; the connection was given up.",
                cause: cause
            )
        }
        return ConnectionError(
            code: .tlsRejected,
            message: "The two sides could not agree on TLS; the cause has the reason.",
            cause: cause
        )
    }
}
