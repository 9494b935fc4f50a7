internal import LifelineCore

/// The content of a push, request, part, end, response or cancel. It borrows the bytes of the frame.
package struct InboundMessage {
    package static let maximumMetadataCount = 128
    package static let maximumMetadataByteCount = 64 << 10
    package static let maximumDetailCount = 128

    /// A range of the body's bytes.
    private struct Part {
        private var start: UInt32 = 0
        private var count: UInt32 = 0

        init() {}

        @inline(__always)
        init(_ bytes: UnsafeRawBufferPointer, of body: UnsafeRawBufferPointer) {
            guard let first = bytes.baseAddress, let begin = body.baseAddress else { return }
            start = UInt32(truncatingIfNeeded: first - begin)
            count = UInt32(truncatingIfNeeded: bytes.count)
        }

        @inline(__always)
        func bytes(of body: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
            if count == 0 { return UnsafeRawBufferPointer(start: nil, count: 0) }
            return UnsafeRawBufferPointer(start: body.baseAddress.map { $0 + Int(start) }, count: Int(count))
        }
    }

    package let kind: FrameKind
    /// The message of the kind.
    package let body: UnsafeRawBufferPointer
    package private(set) var serial: UInt32 = 0
    package private(set) var method: UInt32 = 0
    /// The status code; 0 for success, and for frames other than responses.
    package private(set) var status: UInt32 = 0
    // 32 bits each, because the message is copied several times.
    private var payloadPart = Part()
    private var textPart = Part()
    private var metadataSize = (count: UInt32(0), byteCount: UInt32(0))
    private var details32: UInt32 = 0
    package private(set) var hasParts = false
    /// The timeout; 0 for no limit.
    package private(set) var timeoutMilliseconds: UInt64 = 0
    /// The number of a push among the durable messages of its sender; 0 if it is not durable.
    package private(set) var durable: UInt64 = 0
    /// For a durable push: no more messages of its sender with numbers up to this one come.
    package private(set) var floor: UInt64 = 0
    /// Whether a push asks for a reply.
    package private(set) var isCall = false
    /// Whether a push is the reply to a durable call of the receiver.
    package private(set) var isReply = false
    /// The number of the replied call among the durable messages of the receiver.
    package private(set) var replyNumber: UInt64 = 0

    @inline(__always) package var payload: UnsafeRawBufferPointer { payloadPart.bytes(of: body) }
    /// The message of a response's or a reply's status, which is UTF-8.
    package var text: UnsafeRawBufferPointer { textPart.bytes(of: body) }
    @inline(__always) package var metadataCount: Int { Int(metadataSize.count) }
    /// The length of the metadata in its shortest encoding, with the tag and length of each entry.
    package var metadataByteCount: Int { Int(metadataSize.byteCount) }
    package var detailCount: Int { Int(details32) }

    /// Parses the body of a frame. A kind without such content has no fields.
    ///
    /// - Throws: `.undecodable` for malformed protobuf, a body of 4 GiB or more, and a text that is not UTF-8.
    package init(_ kind: FrameKind, _ body: UnsafeRawBufferPointer) throws(SessionViolation) {
        if body.count > UInt32.max { throw .undecodable("It is of 4 GiB or more.") }
        self.kind = kind
        self.body = body
        var reader = FieldReader(body)
        switch kind {
        case .requestPart, .responsePart, .unplacedRequestPart, .unplacedResponsePart: readPart(&reader)
        case .push, .unplacedPush: try readPush(&reader)
        case .request: try readRequest(&reader)
        case .response, .urgentResponse: try readResponse(&reader)
        case .requestEnd, .cancel: readSerial(&reader)
        default: while let tag = reader.next() { reader.skip(tag) }
        }
        try reader.finish()
    }

    /// Whether the message has more entries of metadata, or more details, than allowed.
    package var exceedsEntryLimits: Bool {
        metadataCount > Self.maximumMetadataCount || metadataByteCount > Self.maximumMetadataByteCount
            || detailCount > Self.maximumDetailCount
    }

    /// The metadata, read from the body at each call. For a reply, it is that of the reply. Of entries with the same
    /// key the last one counts.
    package var metadata: [String: String] {
        guard metadataCount > 0 else { return [:] }
        var metadata: [String: String] = [:]
        let tag = FieldReader.Tag.delimited(kind.metadataField)
        forEachPair(isReply ? nil : tag, inReply: .delimited(5), isText: true) { entry in
            metadata[String(decoding: entry.first, as: UTF8.self)] = String(decoding: entry.second, as: UTF8.self)
        }
        return metadata
    }

    /// The details of a response or a reply, read from the body at each call.
    package var details: [(typeURL: String, value: [UInt8])] {
        guard detailCount > 0 else { return [] }
        var details: [(typeURL: String, value: [UInt8])] = []
        let tag = FieldReader.Tag.delimited(4)
        forEachPair(isReply ? nil : tag, inReply: tag, isText: false) { detail in
            details.append((String(decoding: detail.first, as: UTF8.self), [UInt8](detail.second)))
        }
        return details
    }

    /// The message of a response's or a reply's status.
    package var textString: String { String(decoding: text, as: UTF8.self) }

    /// Calls `take` with the pairs of a field; for a reply, with those of a field inside the push's reply.
    private func forEachPair(
        _ wanted: FieldReader.Tag?,
        inReply wantedInReply: FieldReader.Tag,
        isText: Bool,
        _ take: (FieldPair) -> Void
    ) {
        Self.forEachField(of: body) { tag, bytes in
            if tag == wanted {
                Self.takePair(bytes, isText: isText, take)
            } else if isReply, tag == .delimited(FrameKind.replyField) {
                Self.forEachField(of: bytes) { tag, bytes in
                    if tag == wantedInReply { Self.takePair(bytes, isText: isText, take) }
                }
            }
        }
    }

    private static func takePair(_ bytes: UnsafeRawBufferPointer, isText: Bool, _ take: (FieldPair) -> Void) {
        // The body was checked when it was parsed.
        if let pair = try? FieldPair(parsing: bytes, isText: isText) { take(pair) }
    }

    /// Calls `take` with the fields that have a length.
    private static func forEachField(
        of bytes: UnsafeRawBufferPointer,
        _ take: (FieldReader.Tag, UnsafeRawBufferPointer) -> Void
    ) {
        var reader = FieldReader(bytes)
        while let tag = reader.next() {
            if tag.isDelimited { take(tag, reader.bytesValue()) } else { reader.skip(tag) }
        }
    }

    /// Appends the received fields of a call or a reply unchanged, for another frame.
    func appendCallFields(to fields: inout [UInt8]) {
        FieldWriter.appendField(FrameKind.callField, isCall ? 1 : 0, to: &fields)
        guard isReply else { return }
        Self.forEachField(of: body) { tag, bytes in
            if tag == .delimited(FrameKind.replyField) {
                FieldWriter.appendField(FrameKind.replyField, [UInt8](bytes), to: &fields)
            }
        }
    }
}

// MARK: - The messages of the kinds

extension InboundMessage {
    @inline(__always) private mutating func readPush(_ reader: inout FieldReader) throws(SessionViolation) {
        while let tag = reader.next() {
            switch tag {
            case .varint(1): method = reader.uint32()
            case .delimited(2): try readMetadata(reader.bytesValue())
            case .delimited(3): payloadPart = Part(reader.bytesValue(), of: body)
            case .varint(FrameKind.durableField): durable = reader.varint()
            case .varint(FrameKind.floorField): floor = reader.varint()
            case .varint(FrameKind.callField): isCall = reader.varint() != 0
            case .delimited(FrameKind.replyField): try readReply(reader.bytesValue())
            default: reader.skip(tag)
            }
        }
    }

    @inline(__always) private mutating func readRequest(_ reader: inout FieldReader) throws(SessionViolation) {
        while let tag = reader.next() {
            switch tag {
            case .varint(1): timeoutMilliseconds = reader.varint()
            case .varint(2): serial = reader.uint32()
            case .varint(3): method = reader.uint32()
            case .varint(4): hasParts = reader.varint() != 0
            case .delimited(5): try readMetadata(reader.bytesValue())
            case .delimited(6): payloadPart = Part(reader.bytesValue(), of: body)
            default: reader.skip(tag)
            }
        }
    }

    @inline(__always) private mutating func readResponse(_ reader: inout FieldReader) throws(SessionViolation) {
        while let tag = reader.next() {
            switch tag {
            case .varint(1): serial = reader.uint32()
            case .varint(2): status = reader.uint32()
            case .delimited(3): textPart = Part(try reader.text(), of: body)
            case .delimited(4): try readDetail(reader.bytesValue())
            case .delimited(5): try readMetadata(reader.bytesValue())
            case .delimited(6): payloadPart = Part(reader.bytesValue(), of: body)
            default: reader.skip(tag)
            }
        }
    }

    /// Several occurrences are merged into one, as protobuf demands.
    @inline(never)
    private mutating func readReply(_ reply: UnsafeRawBufferPointer) throws(SessionViolation) {
        isReply = true
        var reader = FieldReader(reply)
        while let tag = reader.next() {
            switch tag {
            case .varint(1): replyNumber = reader.varint()
            case .varint(2): status = reader.uint32()
            case .delimited(3): textPart = Part(try reader.text(), of: body)
            case .delimited(4): try readDetail(reader.bytesValue())
            case .delimited(5): try readMetadata(reader.bytesValue())
            default: reader.skip(tag)
            }
        }
        try reader.finish()
    }

    @inline(__always) private mutating func readPart(_ reader: inout FieldReader) {
        while let tag = reader.next() {
            switch tag {
            case .varint(1): serial = reader.uint32()
            case .delimited(2): payloadPart = Part(reader.bytesValue(), of: body)
            default: reader.skip(tag)
            }
        }
    }

    @inline(__always) private mutating func readSerial(_ reader: inout FieldReader) {
        while let tag = reader.next() {
            switch tag {
            case .varint(1): serial = reader.uint32()
            default: reader.skip(tag)
            }
        }
    }

    private mutating func readMetadata(_ entry: UnsafeRawBufferPointer) throws(SessionViolation) {
        _ = try FieldPair(parsing: entry, isText: true)
        metadataSize.count += 1
        // The field's number is below 16, so its tag is one byte. The sum is at most the body's length.
        metadataSize.byteCount &+= UInt32(
            truncatingIfNeeded: 1 + Varint.encodedLength(of: UInt64(entry.count)) + entry.count
        )
    }

    private mutating func readDetail(_ detail: UnsafeRawBufferPointer) throws(SessionViolation) {
        _ = try FieldPair(parsing: detail, isText: false)
        details32 += 1
    }
}
