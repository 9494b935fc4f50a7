internal import LifelineCore

/// The content of a push, request, part, end, response or cancel. It borrows the bytes of the frame.
package struct InboundMessage {
    package static let maximumMetadataCount = 128
    package static let maximumMetadataByteCount = 64 << 10
    package static let maximumDetailCount = 128

    /// Bytes of the body.
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
    /// 0: success, or no response at all.
    package private(set) var status: UInt32 = 0
    // 32 bits each, as it is copied several times on its way.
    private var payloadPart = Part()
    private var textPart = Part()
    private var metadataSize = (count: UInt32(0), byteCount: UInt32(0))
    private var details32: UInt32 = 0
    package private(set) var hasParts = false
    /// 0: no limit.
    package private(set) var timeoutMilliseconds: UInt64 = 0
    /// The number of a push among the durable messages of its sender; 0: it is not durable.
    package private(set) var durable: UInt64 = 0

    @inline(__always) package var payload: UnsafeRawBufferPointer { payloadPart.bytes(of: body) }
    /// A response's message, which is UTF-8.
    package var text: UnsafeRawBufferPointer { textPart.bytes(of: body) }
    @inline(__always) package var metadataCount: Int { Int(metadataSize.count) }
    /// How long the metadata is in its shortest encoding, with the tag and length of each entry.
    package var metadataByteCount: Int { Int(metadataSize.byteCount) }
    package var detailCount: Int { Int(details32) }

    /// Parses the body of a frame. A kind without such content has no fields.
    ///
    /// - Throws: `.undecodable` for what is no protobuf message, or is of 4 GiB, and for a text that is not UTF-8.
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

    /// Whether there are more entries of metadata, or more details, than a message may have.
    package var exceedsEntryLimits: Bool {
        metadataCount > Self.maximumMetadataCount || metadataByteCount > Self.maximumMetadataByteCount
            || detailCount > Self.maximumDetailCount
    }

    /// The metadata, read from the body at each call. Of entries with the same key the last one counts.
    package var metadata: [String: String] {
        guard metadataCount > 0 else { return [:] }
        var metadata: [String: String] = [:]
        forEach(.delimited(kind.metadataField), isText: true) { entry in
            metadata[String(decoding: entry.first, as: UTF8.self)] = String(decoding: entry.second, as: UTF8.self)
        }
        return metadata
    }

    /// A response's details, read from the body at each call.
    package var details: [(typeURL: String, value: [UInt8])] {
        guard detailCount > 0 else { return [] }
        var details: [(typeURL: String, value: [UInt8])] = []
        forEach(.delimited(4), isText: false) { detail in
            details.append((String(decoding: detail.first, as: UTF8.self), [UInt8](detail.second)))
        }
        return details
    }

    /// A response's message.
    package var textString: String { String(decoding: text, as: UTF8.self) }

    private func forEach(_ wanted: FieldReader.Tag, isText: Bool, _ body: (FieldPair) -> Void) {
        var reader = FieldReader(self.body)
        while let tag = reader.next() {
            // The body was checked when it was parsed.
            if tag == wanted, let pair = try? FieldPair(parsing: reader.bytesValue(), isText: isText) {
                body(pair)
            } else if tag != wanted {
                reader.skip(tag)
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
        // The field's number is below 16, so that its tag is one byte. In all, no more than the body has.
        metadataSize.byteCount &+= UInt32(
            truncatingIfNeeded: 1 + Varint.encodedLength(of: UInt64(entry.count)) + entry.count
        )
    }

    private mutating func readDetail(_ detail: UnsafeRawBufferPointer) throws(SessionViolation) {
        _ = try FieldPair(parsing: detail, isText: false)
        details32 += 1
    }
}
