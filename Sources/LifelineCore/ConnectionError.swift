/// The reason why a connection could not be made, has failed, or has refused a request.
public struct ConnectionError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure. More kinds may be added.
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
        /// The peer sent a malformed frame (the cause is a `FramingError`) or message (a `MessageError`).
        public static let protocolViolation = Code(kind: .protocolViolation)
        /// The operating system reported an error; it is the cause.
        public static let ioError = Code(kind: .ioError)
        /// The name was not found, or no address of it accepted a connection.
        public static let connectFailed = Code(kind: .connectFailed)
        /// No address accepted a connection in time.
        public static let connectTimeout = Code(kind: .connectTimeout)
        /// The endpoint cannot be listened on.
        public static let listenFailed = Code(kind: .listenFailed)
        /// Another socket listens on the endpoint.
        public static let addressInUse = Code(kind: .addressInUse)
        /// Local misuse: the text is not an endpoint.
        public static let invalidEndpoint = Code(kind: .invalidEndpoint)
        /// Local misuse: a configuration, or data that it takes from files and the environment, cannot be used:
        /// certificates, keys and pins, the proxy, fields of the WebSocket handshake. The message has the details.
        public static let invalidConfiguration = Code(kind: .invalidConfiguration)
        /// Local misuse: the Unix socket path is too long for the operating system.
        public static let unixSocketPathTooLong = Code(kind: .unixSocketPathTooLong)
        /// Local misuse: a message was sent after `finishSending()`.
        public static let sendingFinished = Code(kind: .sendingFinished)
        /// Local misuse: the message cannot be encoded (the cause is a `MessageError`) or is over the limit
        /// (a `FramingError`). The connection goes on.
        public static let messageRefused = Code(kind: .messageRefused)
        /// Local misuse: two tasks awaited messages of one connection at once. The first goes on waiting.
        public static let concurrentIteration = Code(kind: .concurrentIteration)
        /// The network of the connection is gone.
        public static let networkLost = Code(kind: .networkLost)
        /// The peer gave no sign of life in time.
        public static let heartbeatTimeout = Code(kind: .heartbeatTimeout)
        /// The operating system gave up the peer: sent bytes were not acknowledged in time, or routers reported that
        /// there is no route to the peer. The cause is the system's error.
        public static let peerUnresponsive = Code(kind: .peerUnresponsive)
        /// The peer sent nothing for `ConnectionConfiguration.idleTimeout`.
        public static let idleTimeout = Code(kind: .idleTimeout)
        /// The peer took none of the waiting bytes for `ConnectionConfiguration.writeTimeout`.
        public static let writeTimeout = Code(kind: .writeTimeout)
        /// More than `ConnectionConfiguration.unansweredByteLimit` bytes were written, and the peer sent nothing.
        public static let tooManyUnansweredBytes = Code(kind: .tooManyUnansweredBytes)
        /// The two sides could not agree on TLS for a reason other than the next five: the peer refused this side's
        /// certificate, requires one, has no cipher in common, or does not use TLS at all.
        public static let tlsRejected = Code(kind: .tlsRejected)
        /// A certificate of the peer's chain has expired or is not valid yet. The clock of this side may be wrong, too.
        public static let certificateExpired = Code(kind: .certificateExpired)
        /// The peer's certificate is not issued for the requested host.
        public static let certificateHostMismatch = Code(kind: .certificateHostMismatch)
        /// The peer's certificate does not lead to a trusted root: it is self-signed, its issuer is unknown or not
        /// allowed to issue it, or it is not meant for this use.
        public static let certificateUntrusted = Code(kind: .certificateUntrusted)
        /// None of the peer's certificates matches a pin.
        public static let certificatePinMismatch = Code(kind: .certificatePinMismatch)
        /// The peer supports only versions of TLS that are too old.
        public static let tlsVersionUnsupported = Code(kind: .tlsVersionUnsupported)
        /// The stream ended without a TLS close notification of the peer: the peer crashed, or the stream was cut. The
        /// end of the peer's data may be missing.
        public static let truncated = Code(kind: .truncated)
        /// There is no connection, and the message may not wait for one.
        public static let notConnected = Code(kind: .notConnected)
        /// No connection took the message within its waiting time.
        public static let sendTimedOut = Code(kind: .sendTimedOut)
        /// Too many messages or bytes already wait for a connection.
        public static let sendQueueFull = Code(kind: .sendQueueFull)
        /// Local misuse: a client was run for a second time.
        public static let alreadyRun = Code(kind: .alreadyRun)
        /// A server closed the connection to make room: the limit of connections, or of their memory, was reached. The
        /// message says which.
        public static let overloaded = Code(kind: .overloaded)
        /// The proxy refuses to connect to the endpoint, or does not support such connections at all. The cause is a
        /// `ProxyAnswer`.
        public static let proxyRefused = Code(kind: .proxyRefused)
        /// The proxy requires credentials, does not accept those that it got, or requires a scheme that Lifeline does
        /// not support.
        public static let proxyAuthenticationRequired = Code(kind: .proxyAuthenticationRequired)
        /// The proxy could not connect to the endpoint, or ended the connection before it had answered. If it gave a
        /// reason, the cause is a `ProxyAnswer`. If the proxy itself cannot be reached, the code is `connectFailed`.
        public static let proxyConnectFailed = Code(kind: .proxyConnectFailed)
        /// The proxy's answer does not follow the configured proxy protocol.
        public static let proxyProtocolViolation = Code(kind: .proxyProtocolViolation)
        /// A server did not open a WebSocket; the cause is a `WebSocketRefusal`.
        public static let webSocketRefused = Code(kind: .webSocketRefused)
        /// The peer closed a WebSocket because of an error on its side; the cause is a `WebSocketClosure`.
        public static let webSocketClosed = Code(kind: .webSocketClosed)

        /// Whether the two sides failed to agree on certificates or TLS.
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

    /// The kind of failure.
    public let code: Code
    /// A description of the failure, and what to do about it.
    public let message: String
    /// The error of the layer below, if there is one.
    public let cause: (any Error)?
    /// The operating system's number of the cause, if the cause is a system error.
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

// The errors of sends without a connection.
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
