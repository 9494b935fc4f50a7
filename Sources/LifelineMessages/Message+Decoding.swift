internal import CLifelineMessages

/// Limits on what decoding a message may cost.
public struct DecodingOptions: Hashable, Sendable {
    /// How many messages and groups may stand inside each other; more is an error. 100 by default, as in other protobuf
    /// implementations. Values above 1,000 count as 1,000, so that a thread's stack suffices.
    public var maximumDepth: Int

    /// Bytes that decoding may allocate beyond twice the input and a constant; more is an error. 64 MiB by default.
    ///
    /// A message takes a few times the memory of its encoding; the worst case, a long list of empty messages, takes
    /// the size of their struct for each two bytes of input. This limit keeps such an input harmless.
    public var memoryLimit: Int

    public init(maximumDepth: Int = 100, memoryLimit: Int = 64 << 20) {
        self.maximumDepth = maximumDepth
        self.memoryLimit = memoryLimit
    }
}

extension Message {
    /// Decodes a message from any contiguous sequence of bytes: `[UInt8]`, a slice, `Data`, NIO's `ByteBufferView`.
    ///
    /// The bytes are copied once; nothing refers to them afterwards.
    ///
    /// - Parameters:
    ///   - bytes: One encoded message, without a length prefix.
    ///   - partial: Whether proto2 `required` fields may be absent.
    ///   - options: Limits on depth and memory.
    /// - Throws: `MessageError`, when the bytes are not an encoding of this message type or exceed a limit.
    public init(
        serializedBytes bytes: some Sequence<UInt8>,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) throws(MessageError) {
        self = try withContiguousBytes(of: bytes) { (bytes) throws(MessageError) in
            try Self(serializedBytes: bytes, partial: partial, options: options)
        }
    }

    /// Decodes a message from a span of bytes. See `init(serializedBytes:partial:options:)`.
    public init(
        serializedBytes bytes: RawSpan,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) throws(MessageError) {
        self = try bytes.withUnsafeBytes { (bytes) throws(MessageError) in
            try Self(serializedBytes: bytes, partial: partial, options: options)
        }
    }

    /// Decodes a message from borrowed memory. See `init(serializedBytes:partial:options:)`.
    public init(
        serializedBytes bytes: UnsafeRawBufferPointer,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) throws(MessageError) {
        // Room for the copy of the input, the root, and structs of about the input's size.
        let capacity = 2 &* bytes.count &+ Int(Self._table.pointee.size) &+ 128
        let storage = MessageStorage.create(byteCount: capacity)
        let fields = lifeline_message_create(Self._table, storage.allocator).unsafelyUnwrapped
        try storage.decode(bytes, into: fields, as: Self._table, options: options)
        self.init(
            _message: MessageReference(storage: storage, fields: fields.assumingMemoryBound(to: _Fields.self))
        )
        if !partial { try requireInitialized() }
    }

    /// Merges an encoded message into this one, as if both encodings had been decoded one after the other: repeated fields
    /// are appended to, submessages are merged, and of other fields the last value wins.
    ///
    /// - Throws: `MessageError`; the message is then as it was.
    public mutating func merge(
        serializedBytes bytes: some Sequence<UInt8>,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) throws(MessageError) {
        var merged = self
        try withContiguousBytes(of: bytes) { (bytes) throws(MessageError) in
            merged._makeUnique(reserving: 2 &* bytes.count)
            try merged._message.storage.decode(bytes, into: merged._message.fields, as: Self._table, options: options)
        }
        if !partial { try merged.requireInitialized() }
        self = merged
    }
}

extension MessageStorage {
    /// Merges the encoded `bytes` into `fields`, a message of this storage.
    fileprivate func decode(
        _ bytes: UnsafeRawBufferPointer,
        into fields: UnsafeMutableRawPointer,
        as table: UnsafePointer<MessageTable>,
        options: DecodingOptions
    ) throws(MessageError) {
        let typeName = { String(cString: table.pointee.full_name) }
        guard bytes.count <= Int(Int32.max) else {
            throw MessageError(LifelineFailure(status: LIFELINE_TOO_LARGE), typeName: typeName())
        }
        let copy = allocate(byteCount: bytes.count)
        if let source = bytes.baseAddress { copy.copyMemory(from: source, byteCount: bytes.count) }

        var failure = LifelineFailure()
        allocator.pointee.budget = max(0, options.memoryLimit)
        let isDecoded = lifeline_message_decode(
            table,
            fields,
            copy.assumingMemoryBound(to: UInt8.self),
            bytes.count,
            allocator,
            UInt32(clamping: min(options.maximumDepth, 1_000)),
            &failure
        )
        allocator.pointee.budget = .max
        if !isDecoded { throw MessageError(failure, typeName: typeName()) }
    }
}

extension LifelineFailure {
    init(status: LifelineStatus) {
        self.init()
        self.status = status
    }
}

extension Message {
    func requireInitialized() throws(MessageError) {
        if let failure = firstMissingRequiredField() {
            throw MessageError(failure, typeName: Self.protoMessageName)
        }
    }

    func firstMissingRequiredField() -> LifelineFailure? {
        defer { extendLifetime(self) }
        var failure = LifelineFailure()
        return lifeline_message_missing_required(Self._table, _message.fields, &failure) ? failure : nil
    }
}

/// Calls `body` with the memory of `bytes`, copied first if it is not contiguous.
private func withContiguousBytes<Result>(
    of bytes: some Sequence<UInt8>,
    _ body: (UnsafeRawBufferPointer) throws(MessageError) -> Result
) throws(MessageError) -> Result {
    // withContiguousStorageIfAvailable knows no typed errors: they leave it inside a value.
    func attempt(_ memory: UnsafeBufferPointer<UInt8>) -> Swift.Result<Result, MessageError> {
        do throws(MessageError) {
            return .success(try body(UnsafeRawBufferPointer(memory)))
        } catch {
            return .failure(error)
        }
    }
    if let result = bytes.withContiguousStorageIfAvailable(attempt) { return try result.get() }
    return try [UInt8](bytes).withUnsafeBufferPointer(attempt).get()
}
