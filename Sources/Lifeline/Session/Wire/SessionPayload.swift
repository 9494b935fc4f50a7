internal import LifelineCore
internal import LifelineMessages
package import LifelineProtos
internal import LifelineWellKnownTypes

/// What the user says in a message of a session: encoded for the peer, or as it came from it.
package enum SessionPayload: SessionContent {
    case outgoing(OutgoingPayload)
    case request(Lifeline_Session_V1_Request)
    case response(Lifeline_Session_V1_Response)
    case push(Lifeline_Session_V1_Push)

    /// 768 bytes. A push without content takes up some 550 at the receiver (two blocks of the decoded frame, its places
    /// in the queues of the lane and of its handler) and some 700 at the sender (the payload, what is promised of it,
    /// its places in the queue and among those that somebody waits for). One of 1 KiB takes 2.5 KiB decoded, the most
    /// in proportion. With 768 bytes, no message takes more than one and a half times what it counts for:
    /// `SessionMemoryTests` measure it.
    package static var messageOverhead: Int { 768 }
    /// What each entry of metadata and each detail counts beside its bytes, as what it takes in memory is never less.
    static var entryByteCount: Int { 64 }
    /// How many entries of metadata a message or an opening may have, and how many details a status: 128, more than
    /// HTTP servers take in fields.
    static var maximumEntryCount: Int { 128 }
    /// What all metadata of a message may count for: 64 KiB, four times what HTTP servers take in fields.
    static var maximumMetadataByteCount: Int { 64 << 10 }

    package static func refusal(_ refusal: RequestRefusal) -> SessionPayload {
        .outgoing(.response(SessionStatus(refusal), metadata: [:], payload: []))
    }

    package var method: String {
        switch self {
        case .outgoing(let payload): payload.method
        case .request(let request): request.method
        case .push(let push): push.method
        case .response: ""
        }
    }

    package var maximumFrameLength: Int {
        switch self {
        case .outgoing(let payload): payload.maximumFrameLength
        // What came is not sent.
        case .request, .response, .push: 0
        }
    }

    package var exceedsLimits: Bool {
        switch self {
        case .outgoing(let payload): payload.exceedsLimits
        case .request(let request): request.metadata.exceedsLimits
        case .response(let response):
            response.metadata.exceedsLimits || response.details.count > Self.maximumEntryCount
        case .push(let push): push.metadata.exceedsLimits
        }
    }

    package var byteCount: Int {
        switch self {
        case .outgoing(let payload): payload.byteCount
        case .request(let request):
            request.withPayloadSpan { $0.count } + request.withMethodUTF8Span { $0.span.count }
                + request.metadata.contentLength
        case .response(let response):
            response.withPayloadSpan { $0.count } + response.withMessageUTF8Span { $0.span.count }
                + response.metadata.contentLength
                + response.details.reduce(0) {
                    $0 + Self.entryByteCount + $1.withTypeURLUTF8Span { $0.span.count } + $1.withValueSpan { $0.count }
                }
        case .push(let push):
            push.withPayloadSpan { $0.count } + push.withMethodUTF8Span { $0.span.count } + push.metadata.contentLength
        }
    }
}

/// A message of the user's, encoded but for the numbers that are known only when it is sent. An object, as it is handed
/// on from one place to the next.
package final class OutgoingPayload: Sendable {
    /// Empty in a response, and in a push that belongs to a request.
    package let method: String
    /// The fields between the method and the payload, of which most messages have none.
    private let middle: [UInt8]
    /// The user's encoded message.
    let payload: [UInt8]
    private let fields: PayloadFields
    /// How many bytes `append` appends.
    let encodedLength: Int
    /// The size of the content as windows count it.
    package let byteCount: Int
    /// Whether it has more metadata or details than a message may have.
    let exceedsLimits: Bool

    /// The length of a frame that carries it, at most.
    var maximumFrameLength: Int { encodedLength + SessionFrame<SessionPayload>.maximumWrittenOverhead }

    private init(
        method: String = "",
        status: SessionStatus = SessionStatus(.ok),
        metadata: SessionMetadata,
        payload: [UInt8],
        fields: PayloadFields
    ) {
        var middle: [UInt8] = []
        var byteCount = payload.count + method.utf8.count
        var metadataByteCount = 0
        func append(_ text: String, as field: UInt32, to bytes: inout [UInt8]) {
            let text = text.utf8
            byteCount += text.count
            bytes.appendField(field, text.span)
        }
        if let field = fields.status, status.code != .ok { middle.appendField(field, UInt64(status.code.rawValue)) }
        if !status.message.isEmpty { append(status.message, as: fields.text, to: &middle) }
        if let field = fields.details {
            for detail in status.details {
                var any: [UInt8] = []
                append(detail.typeURL, as: 1, to: &any)
                let value = detail.value
                any.appendField(2, value.span)
                byteCount += value.count + SessionPayload.entryByteCount
                middle.appendField(field, any.span)
            }
        }
        // In one order, so that the same message has the same bytes.
        if !metadata.isEmpty {
            let before = byteCount
            for (name, value) in metadata.sorted(by: { $0.key < $1.key }) {
                var entry: [UInt8] = []
                append(name, as: 1, to: &entry)
                append(value, as: 2, to: &entry)
                byteCount += SessionPayload.entryByteCount
                middle.appendField(fields.metadata, entry.span)
            }
            metadataByteCount = byteCount - before
        }
        exceedsLimits =
            metadata.count > SessionPayload.maximumEntryCount
            || status.details.count > SessionPayload.maximumEntryCount
            || metadataByteCount > SessionPayload.maximumMetadataByteCount
        self.method = method
        self.middle = middle
        self.payload = payload
        self.fields = fields
        self.byteCount = byteCount
        encodedLength =
            (method.isEmpty ? 0 : [UInt8].fieldLength(fields.text, byteCount: method.utf8.count)) + middle.count
            + [UInt8].fieldLength(fields.payload, byteCount: payload.count)
    }

    /// The fields of the user's message, as they stand behind the numbers.
    func append(to span: inout OutputSpan<UInt8>) {
        // A span must not outlive what it is of.
        let (method, middle, payload) = (method.utf8, middle, payload)
        if !method.isEmpty { span.appendField(fields.text, method.span) }
        span.append(copying: middle.span)
        span.appendField(fields.payload, payload.span)
    }

    package static func request(method: String, metadata: SessionMetadata, payload: [UInt8]) -> OutgoingPayload {
        OutgoingPayload(method: method, metadata: metadata, payload: payload, fields: .request)
    }

    /// - Parameter method: empty where the push belongs to a request.
    package static func push(method: String, metadata: SessionMetadata, payload: [UInt8]) -> OutgoingPayload {
        OutgoingPayload(method: method, metadata: metadata, payload: payload, fields: .push)
    }

    package static func response(_ status: SessionStatus, metadata: SessionMetadata, payload: [UInt8])
        -> OutgoingPayload
    {
        OutgoingPayload(status: status, metadata: metadata, payload: payload, fields: .response)
    }
}

/// The numbers of the fields that a payload knows itself.
private struct PayloadFields: Sendable {
    /// The method, or the message of a status.
    let text: UInt32
    let status: UInt32?
    let details: UInt32?
    let metadata: UInt32
    let payload: UInt32

    static let request = PayloadFields(text: 2, status: nil, details: nil, metadata: 4, payload: 5)
    static let response = PayloadFields(text: 3, status: 2, details: 4, metadata: 5, payload: 6)
    static let push = PayloadFields(text: 1, status: nil, details: nil, metadata: 3, payload: 4)
}

extension MapField<String, String> {
    /// What names and values count for.
    var contentLength: Int {
        var length = count * SessionPayload.entryByteCount
        forEachUTF8Span { length += $0.span.count + $1.span.count }
        return length
    }

    /// Whether there are more than a message may have.
    var exceedsLimits: Bool {
        count > SessionPayload.maximumEntryCount || contentLength > SessionPayload.maximumMetadataByteCount
    }

    /// The same as a dictionary.
    var asMetadata: SessionMetadata {
        isEmpty ? [:] : SessionMetadata(map { ($0.key, $0.value) }, uniquingKeysWith: { $1 })
    }
}
