internal import LifelineCore

/// A hello, with which a client opens a connection.
package struct ClientOpening: Equatable, Sendable {
    /// The most entries of metadata in a hello.
    package static let maximumMetadataCount = 128
    /// The most bytes of the name and the encoded metadata together.
    package static let maximumNameAndMetadataByteCount = 16 << 10

    /// The lowest version that the client speaks.
    package var minimumVersion: UInt32
    package var maximumVersion: UInt32
    /// The session to resume; nil for a new one.
    package var credentials: SessionCredentials?
    /// The attempt number, higher than that of every earlier hello of the session.
    package var attempt: UInt64
    /// The progress of the client with the server's frames.
    package var progress: OpeningProgress
    package var terms: SessionTerms
    /// The name by which the server finds the session; may be empty.
    package var name: String
    /// The metadata for the server's decision whether to let the client in.
    package var metadata: [String: String]
    /// The sender's store, if it has one.
    package var store: StoreOpening?

    package init(
        minimumVersion: UInt32 = SessionVersion.lowest,
        maximumVersion: UInt32 = SessionVersion.highest,
        credentials: SessionCredentials? = nil,
        attempt: UInt64,
        progress: OpeningProgress = OpeningProgress(),
        terms: SessionTerms,
        name: String = "",
        metadata: [String: String] = [:],
        store: StoreOpening? = nil
    ) {
        self.minimumVersion = minimumVersion
        self.maximumVersion = maximumVersion
        self.credentials = credentials
        self.attempt = attempt
        self.progress = progress
        self.terms = terms
        self.name = name
        self.metadata = metadata
        self.store = store
    }

    /// Parses the message of a hello. Credentials of a wrong length name no session.
    ///
    /// - Throws: `.undecodable`, `.emptyWindow` or `.tooManyEntries`
    package init(parsing body: UnsafeRawBufferPointer) throws(SessionViolation) {
        var (minimumVersion, maximumVersion, attempt) = (UInt32(0), UInt32(0), UInt64(0))
        var (progress, terms) = (OpeningProgress(), SessionTerms.Numbers())
        let none = UnsafeRawBufferPointer(start: nil, count: 0)
        var (id, token, name) = (none, none, none)
        var metadata = OpeningMetadata()
        var store: StoreOpening?
        var reader = FieldReader(body)
        while let tag = reader.next() {
            switch tag {
            case .varint(1): minimumVersion = reader.uint32()
            case .varint(2): maximumVersion = reader.uint32()
            case .delimited(3): id = reader.bytesValue()
            case .delimited(4): token = reader.bytesValue()
            case .varint(5): attempt = reader.varint()
            case .delimited(6): try progress.merge(reader.bytesValue())
            case .delimited(7): try terms.merge(reader.bytesValue())
            case .delimited(8): name = try reader.text()
            case .delimited(9): try metadata.add(reader.bytesValue())
            case .delimited(10): store = try StoreOpening(parsing: reader.bytesValue())
            default: reader.skip(tag)
            }
        }
        try reader.finish()
        guard metadata.count <= Self.maximumMetadataCount,
            name.count + metadata.byteCount <= Self.maximumNameAndMetadataByteCount
        else { throw .tooManyEntries }
        self.init(
            minimumVersion: minimumVersion,
            maximumVersion: maximumVersion,
            credentials: try? SessionCredentials(id, token),
            attempt: attempt,
            progress: progress,
            terms: try terms.terms(),
            name: String(decoding: name, as: UTF8.self),
            metadata: metadata.entries,
            store: store
        )
    }

    /// Appends the frame with its length prefix.
    package func write(to bytes: inout [UInt8]) {
        FieldWriter.appendFrame(.hello, to: &bytes) { body in
            FieldWriter.appendField(1, UInt64(minimumVersion), to: &body)
            FieldWriter.appendField(2, UInt64(maximumVersion), to: &body)
            if let credentials {
                FieldWriter.appendField(3, credentials.id.bytes, to: &body)
                FieldWriter.appendField(4, credentials.token.bytes, to: &body)
            }
            FieldWriter.appendField(5, attempt, to: &body)
            progress.append(field: 6, to: &body)
            terms.append(field: 7, to: &body)
            if !name.isEmpty { FieldWriter.appendField(8, name, to: &body) }
            FieldWriter.metadataFields(metadata, field: 9, into: &body)
            store?.append(field: 10, to: &body)
        }
    }
}

/// A welcome, with which a server lets a client in.
package struct ServerOpening: Equatable, Sendable {
    /// The version to use.
    package var version: UInt32
    /// The session for the next hello.
    package var credentials: SessionCredentials
    /// Whether this is the session that the hello named.
    package var isResumed: Bool
    /// How long the server keeps the session without a connection: 0 to 365 days, in whole milliseconds on the wire.
    package var kept: Duration
    /// The progress of the server with the client's frames.
    package var progress: OpeningProgress
    package var terms: SessionTerms
    package var metadata: [String: String]
    /// The sender's store, if it has one.
    package var store: StoreOpening?

    package init(
        version: UInt32,
        credentials: SessionCredentials,
        isResumed: Bool,
        kept: Duration = .zero,
        progress: OpeningProgress = OpeningProgress(),
        terms: SessionTerms,
        metadata: [String: String] = [:],
        store: StoreOpening? = nil
    ) {
        self.version = version
        self.credentials = credentials
        self.isResumed = isResumed
        self.kept = kept
        self.progress = progress
        self.terms = terms
        self.metadata = metadata
        self.store = store
    }

    /// Parses the message of a welcome.
    ///
    /// - Throws: `.undecodable`, `.malformedCredentials`, `.emptyWindow` or `.tooManyEntries`
    package init(parsing body: UnsafeRawBufferPointer) throws(SessionViolation) {
        var (version, isResumed, kept) = (UInt32(0), false, UInt64(0))
        var (progress, terms) = (OpeningProgress(), SessionTerms.Numbers())
        let none = UnsafeRawBufferPointer(start: nil, count: 0)
        var (id, token) = (none, none)
        var metadata = OpeningMetadata()
        var store: StoreOpening?
        var reader = FieldReader(body)
        while let tag = reader.next() {
            switch tag {
            case .varint(1): version = reader.uint32()
            case .delimited(2): id = reader.bytesValue()
            case .delimited(3): token = reader.bytesValue()
            case .varint(4): isResumed = reader.varint() != 0
            case .varint(5): kept = reader.varint()
            case .delimited(6): try progress.merge(reader.bytesValue())
            case .delimited(7): try terms.merge(reader.bytesValue())
            case .delimited(9): try metadata.add(reader.bytesValue())
            case .delimited(10): store = try StoreOpening(parsing: reader.bytesValue())
            default: reader.skip(tag)
            }
        }
        try reader.finish()
        // A welcome's metadata may be as long as a message's.
        guard metadata.count <= InboundMessage.maximumMetadataCount,
            metadata.byteCount <= InboundMessage.maximumMetadataByteCount
        else { throw .tooManyEntries }
        self.init(
            version: version,
            credentials: try SessionCredentials(id, token),
            isResumed: isResumed,
            kept: Duration(wireMilliseconds: kept),
            progress: progress,
            terms: try terms.terms(),
            metadata: metadata.entries,
            store: store
        )
    }

    /// Appends the frame with its length prefix.
    package func write(to bytes: inout [UInt8]) {
        FieldWriter.appendFrame(.welcome, to: &bytes) { body in
            FieldWriter.appendField(1, UInt64(version), to: &body)
            FieldWriter.appendField(2, credentials.id.bytes, to: &body)
            FieldWriter.appendField(3, credentials.token.bytes, to: &body)
            FieldWriter.appendField(4, isResumed ? 1 : 0, to: &body)
            FieldWriter.appendField(5, kept.wireMilliseconds, to: &body)
            progress.append(field: 6, to: &body)
            terms.append(field: 7, to: &body)
            FieldWriter.metadataFields(metadata, field: 9, into: &body)
            store?.append(field: 10, to: &body)
        }
    }
}

/// The metadata of an opening while it is read.
private struct OpeningMetadata {
    private(set) var entries: [String: String] = [:]
    /// The number of entries, including those with the same key.
    private(set) var count = 0
    /// The length of the entries in their shortest encoding, with the tag and length of each.
    private(set) var byteCount = 0

    mutating func add(_ entry: UnsafeRawBufferPointer) throws(SessionViolation) {
        let pair = try FieldPair(parsing: entry, isText: true)
        count += 1
        byteCount += 1 + Varint.encodedLength(of: UInt64(entry.count)) + entry.count
        entries[String(decoding: pair.first, as: UTF8.self)] = String(decoding: pair.second, as: UTF8.self)
    }
}

extension SessionCredentials {
    fileprivate init(_ id: UnsafeRawBufferPointer, _ token: UnsafeRawBufferPointer) throws(SessionViolation) {
        guard let sessionID = SessionID(id) else { throw .malformedCredentials(byteCount: id.count) }
        guard let sessionToken = SessionToken(token) else { throw .malformedCredentials(byteCount: token.count) }
        self.init(id: sessionID, token: sessionToken)
    }
}
