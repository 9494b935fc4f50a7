internal import LifelineCore
internal import LifelineMessages

/// A message of this side's user in its frame's form: fields besides the message, such as metadata, and the encoded
/// message.
struct EncodedContent: Sendable {
    let fields: [UInt8]
    let payload: [UInt8]

    /// Makes the content of a part of a stream, which has no other fields.
    init(payload: [UInt8]) { (fields, self.payload) = ([], payload) }

    /// Makes the content of a push, a request or a successful response.
    ///
    /// - Throws: `messageRefused` when there is more metadata than a message may have.
    init(_ kind: FrameKind, _ metadata: SessionMetadata, payload: [UInt8]) throws(SessionError) {
        self.payload = payload
        guard !metadata.isEmpty else {
            fields = []
            return
        }
        var fields: [UInt8] = []
        FieldWriter.metadataFields(metadata, field: kind.metadataField, into: &fields)
        self.fields = fields
        guard metadata.count <= InboundMessage.maximumMetadataCount,
            fields.count <= InboundMessage.maximumMetadataByteCount
        else { throw .tooManyEntries }
    }

    /// Makes the content of a response without a result.
    ///
    /// - Throws: `messageRefused` when there are more details than a status may have.
    init(_ status: SessionStatus) throws(SessionError) {
        payload = []
        guard status.details.count <= InboundMessage.maximumDetailCount else { throw .tooManyEntries }
        fields = Self.fields(of: status)
    }

    /// Makes the content of a response without a result, whose status has few details or none.
    init(unchecked status: SessionStatus) {
        (fields, payload) = (Self.fields(of: status), [])
    }

    private static func fields(of status: SessionStatus) -> [UInt8] {
        var fields: [UInt8] = []
        FieldWriter.statusFields(
            status: status.code.rawValue,
            message: status.message,
            details: status.details.map { ($0.typeURL, $0.value) },
            into: &fields
        )
        return fields
    }

    var byteCount: Int { fields.count + payload.count }

    /// - Throws: `messageRefused` when no frame of the connection can carry it.
    func check(frameLimit: Int) throws(SessionError) {
        let length = byteCount + SessionSize.frameOverhead
        guard length > frameLimit else { return }
        throw SessionError(
            code: .messageRefused,
            message:
                "The message takes up to \(length) bytes on the wire, more than ConnectionConfiguration.maximumFrameLength, "
                + "\(frameLimit). Send less at once, or raise the limit on both sides."
        )
    }

    /// Calls `body` with the bytes, which are valid only during the call.
    @inline(__always)
    func withContent<Result, Failure: Error>(
        _ body: (SessionMachine.Content) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try fields.span.withUnsafeBytes { (fields) throws(Failure) in
            try payload.span.withUnsafeBytes { (payload) throws(Failure) in
                try body(SessionMachine.Content(fields: fields, payload: payload))
            }
        }
    }
}

extension SessionError {
    fileprivate static var tooManyEntries: SessionError {
        SessionError(
            code: .messageRefused,
            message:
                "The message has more than \(InboundMessage.maximumMetadataCount) entries of metadata or details, or its "
                + "metadata takes more than \(InboundMessage.maximumMetadataByteCount >> 10) KiB. Put the rest into "
                + "the message."
        )
    }
}
