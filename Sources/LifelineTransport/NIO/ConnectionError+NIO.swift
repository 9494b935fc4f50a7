internal import Glibc
internal import LifelineCore
internal import NIOCore
internal import NIOPosix

extension ConnectionError {
    private init(code: Code, message: String, because cause: (any Error)?) {
        let number = (cause as? IOError)?.errnoCode
        self.init(code: code, message: message, cause: cause, systemErrorNumber: number)
    }

    /// Makes the error of an open connection that failed.
    init(ioError error: any Error) {
        switch error {
        case let error as ConnectionError:
            self = error
        case let error as IOError where [ECONNRESET, EPIPE].contains(error.errnoCode):
            self.init(
                code: .closedByPeer,
                message: "The peer reset the connection. Connect again to go on.",
                because: error
            )
        case let error as IOError where error.errnoCode == ETIMEDOUT:
            self.init(
                code: .peerUnresponsive,
                message: "The peer acknowledged nothing in time; the peer, or the way to it, is gone.",
                because: error
            )
        case let error as IOError where [EHOSTUNREACH, EHOSTDOWN, ENETUNREACH, ENETDOWN].contains(error.errnoCode):
            self.init(
                code: .peerUnresponsive,
                message: "There is no longer a way to the peer.",
                because: error
            )
        default:
            self.init(
                code: .ioError,
                message: "The operating system reported an error on the connection.",
                because: error
            )
        }
    }

    /// Makes the error of a peer that sent a malformed frame or message.
    static func protocolViolation(_ cause: any Error) -> ConnectionError {
        ConnectionError(
            code: .protocolViolation,
            message: "The peer sent a malformed message; the connection was given up.",
            cause: cause
        )
    }

    /// Makes the error of a failed attempt to connect.
    ///
    /// - Parameter proxyAddress: the address that the socket was to be connected to instead of the endpoint.
    init(
        connecting endpoint: Endpoint,
        through proxyAddress: Endpoint.Address? = nil,
        failedWith error: any Error,
        timeout: Duration
    ) {
        let peer = proxyAddress.map { "the proxy \($0.authority)" } ?? "\(endpoint)"
        let peerFirst = proxyAddress.map { "The proxy \($0.authority)" } ?? "\(endpoint)"
        let whatListens = proxyAddress == nil ? "a server" : "the proxy"
        // The proxy was not asked for the endpoint yet.
        let purpose = proxyAddress == nil ? "" : " \(endpoint) was not asked for."
        switch error {
        case let error as ConnectionError:
            self = error
        case let error as HandshakeTimeout:
            let goal = proxyAddress == nil ? "" : " for \(endpoint)"
            self.init(
                code: .connectTimeout,
                message: "\(peerFirst) accepted a connection\(goal); \(error.handshakeName) was not done within "
                    + "\(timeout)."
            )
        case let cut as HandshakeCut where cut.isOurSystems:
            self.init(
                code: .connectFailed,
                message:
                    "The connection to \(endpoint) broke before the handshake was done. Check the "
                    + "network between them.",
                because: cut.cause
            )
        case let cut as HandshakeCut:
            self.init(
                code: .connectFailed,
                message: "\(endpoint) accepted a connection and closed it before the handshake was done. "
                    + "Check that the server there uses the endpoint's protocol.",
                because: cut.cause
            )
        case ChannelError.connectTimeout:
            self.init(
                code: .connectTimeout,
                message: "\(peerFirst) did not accept a connection within \(timeout).\(purpose)",
                because: error
            )
        case let error as NIOConnectionError where error.connectionErrors.isEmpty:
            self.init(
                code: .connectFailed,
                message: "The host of \(peer) was not found. Check its name and the name service.\(purpose)",
                because: error.dnsAError ?? error.dnsAAAAError ?? error
            )
        case let error as NIOConnectionError:
            let attempts = error.connectionErrors.map { failure in
                let address = Endpoint(failure.target, spokenToAs: endpoint)?.address.authority ?? "\(failure.target)"
                return "\(address): \(words(forAttempt: failure.error))"
            }
            self.init(
                code: .connectFailed,
                message:
                    "No address of \(peer) accepted a connection (\(attempts.joined(separator: "; "))). Check that \(whatListens) listens "
                    + "there.\(purpose)",
                because: error.connectionErrors.first?.error ?? error
            )
        default:
            self.init(
                code: .connectFailed,
                message: "\(peerFirst) did not accept a connection. Check that \(whatListens) listens there.\(purpose)",
                because: error
            )
        }
    }

    /// Makes the error of an accepted connection that could not be set up.
    init(acceptingOn endpoint: Endpoint, failedWith error: any Error) {
        switch error {
        case let error as HandshakeTimeout:
            self.init(code: .connectTimeout, message: "\(error.handshakeName) was not done in time.")
        case let cut as HandshakeCut where cut.isOurSystems:
            self.init(ioError: cut.cause ?? cut)
        case let cut as HandshakeCut:
            self.init(
                code: .closedByPeer,
                message: "The peer closed the connection before it was set up.",
                because: cut.cause
            )
        default:
            self.init(ioError: error)
        }
    }

    /// Makes the error of a failed attempt to listen.
    init(listeningOn endpoint: Endpoint, failedWith error: any Error) {
        switch error {
        case let error as ConnectionError:
            self = error
        case let error as IOError where error.errnoCode == EADDRINUSE:
            self.init(
                code: .addressInUse,
                message: "Something else listens on \(endpoint). Stop it or choose another endpoint.",
                because: error
            )
        default:
            self.init(code: .listenFailed, message: "Listening on \(endpoint) is not possible.", because: error)
        }
    }
}

/// Returns the reason why one address did not accept a connection.
private func words(forAttempt error: any Error) -> String {
    switch error {
    case let error as IOError: String(cString: strerror(error.errnoCode))
    case ChannelError.connectTimeout: "no answer in time"
    default: "\(error)"
    }
}

extension HandshakeCut {
    /// Whether the error comes from this system, and not from the peer's end or reset.
    fileprivate var isOurSystems: Bool {
        guard let error = cause as? IOError else { return false }
        return ![ECONNRESET, EPIPE].contains(error.errnoCode)
    }
}

extension Endpoint {
    /// Makes the endpoint of a socket's address; nil for a Unix socket without a name, and for other families.
    ///
    /// - Parameter endpoint: the endpoint with the protocol to use there.
    init?(_ address: SocketAddress?, spokenToAs endpoint: Endpoint) {
        guard let address else { return nil }
        if let port = address.port, let host = address.ipAddress {
            self = endpoint.at(.tcp(host: host, port: port))
        } else if let path = address.pathname, !path.isEmpty {
            self = endpoint.at(.unix(path: path))
        } else {
            return nil
        }
    }
}
