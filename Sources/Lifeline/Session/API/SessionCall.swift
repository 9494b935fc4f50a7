internal import LifelineMessages

/// Something that one side asks of the other: what interceptors see, and may change.
public struct SessionCall: Sendable {
    /// The shape of a method.
    public enum Kind: Sendable, Hashable {
        /// One request, one reply.
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
    /// Whether there is such a method, as far as is known: false at a server that does not have it, where the name is
    /// anything that a client makes up.
    public let isImplemented: Bool
    /// The method's shape.
    public let kind: Kind
    /// The metadata of the request, or of the push.
    public var metadata: SessionMetadata
    /// How long it may take; nil: as long as it likes. A push has none.
    public var timeout: Duration?
    /// The delivery of a push. A unary call is `reliable` or `durable`; all else is `reliable`.
    public var delivery: SessionDelivery
    /// What whoever pushes waits for; `accepted` for all else.
    public let stage: SessionPushStage
    /// The encoded message; empty where the request has parts, which do not come by interceptors.
    public let payload: [UInt8]

    /// Makes a call, to hand it to an interceptor: calls are made by `SessionClient`.
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

    /// Its size in bytes.
    public var payloadByteCount: Int { payload.count }

    /// The name for metrics and traces, which keep names: one for all methods that clients make up.
    var keptName: String { isImplemented ? method : "(unimplemented)" }
}

/// The result of a call.
public struct SessionReply: Sendable {
    /// The metadata of the response. A push has none.
    public var metadata: SessionMetadata
    /// The encoded message; empty where the method replies with none.
    public let payload: [UInt8]

    /// Makes a reply, in place of one of the handler's.
    ///
    /// - Parameter payload: the encoded message; empty where the method replies with none.
    public init(metadata: SessionMetadata = [:], payload: [UInt8]) {
        self.metadata = metadata
        self.payload = payload
    }

    /// Its size in bytes.
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
                message: "A message came that is no \(Self.self).",
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
