internal import LifelineMessages
internal import LifelineProtos

/// Something that one side asks of the other: what interceptors see, and may change.
public struct SessionCall: Sendable {
    /// The shape of a method.
    public enum Kind: Sendable, Hashable {
        /// One request, one reply.
        case unary
        /// One request, and messages until the handler has returned.
        case stream
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
    /// The metadata of the request. For a request that came in, each access builds the dictionary anew.
    public var metadata: SessionMetadata {
        get { lazyMetadata.value }
        set { lazyMetadata.own = newValue }
    }
    /// How long it may take; nil: as long as it likes. A push has none.
    public var timeout: Duration?
    /// What is promised of a push; `reliable` for all else.
    public var delivery: SessionDelivery
    /// What whoever pushes waits for; `accepted` for all else.
    public let stage: SessionPushStage
    private(set) var lazyMetadata: LazyMetadata
    var content: CallContent { lazyMetadata.content }

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
        self.init(
            method,
            kind,
            metadata: metadata,
            timeout: timeout,
            delivery: delivery,
            isImplemented: isImplemented,
            until: stage,
            content: .bytes(payload)
        )
    }

    /// - Parameter metadata: nil: that of the content.
    init(
        _ method: String,
        _ kind: Kind,
        metadata: SessionMetadata?,
        timeout: Duration? = nil,
        delivery: SessionDelivery = .reliable,
        isImplemented: Bool = true,
        until stage: SessionPushStage = .accepted,
        content: CallContent
    ) {
        self.method = method
        self.isImplemented = isImplemented
        self.kind = kind
        self.timeout = timeout
        self.delivery = delivery
        self.stage = stage
        lazyMetadata = LazyMetadata(own: metadata, content: content)
    }

    /// The encoded message.
    public var payload: [UInt8] { content.bytes }
    /// Its size in bytes.
    public var payloadByteCount: Int { content.byteCount }

    /// What stands for the method where names are kept, as metrics and traces keep them: one name for all that clients make up.
    var keptName: String { isImplemented ? method : "(unimplemented)" }
}

/// What a call came to.
public struct SessionReply: Sendable {
    /// What goes with the response. A push has none. What came in is made into a dictionary each time that it is asked
    /// for.
    public var metadata: SessionMetadata {
        get { lazyMetadata.value }
        set { lazyMetadata.own = newValue }
    }
    private var lazyMetadata: LazyMetadata
    var content: CallContent { lazyMetadata.content }

    /// Makes a reply, in place of one of the handler's.
    ///
    /// - Parameter payload: the encoded message; empty where the method replies with none.
    public init(metadata: SessionMetadata = [:], payload: [UInt8]) {
        self.init(metadata: metadata, content: .bytes(payload))
    }

    /// - Parameter metadata: nil: that of the content.
    init(metadata: SessionMetadata? = nil, content: CallContent = .bytes([])) {
        lazyMetadata = LazyMetadata(own: metadata, content: content)
    }

    /// The encoded message; empty where the method replies with none.
    public var payload: [UInt8] { content.bytes }
    /// Its size in bytes.
    public var payloadByteCount: Int { content.byteCount }
}

/// Metadata that are those of a message which came in, until others take their place: most messages' are never looked
/// at.
struct LazyMetadata: Sendable {
    /// Nil where they are the content's.
    var own: SessionMetadata?
    let content: CallContent

    var value: SessionMetadata { own ?? content.metadata }
}

/// A user's encoded message: this side's own, or in the frame that it came in.
enum CallContent: Sendable {
    case bytes([UInt8])
    case request(Lifeline_Session_V1_Request)
    case response(Lifeline_Session_V1_Response)
    case push(Lifeline_Session_V1_Push)

    init(_ message: some DelimitedMessage) throws(SessionError) {
        do {
            self = .bytes(try message.encodedPayload(partial: false))
        } catch {
            throw SessionError(
                code: .messageRefused,
                message: "The \(type(of: message)) cannot be encoded.",
                cause: error
            )
        }
    }

    /// What goes with it where it came in.
    var metadata: SessionMetadata {
        switch self {
        case .bytes: [:]
        case .request(let request): request.metadata.asMetadata
        case .response(let response): response.metadata.asMetadata
        case .push(let push): push.metadata.asMetadata
        }
    }

    var byteCount: Int {
        switch self {
        case .bytes(let bytes): bytes.count
        case .request(let request): request.withPayloadSpan { $0.count }
        case .response(let response): response.withPayloadSpan { $0.count }
        case .push(let push): push.withPayloadSpan { $0.count }
        }
    }

    var bytes: [UInt8] {
        switch self {
        case .bytes(let bytes): bytes
        case .request(let request): request.payload
        case .response(let response): response.payload
        case .push(let push): push.payload
        }
    }

    /// The message, without a copy of its bytes.
    func decoded<Message: DelimitedMessage>(
        as type: Message.Type,
        _ options: DecodingOptions
    ) throws(MessageError) -> Message {
        func decode(_ payload: Span<UInt8>) throws(MessageError) -> Message {
            try payload.withUnsafeBytes { (payload) throws(MessageError) in
                try Message(serializedBytes: payload, partial: false, options: options)
            }
        }
        switch self {
        case .bytes(let bytes): return try decode(bytes.span)
        case .request(let request): return try request.withPayloadSpan(decode)
        case .response(let response): return try response.withPayloadSpan(decode)
        case .push(let push): return try push.withPayloadSpan(decode)
        }
    }
}
