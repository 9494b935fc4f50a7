/// A server's refusal to open a WebSocket: the cause of a `ConnectionError` `webSocketRefused`.
public struct WebSocketRefusal: Error, Sendable, Hashable, CustomStringConvertible {
    /// The status of the answer (RFC 9110, section 15).
    public let status: Int
    /// The reason phrase beside it, at most 100 characters, with control characters and the like escaped.
    public let reason: String
    /// The location that the server redirects to, if any, escaped in the same way.
    public let location: String?

    package init(status: Int, reason: String, location: String? = nil) {
        self.status = status
        self.reason = reason.escaped(limit: 100)
        self.location = location?.escaped(limit: 2000)
    }

    /// The status, the reason and the location.
    public var description: String {
        "\(status) \(reason)" + (location.map { ", location \($0)" } ?? "")
    }

    /// Whether the same request may succeed later: the server is overloaded, or has a fault.
    package var isTransient: Bool { status == 408 || status == 429 || (500...599).contains(status) }
}

/// The code and the reason with which a WebSocket was closed: the cause of a `ConnectionError` `webSocketClosed` if the
/// peer closed it, or `protocolViolation` if this side did.
public struct WebSocketClosure: Error, Sendable, Hashable, CustomStringConvertible {
    /// The code.
    public let code: WebSocketCloseCode
    /// The reason in words, at most 123 bytes; often empty.
    public let reason: String

    package init(_ code: WebSocketCloseCode, reason: String) {
        self.code = code
        self.reason = reason
    }

    /// The code and the reason.
    public var description: String {
        reason.isEmpty
            ? "close code \(code)" : "close code \(code), \"\(reason.escaped(limit: 123))\""
    }
}

extension ConnectionError {
    static func webSocketRefused(_ refusal: WebSocketRefusal) -> ConnectionError {
        let advice =
            switch refusal.status {
            case 300...399: "Redirects are not followed: connect to that location if you trust it."
            case 401, 403: "Check credentials, cookies and origin."
            case 404, 410: "Check the endpoint's path."
            case 200...299: "Check that a WebSocket server listens there, and the endpoint's path."
            case _ where refusal.isTransient: "It may open one later."
            default: "Check the endpoint and the WebSocket configuration."
            }
        return ConnectionError(
            code: .webSocketRefused,
            message: "The server did not open a WebSocket: \(refusal). \(advice)",
            cause: refusal
        )
    }

    /// Returns the error for a malformed answer to a handshake.
    package static func badWebSocketAnswer(_ what: String) -> ConnectionError {
        ConnectionError(
            code: .protocolViolation,
            message:
                "The server's answer to the WebSocket handshake \(what). Check that a WebSocket server listens there."
        )
    }

    package static func webSocketClosed(_ closure: WebSocketClosure) -> ConnectionError {
        ConnectionError(
            code: .webSocketClosed,
            message: "The peer closed the WebSocket because of an error on its side: \(closure).",
            cause: closure
        )
    }

    package static var webSocketMessageCut: ConnectionError {
        ConnectionError(
            code: .protocolViolation,
            message: "The peer closed the WebSocket inside a message: the received part is lost.",
            cause: FramingError(code: .truncatedFrame, message: "A message of the WebSocket has no end.")
        )
    }

    package static func webSocketViolated(_ closure: WebSocketClosure) -> ConnectionError {
        ConnectionError(
            code: .protocolViolation,
            message:
                "The peer violated the WebSocket protocol: \(closure.reason). It was told so with code \(closure.code).",
            cause: closure
        )
    }

    package static var webSocketCut: ConnectionError {
        ConnectionError(
            code: .closedByPeer,
            message: "The connection ended before the WebSocket was closed: the peer's last messages may be missing."
        )
    }

    package static var webSocketEnded: ConnectionError {
        ConnectionError(
            code: .closedByPeer,
            message: "The peer has closed the WebSocket, and takes nothing more. Connect again to go on."
        )
    }

    package static func invalidConfiguration(_ what: String) -> ConnectionError {
        ConnectionError(code: .invalidConfiguration, message: "The configuration cannot be used: \(what).")
    }
}
