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

    /// What each entry of metadata and each detail counts beside its bytes, as what it takes in memory is never less.
    static var entryByteCount: Int { 64 }

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

extension SessionPayload: StorableContent {
    /// A `Push` message. Only pushes are stored, and only on the side that sends them.
    package var encoded: [UInt8] {
        guard case .outgoing(let payload) = self else { return [] }
        return payload.head + payload.payload
    }

    package init(encoded: [UInt8]) throws {
        let push = try Lifeline_Session_V1_Push(serializedBytes: encoded)
        self = .outgoing(.push(method: push.method, metadata: push.metadata.asMetadata, payload: push.payload))
    }
}

/// A message of the user's, encoded but for the numbers that are known only when it is sent. An object, as it is handed on from
/// one place to the next.
package final class OutgoingPayload: Sendable {
    /// Empty in a response, and in a push that belongs to a request.
    package let method: String
    /// The fields before the payload, with the payload's tag and length.
    let head: [UInt8]
    /// The user's encoded message.
    let payload: [UInt8]
    /// The size as windows count it.
    package let byteCount: Int

    /// The length of a frame that carries it, at most.
    var maximumFrameLength: Int {
        head.count + payload.count + SessionFrame<SessionPayload>.maximumWrittenOverhead
    }

    private init(
        method: String = "",
        status: SessionStatus = SessionStatus(.ok),
        metadata: SessionMetadata,
        payload: [UInt8],
        fields: PayloadFields
    ) {
        var head: [UInt8] = []
        // Without metadata and details: the text and two numbers, with their tags.
        head.reserveCapacity(method.utf8.count + status.message.utf8.count + 32)
        var byteCount = payload.count
        func add(_ text: String) -> String.UTF8View {
            byteCount += text.utf8.count
            return text.utf8
        }
        if let field = fields.status, status.code != .ok { head.appendField(field, UInt64(status.code.rawValue)) }
        if !method.isEmpty { head.appendField(fields.text, add(method)) }
        if !status.message.isEmpty { head.appendField(fields.text, add(status.message)) }
        if let field = fields.details {
            for detail in status.details {
                var any: [UInt8] = []
                any.appendField(1, add(detail.typeURL))
                any.appendField(2, detail.value)
                byteCount += detail.value.count + SessionPayload.entryByteCount
                head.appendField(field, any)
            }
        }
        // In one order, so that the same message has the same bytes.
        for (name, value) in metadata.sorted(by: { $0.key < $1.key }) {
            var entry: [UInt8] = []
            entry.appendField(1, add(name))
            entry.appendField(2, add(value))
            byteCount += SessionPayload.entryByteCount
            head.appendField(fields.metadata, entry)
        }
        head.appendTag(fields.payload, .lengthDelimited)
        head.appendVarint(UInt64(payload.count))
        self.method = method
        self.head = head
        self.payload = payload
        self.byteCount = byteCount
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
private struct PayloadFields {
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
        reduce(0) { $0 + SessionPayload.entryByteCount + $1.key.utf8.count + $1.value.utf8.count }
    }

    /// The same as a dictionary.
    var asMetadata: SessionMetadata {
        isEmpty ? [:] : SessionMetadata(map { ($0.key, $0.value) }, uniquingKeysWith: { $1 })
    }
}
