/// The reason code of a closed WebSocket (RFC 6455, section 7.4).
public struct WebSocketCloseCode: Sendable, Hashable, RawRepresentable {
    /// The number.
    public let rawValue: UInt16

    /// Makes a code from any number.
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// The purpose of the connection is fulfilled.
    public static let normal = WebSocketCloseCode(rawValue: 1000)
    /// A server shuts down, or a browser leaves its page.
    public static let goingAway = WebSocketCloseCode(rawValue: 1001)
    /// The other side violated the protocol.
    public static let protocolError = WebSocketCloseCode(rawValue: 1002)
    /// The other side sent a kind of message that is not accepted here.
    public static let unsupportedData = WebSocketCloseCode(rawValue: 1003)
    /// A text is not UTF-8, or a message's content is invalid.
    public static let invalidPayload = WebSocketCloseCode(rawValue: 1007)
    /// A message violates the receiver's policy.
    public static let policyViolation = WebSocketCloseCode(rawValue: 1008)
    /// A message is too large.
    public static let messageTooBig = WebSocketCloseCode(rawValue: 1009)
    /// A server did not accept an extension that its client needs.
    public static let missingExtension = WebSocketCloseCode(rawValue: 1010)
    /// A server had an unexpected error.
    public static let internalError = WebSocketCloseCode(rawValue: 1011)
    /// A server restarts.
    public static let serviceRestart = WebSocketCloseCode(rawValue: 1012)
    /// A server is overloaded.
    public static let tryAgainLater = WebSocketCloseCode(rawValue: 1013)

    /// Whether the code may be sent: it is defined (also by IANA, up to 1014), registered, or for private use.
    var mayBeSent: Bool {
        switch rawValue {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }

    /// Whether the code means a regular end.
    var isRegularEnd: Bool { self == .normal || self == .goingAway }
}

extension WebSocketCloseCode: CustomStringConvertible {
    /// The number.
    public var description: String { "\(rawValue)" }
}
