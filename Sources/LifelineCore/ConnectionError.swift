/// Why a connection could not be made, or failed, or refused what was asked of it.
public struct ConnectionError: Error, Sendable, CustomStringConvertible {
    /// What kind of failure this is. More may be added.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Kind {
            case closedByPeer, closedLocally, protocolViolation, ioError
            case connectFailed, connectTimeout, listenFailed, addressInUse, invalidEndpoint, invalidConfiguration
            case unixSocketPathTooLong
            case sendingFinished, messageRefused, concurrentIteration
            case networkLost, heartbeatTimeout
            case tlsRejected, tlsVersionUnsupported, truncated
            case certificateExpired, certificateHostMismatch, certificateUntrusted, certificatePinMismatch
            case peerUnresponsive, idleTimeout, writeTimeout, tooManyUnansweredBytes
            case notConnected, sendTimedOut, sendQueueFull
            case alreadyRun
            case overloaded
            case proxyRefused, proxyAuthenticationRequired, proxyConnectFailed, proxyProtocolViolation
            case webSocketRefused, webSocketClosed
        }
        private let kind: Kind

        /// The peer reset the connection, or went away while there was something to write.
        public static let closedByPeer = Code(kind: .closedByPeer)
        /// This side closed or aborted the connection, or the server is shutting down.
        public static let closedLocally = Code(kind: .closedLocally)
        /// The peer sent what is no frame (the cause is a `FramingError`) or no message (a `MessageError`).
        public static let protocolViolation = Code(kind: .protocolViolation)
        /// The operating system reported an error; it is the cause.
        public static let ioError = Code(kind: .ioError)
        /// The name was not found, or no address of it accepted a connection.
        public static let connectFailed = Code(kind: .connectFailed)
        /// No address accepted a connection in time.
        public static let connectTimeout = Code(kind: .connectTimeout)
        /// The endpoint cannot be listened on.
        public static let listenFailed = Code(kind: .listenFailed)
        /// Somebody else listens on the endpoint.
        public static let addressInUse = Code(kind: .addressInUse)
        /// Local misuse: the text is no endpoint.
        public static let invalidEndpoint = Code(kind: .invalidEndpoint)
        /// Local misuse: a configuration, or what it takes from files and the environment, cannot be used:
        /// certificates, keys and pins, the proxy, fields of the WebSocket handshake. The message says which and why.
        public static let invalidConfiguration = Code(kind: .invalidConfiguration)
        /// Local misuse: the operating system takes no Unix socket path of this length.
        public static let unixSocketPathTooLong = Code(kind: .unixSocketPathTooLong)
        /// Local misuse: a message was sent after `finishSending()`.
        public static let sendingFinished = Code(kind: .sendingFinished)
        /// Local misuse: the message cannot be encoded (the cause is a `MessageError`) or is over the limit
        /// (a `FramingError`). The connection goes on.
        public static let messageRefused = Code(kind: .messageRefused)
        /// Local misuse: two tasks awaited messages of one connection at once. The first goes on waiting.
        public static let concurrentIteration = Code(kind: .concurrentIteration)
        /// The network that the connection went over is gone.
        public static let networkLost = Code(kind: .networkLost)
        /// The peer gave no sign of life in time.
        public static let heartbeatTimeout = Code(kind: .heartbeatTimeout)
        /// The operating system gave the peer up: nothing it sent was acknowledged in time, or routers say that there
        /// is no way to the peer. The cause is its error.
        public static let peerUnresponsive = Code(kind: .peerUnresponsive)
        /// The peer sent nothing for `ConnectionConfiguration.idleTimeout`.
        public static let idleTimeout = Code(kind: .idleTimeout)
        /// The peer took none of the bytes that wait for it for `ConnectionConfiguration.writeTimeout`.
        public static let writeTimeout = Code(kind: .writeTimeout)
        /// More than `ConnectionConfiguration.unansweredByteLimit` bytes were written, and the peer sent nothing.
        public static let tooManyUnansweredBytes = Code(kind: .tooManyUnansweredBytes)
        /// The two sides could not agree on TLS for another reason than the next five: the peer refused this side's
        /// certificate, wants one, has no cipher in common, or speaks no TLS at all.
        public static let tlsRejected = Code(kind: .tlsRejected)
        /// A certificate of the peer's chain has expired or is not valid yet. The clock of this side may be wrong, too.
        public static let certificateExpired = Code(kind: .certificateExpired)
        /// The peer's certificate is not made out to the host that was connected to.
        public static let certificateHostMismatch = Code(kind: .certificateHostMismatch)
        /// No trusted root vouches for the peer's certificate: it is self-signed, its issuer is unknown or not allowed
        /// to issue it, or it is not meant for this use.
        public static let certificateUntrusted = Code(kind: .certificateUntrusted)
        /// The peer's certificates have none of the pins.
        public static let certificatePinMismatch = Code(kind: .certificatePinMismatch)
        /// The peer speaks only versions of TLS that are too old.
        public static let tlsVersionUnsupported = Code(kind: .tlsVersionUnsupported)
        /// The stream ended without the peer's having said so over TLS: the peer crashed, or somebody cut the stream.
        /// What came may not be all that was sent.
        public static let truncated = Code(kind: .truncated)
        /// There is no connection, and the message was not to wait for one.
        public static let notConnected = Code(kind: .notConnected)
        /// No connection took the message in the time that it was to wait.
        public static let sendTimedOut = Code(kind: .sendTimedOut)
        /// Too much waits for a connection already.
        public static let sendQueueFull = Code(kind: .sendQueueFull)
        /// Local misuse: a client was run for a second time.
        public static let alreadyRun = Code(kind: .alreadyRun)
        /// A server closed the connection to make room: it had as many connections, or held as much memory for them, as
        /// it may. The message says which.
        public static let overloaded = Code(kind: .overloaded)
        /// The proxy does not want to connect to the endpoint, or cannot do such a thing at all. The cause is a
        /// `ProxyAnswer`.
        public static let proxyRefused = Code(kind: .proxyRefused)
        /// The proxy wants credentials, or others than those that it got, or wants them by a scheme that Lifeline does
        /// not have.
        public static let proxyAuthenticationRequired = Code(kind: .proxyAuthenticationRequired)
        /// The proxy could not connect to the endpoint, or ended the connection before it had answered. Where it gave a
        /// reason, the cause is a `ProxyAnswer`. That the proxy itself was not reached is a `connectFailed`.
        public static let proxyConnectFailed = Code(kind: .proxyConnectFailed)
        /// What answered for the proxy is none of the configured kind.
        public static let proxyProtocolViolation = Code(kind: .proxyProtocolViolation)
        /// A server did not open a WebSocket; the cause is a `WebSocketRefusal`.
        public static let webSocketRefused = Code(kind: .webSocketRefused)
        /// The peer closed a WebSocket because something is wrong for it; the cause is a `WebSocketClosure`.
        public static let webSocketClosed = Code(kind: .webSocketClosed)

        /// Whether the two sides do not agree on certificates or on TLS.
        package var isTLSRejection: Bool {
            switch kind {
            case .tlsRejected, .tlsVersionUnsupported, .certificateExpired, .certificateHostMismatch,
                .certificateUntrusted, .certificatePinMismatch:
                true
            default: false
            }
        }

        /// The code's name.
        public var description: String { "\(kind)" }
    }

    /// What kind of failure this is.
    public let code: Code
    /// What happened and what to do.
    public let message: String
    /// The error of the layer below, where there is one.
    public let cause: (any Error)?
    /// The operating system's number of that error, where it is the system's.
    package let systemErrorNumber: Int32?

    /// Makes an error.
    public init(code: Code, message: String, cause: (any Error)? = nil) {
        self.init(code: code, message: message, cause: cause, systemErrorNumber: nil)
    }

    package init(code: Code, message: String, cause: (any Error)?, systemErrorNumber: Int32?) {
        self.code = code
        self.message = message
        self.cause = cause
        self.systemErrorNumber = systemErrorNumber
    }

    /// The code, the message and the cause.
    public var description: String {
        guard let cause else { return "\(code): \(message)" }
        return "\(code): \(message) Cause: \("\(cause)".escaped())"
    }
}

// What becomes of sends without a connection.
extension ConnectionError {
    package static var notConnected: ConnectionError {
        ConnectionError(
            code: .notConnected,
            message: "There is no connection, and the message was not to wait for one. Send it with SendPolicy.wait."
        )
    }

    package static var sendTimedOut: ConnectionError {
        ConnectionError(
            code: .sendTimedOut,
            message: "No connection took the message in the time that it was to wait."
        )
    }

    package static func sendQueueFull(count: Int, byteCount: Int) -> ConnectionError {
        ConnectionError(
            code: .sendQueueFull,
            message: "The message would go over the \(count) messages or \(byteCount) bytes that may wait for a "
                + "connection. Send less while there is none, or raise the limits."
        )
    }
}
