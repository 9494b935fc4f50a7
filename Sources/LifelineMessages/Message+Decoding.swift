public import CLifelineMessages

/// What decoding may cost, and what it checks.
public struct DecodingOptions: Hashable, Sendable {
    /// How many messages and groups may stand inside each other; more is an error. 100 by default, as in other protobuf
    /// implementations. Values above 1,000 count as 1,000, so that a thread's stack suffices.
    public var maximumDepth: Int

    /// Bytes that decoding may allocate beyond three times the input and a constant; more is an error. 64 MiB by
    /// default.
    ///
    /// A message takes a few times the memory of its encoding; the worst case, a long list of empty messages, takes
    /// the size of their struct for each two bytes of input. This limit keeps such an input harmless.
    public var memoryLimit: Int

    /// Whether proto3 strings have to be UTF-8, as the specification asks. True by default. Without the check, what is
    /// not UTF-8 reads as U+FFFD, and is encoded again as it came; reading text then costs more than the check.
    public var validatesUTF8: Bool

    public init(maximumDepth: Int = 100, memoryLimit: Int = 64 << 20, validatesUTF8: Bool = true) {
        self.maximumDepth = maximumDepth
        self.memoryLimit = memoryLimit
        self.validatesUTF8 = validatesUTF8
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
    @inlinable public init(
        serializedBytes bytes: some Sequence<UInt8>,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) throws(MessageError) {
        self = try withContiguousBytes(of: bytes) { (bytes) throws(MessageError) in
            try Self(serializedBytes: bytes, partial: partial, options: options)
        }
    }

    /// Decodes a message from an array of bytes. See `init(serializedBytes:partial:options:)`.
    @inlinable public init(
        serializedBytes bytes: [UInt8],
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) throws(MessageError) {
        self = try Self(serializedBytes: bytes.span.bytes, partial: partial, options: options)
    }

    /// Decodes a message from a span of bytes. See `init(serializedBytes:partial:options:)`.
    @inlinable public init(
        serializedBytes bytes: RawSpan,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) throws(MessageError) {
        self = try bytes.withUnsafeBytes { (bytes) throws(MessageError) in
            try Self(serializedBytes: bytes, partial: partial, options: options)
        }
    }

    /// Decodes a message from borrowed memory. See `init(serializedBytes:partial:options:)`.
    @inlinable public init(
        serializedBytes bytes: UnsafeRawBufferPointer,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) throws(MessageError) {
        let (storage, message) = try MessageStorage.decode(bytes, as: Self._table, options: options)
        self.init(
            _message: MessageReference(storage: storage, fields: message.assumingMemoryBound(to: _Fields.self))
        )
        if !partial { try _requireInitialized() }
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
            try merged._message.storage.merge(bytes, into: merged._message.fields, as: Self._table, options: options)
        }
        if !partial { try merged._requireInitialized() }
        self = merged
    }
}

extension MessageStorage {
    /// A new storage with the message that `bytes` encode.
    @usableFromInline static func decode(
        _ bytes: UnsafeRawBufferPointer,
        as table: UnsafePointer<MessageTable>,
        options: DecodingOptions
    ) throws(MessageError) -> (MessageStorage, UnsafeMutableRawPointer) {
        let storage = MessageStorage.create(byteCount: capacity(forEncodingOf: bytes.count, as: table))
        let message = storage.take { lifeline_message_create(table, $0) }
        try storage.merge(bytes, into: message, as: table, options: options)
        return (storage, message)
    }

    /// Room for the copy of the input, the root, and for structs of about the input's size below it: measured, most
    /// messages fit, and what is left over in them is little.
    private static func capacity(forEncodingOf byteCount: Int, as table: UnsafePointer<MessageTable>) -> Int {
        let root = Int(table.pointee.size)
        let input = (byteCount &+ LIFELINE_INPUT_SLOP &+ 7) & ~7
        return input &+ root &+ byteCount &+ 64
    }

    /// Merges the encoded `bytes` into `message`, which is in this storage.
    fileprivate func merge(
        _ bytes: UnsafeRawBufferPointer,
        into message: UnsafeMutableRawPointer,
        as table: UnsafePointer<MessageTable>,
        options: DecodingOptions
    ) throws(MessageError) {
        var failure = LifelineFailure()
        guard bytes.count <= Int(Int32.max) else {
            failure.status = LIFELINE_TOO_LARGE
            throw MessageError(failure, typeName: String(cString: table.pointee.full_name))
        }
        let copy = copyInput(bytes)
        let arena = allocator
        let hasUncheckedText = Int(table.pointee.flags) & LIFELINE_MESSAGE_HAS_UNCHECKED_TEXT != 0
        if hasUncheckedText || !options.validatesUTF8 { arena.pointee.may_hold_malformed_text = true }
        arena.pointee.budget = max(0, options.memoryLimit)
        let isDecoded = lifeline_message_decode(
            table,
            message,
            copy,
            bytes.count,
            arena,
            LifelineDecodeOptions(
                maximum_depth: UInt32(clamping: min(options.maximumDepth, 1_000)),
                accept_malformed_text: !options.validatesUTF8
            ),
            &failure
        )
        arena.pointee.budget = MessageStorage.allowance(forSize: bytes.count)
        if !isDecoded { throw MessageError(failure, typeName: String(cString: table.pointee.full_name)) }
    }

    /// The input, where strings and bytes can point into it, and with what the decoder wants to be readable behind it.
    private func copyInput(_ bytes: UnsafeRawBufferPointer) -> UnsafePointer<UInt8> {
        let copy = allocate(byteCount: bytes.count &+ LIFELINE_INPUT_SLOP)
        if let source = bytes.baseAddress { copy.copyMemory(from: source, byteCount: bytes.count) }
        (copy + bytes.count).initializeMemory(as: UInt8.self, repeating: 0, count: LIFELINE_INPUT_SLOP)
        return UnsafePointer(copy.assumingMemoryBound(to: UInt8.self))
    }
}

extension Message {
    /// Throws when a `required` field is absent.
    @inlinable func _requireInitialized() throws(MessageError) {
        if Int(Self._table.pointee.flags) & LIFELINE_MESSAGE_HAS_REQUIRED == 0 { return }
        if let error = _missingRequiredField() { throw error }
    }

    /// An error that names the first `required` field that is absent.
    @usableFromInline func _missingRequiredField() -> MessageError? {
        defer { extendLifetime(self) }
        var failure = LifelineFailure()
        guard lifeline_message_missing_required(Self._table, _message.fields, &failure) else { return nil }
        return MessageError(failure, typeName: Self.protoMessageName)
    }
}

/// Calls `body` with the memory of `bytes`, copied first if it is not contiguous.
@usableFromInline func withContiguousBytes<Result>(
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
