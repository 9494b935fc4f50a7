internal import LifelineMessages

/// A request or a push on its way to the other side, as interceptors see it and may change it.
public struct SessionCall: Sendable {
    /// The shape of a method.
    public enum Kind: Sendable, Hashable {
        /// One request and one reply.
        case unary
        /// One request, and messages until the handler has returned.
        case stream
        /// Messages, and one reply.
        case clientStream
        /// Messages to the handler, and messages back until it has returned.
        case bothWays
        /// A message without a reply.
        case push
    }

    /// `package.Service/Method`.
    public let method: String
    /// Whether the method exists, as far as is known. False at a server that does not have it: then the name may be
    /// anything that a client makes up.
    public let isImplemented: Bool
    /// The method's shape.
    public let kind: Kind
    /// The metadata of the request, or of the push.
    public var metadata: SessionMetadata
    /// The time that the call may take; nil for no limit. A push has none.
    public var timeout: Duration?
    /// The delivery of a push. A unary call is `reliable` or `durable`; other calls are `reliable`.
    public var delivery: SessionDelivery
    /// The stage that the sender of a push waits for; `accepted` for calls.
    public let stage: SessionPushStage
    /// The encoded message; empty when the request has parts, which interceptors do not see.
    public let payload: [UInt8]

    /// Makes a call to pass to an interceptor. `SessionClient` makes the real calls.
    ///
    /// - Parameters:
    ///   - method: `package.Service/Method`.
    ///   - isImplemented: whether the server has the method. Default: it has.
    ///   - payload: the encoded message.
    public init(
        _ method: String,
        _ kind: Kind,
        metadata: SessionMetadata = [:],
        timeout: Duration? = nil,
        delivery: SessionDelivery = .reliable,
        isImplemented: Bool = true,
        until stage: SessionPushStage = .accepted,
        payload: [UInt8]
    ) {
        self.method = method
        self.isImplemented = isImplemented
        self.kind = kind
        self.metadata = metadata
        self.timeout = timeout
        self.delivery = delivery
        self.stage = stage
        self.payload = payload
    }

    /// The size of the payload in bytes.
    public var payloadByteCount: Int { payload.count }

    /// The name for metrics and traces. All names that clients make up have one name here, because metrics and traces
    /// keep every name.
    var keptName: String { isImplemented ? method : "(unimplemented)" }
}

/// The result of a call.
public struct SessionReply: Sendable {
    /// The metadata of the response. A push has none.
    public var metadata: SessionMetadata
    /// The encoded message; empty when the method has no reply.
    public let payload: [UInt8]

    /// Makes a reply that replaces the handler's.
    ///
    /// - Parameter payload: the encoded message; empty when the method has no reply.
    public init(metadata: SessionMetadata = [:], payload: [UInt8]) {
        self.metadata = metadata
        self.payload = payload
    }

    /// The size of the payload in bytes.
    public var payloadByteCount: Int { payload.count }
}

extension DelimitedMessage {
    /// The encoded message.
    ///
    /// - Throws: `messageRefused` when it cannot be encoded.
    package func sessionPayload() throws(SessionError) -> [UInt8] {
        do {
            return try encodedPayload(partial: false)
        } catch {
            throw SessionError(
                code: .messageRefused,
                message: "The \(type(of: self)) cannot be encoded.",
                cause: error
            )
        }
    }

    /// Decodes a message that came over a session.
    ///
    /// - Throws: `malformedMessage`.
    init(sessionPayload payload: UnsafeRawBufferPointer, _ options: DecodingOptions) throws(SessionError) {
        do {
            try self.init(serializedBytes: payload, partial: false, options: options)
        } catch {
            throw SessionError(
                code: .malformedMessage,
                message: "A received message is not a \(Self.self).",
                cause: error
            )
        }
    }

    init(sessionPayload payload: [UInt8], _ options: DecodingOptions) throws(SessionError) {
        self = try payload.span.withUnsafeBytes { (bytes) throws(SessionError) in
            try Self(sessionPayload: bytes, options)
        }
    }
}
