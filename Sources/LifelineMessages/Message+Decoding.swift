public import CLifelineMessages

/// Limits on the cost of decoding, and optional checks.
@frozen public struct DecodingOptions: Hashable, Sendable {
    /// How many messages and groups may be nested; more is an error. 100 by default, as in other protobuf
    /// implementations. Values above 1,000 count as 1,000, for which a thread needs up to 1 MiB of stack (measured
    /// without optimization; glibc gives threads 8 MiB).
    public var maximumDepth: Int

    /// Bytes that decoding may allocate beyond three times the input and a constant; more is an error. 64 MiB by
    /// default.
    ///
    /// A message takes a few times the memory of its encoding. In the worst case, a long list of empty messages, each
    /// two bytes of input take as much as a struct. This limit makes such an input harmless.
    public var memoryLimit: Int

    /// Whether proto3 strings have to be UTF-8, as the specification demands. True by default. Without the check,
    /// invalid bytes read as U+FFFD and are encoded again unchanged. Reading text then costs more than the check.
    public var validatesUTF8: Bool

    /// Makes options. Each parameter has the default of its property.
    @inlinable public init(maximumDepth: Int = 100, memoryLimit: Int = 64 << 20, validatesUTF8: Bool = true) {
        self.maximumDepth = maximumDepth
        self.memoryLimit = memoryLimit
        self.validatesUTF8 = validatesUTF8
    }
}

extension Message {
    /// Decodes a message from any contiguous sequence of bytes: `[UInt8]`, a slice, `Data`, NIO's `ByteBufferView`.
    ///
    /// The bytes are copied once. Nothing refers to them afterwards.
    ///
    /// - Parameters:
    ///   - bytes: One encoded message, without a length prefix.
    ///   - partial: Whether proto2 `required` fields may be absent.
    ///   - options: Limits on depth and memory.
    /// - Throws: `MessageError`, if the bytes are not an encoding of this message type or exceed a limit.
    @inlinable @inline(__always) public init(
        serializedBytes bytes: some Sequence<UInt8>,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) throws(MessageError) {
        self = try withContiguousBytes(of: bytes) { (bytes) throws(MessageError) in
            try Self(_decoding: bytes, partial: partial, options: options)
        }
    }

    /// Decodes a message from an array of bytes. See `init(serializedBytes:partial:options:)`.
    @inlinable @inline(__always) public init(
        serializedBytes bytes: borrowing [UInt8],
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) throws(MessageError) {
        self = try Self(serializedBytes: bytes.span.bytes, partial: partial, options: options)
    }

    /// Decodes a message from a span of bytes. See `init(serializedBytes:partial:options:)`.
    @inlinable @inline(__always) public init(
        serializedBytes bytes: RawSpan,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) throws(MessageError) {
        self = try bytes.withUnsafeBytes { (bytes) throws(MessageError) in
            try Self(_decoding: bytes, partial: partial, options: options)
        }
    }

    /// Decodes a message from borrowed memory, for `DelimitedMessage`.
    // The work is in a function of the library, because every type has this initializer.
    @inlinable public init(
        serializedBytes bytes: UnsafeRawBufferPointer,
        partial: Bool,
        options: DecodingOptions
    ) throws(MessageError) {
        let message = try _UntypedReference(decoding: bytes, as: Self._table, partial: partial, options: options)
        self.init(_message: _MessageReference(message))
    }

    @inlinable @inline(__always) init(
        _decoding bytes: UnsafeRawBufferPointer,
        partial: Bool,
        options: DecodingOptions
    ) throws(MessageError) {
        let (storage, message) = try _MessageStorage.decode(bytes, as: Self._table, options: options)
        self.init(
            _message: _MessageReference(storage: storage, fields: message.assumingMemoryBound(to: _Fields.self))
        )
        if !partial { try _requireInitialized() }
    }

    /// Merges an encoded message into this one, as if both encodings had been decoded one after the other. Repeated
    /// fields are appended to, submessages are merged, and other fields get the last value. The message is copied
    /// first, so many merges into a large message take long.
    ///
    /// - Throws: `MessageError`. The message is then unchanged.
    public mutating func merge(
        serializedBytes bytes: some Sequence<UInt8>,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) throws(MessageError) {
        var merged = self
        try withContiguousBytes(of: bytes) { (bytes) throws(MessageError) in
            guard bytes.count <= Int(Int32.max) else { throw MessageError(tooLarge: Self._table) }
            merged._message.untyped.makeUnique(as: Self._table, reserving: 2 &* bytes.count)
            let storage = merged._message.untyped.storage.unsafelyUnwrapped
            let options = LifelineDecodeOptions(options)
            try storage.merge(bytes, into: merged._message.fields, as: Self._table, options: options)
        }
        if !partial { try merged._requireInitialized() }
        self = merged
    }
}

extension _UntypedReference {
    @usableFromInline init(
        decoding bytes: UnsafeRawBufferPointer,
        as table: UnsafePointer<_MessageTable>,
        partial: Bool,
        options: DecodingOptions
    ) throws(MessageError) {
        let (storage, message) = try _MessageStorage.decode(bytes, as: table, options: options)
        self.init(storage: storage, fields: message)
        if !partial { try table.requireInitialized(fields) }
    }
}

extension _MessageStorage {
    /// A new storage with the message that `bytes` encode.
    @inlinable @inline(__always) static func decode(
        _ bytes: UnsafeRawBufferPointer,
        as table: UnsafePointer<_MessageTable>,
        options: DecodingOptions
    ) throws(MessageError) -> (_MessageStorage, UnsafeMutableRawPointer) {
        guard bytes.count <= Int(Int32.max) else { throw MessageError(tooLarge: table) }
        let size = lifeline_message_parse_size(table, bytes.count, _MessageStorage.overhead)
        let storage = _MessageStorage.create(uninitializedByteCount: size)
        var failure = LifelineFailure()
        let message = storage.parse(
            bytes,
            as: table,
            byteCount: size,
            options: LifelineDecodeOptions(options),
            &failure
        )
        guard let message else { throw MessageError(failure, as: table) }
        return (storage, message)
    }

    /// Decodes a message into this storage, which is empty. Returns nil on failure.
    ///
    /// - Parameter byteCount: How much of this storage's own memory to use, at least `lifeline_message_parse_size`.
    @inlinable @inline(__always) func parse(
        _ bytes: UnsafeRawBufferPointer,
        as table: UnsafePointer<_MessageTable>,
        byteCount: Int,
        options: LifelineDecodeOptions,
        _ failure: inout LifelineFailure
    ) -> UnsafeMutableRawPointer? {
        var options = options
        return withUnsafeMutablePointers { arena, memory in
            let message = lifeline_message_parse(
                table,
                bytes.baseAddress?.assumingMemoryBound(to: UInt8.self),
                bytes.count,
                arena,
                memory,
                byteCount,
                &options,
                &failure
            )
            arena.pointee.budget = _MessageStorage.allowance(forSize: bytes.count)
            return message
        }
    }

    /// Merges the encoded `bytes` into `message`, which is in this storage.
    func merge(
        _ bytes: UnsafeRawBufferPointer,
        into message: UnsafeMutableRawPointer,
        as table: UnsafePointer<_MessageTable>,
        options: LifelineDecodeOptions
    ) throws(MessageError) {
        let copy = withBorrowed(self) { $0.allocate(byteCount: bytes.count &+ LIFELINE_INPUT_SLOP) }
        if let source = bytes.baseAddress { copy.copyMemory(from: source, byteCount: bytes.count) }
        (copy + bytes.count).initializeMemory(as: UInt8.self, repeating: 0, count: LIFELINE_INPUT_SLOP)

        let arena = arena
        var options = options
        var failure = LifelineFailure()
        let allowance = arena.pointee.budget
        arena.pointee.budget = options.budget
        let isDecoded = lifeline_message_decode(
            table,
            message,
            copy.assumingMemoryBound(to: UInt8.self),
            bytes.count,
            arena,
            &options,
            &failure
        )
        arena.pointee.budget = allowance
        if !isDecoded { throw MessageError(failure, as: table) }
    }
}

extension LifelineDecodeOptions {
    @inlinable init(_ options: DecodingOptions) {
        self.init(
            maximum_depth: UInt32(clamping: min(options.maximumDepth, 1_000)),
            budget: lifeline_arena_budget(max(0, options.memoryLimit)),
            accept_malformed_text: !options.validatesUTF8,
            kept_extensions: nil
        )
    }
}

extension MessageError {
    @usableFromInline @inline(never) init(_ failure: LifelineFailure, as table: UnsafePointer<_MessageTable>) {
        self.init(failure, typeName: String(cString: table.pointee.full_name))
    }

    @usableFromInline @inline(never) init(tooLarge table: UnsafePointer<_MessageTable>) {
        var failure = LifelineFailure()
        failure.status = LIFELINE_TOO_LARGE
        self.init(failure, as: table)
    }
}

extension Message {
    /// Throws if a `required` field is absent.
    @inlinable func _requireInitialized() throws(MessageError) {
        defer { extendLifetime(self) }
        // Passes `fields`, not the message, so that the compiler knows all references to the storage.
        try Self._table.requireInitialized(_message.fields)
    }
}

extension UnsafePointer<_MessageTable> {
    /// Throws if a `required` field is absent in `message`, of this type.
    @inlinable @inline(__always) func requireInitialized(_ message: UnsafeRawPointer) throws(MessageError) {
        if Int(pointee.flags) & LIFELINE_MESSAGE_HAS_REQUIRED == 0 { return }
        if let error = missingRequiredField(in: message) { throw error }
    }

    /// An error that names the first `required` field that is absent in `message`, of this type.
    @usableFromInline func missingRequiredField(in message: UnsafeRawPointer) -> MessageError? {
        var failure = LifelineFailure()
        return lifeline_message_missing_required(self, message, &failure) ? MessageError(failure, as: self) : nil
    }
}

/// Calls `body` with the memory of `bytes`, copied first if it is not contiguous.
///
/// Inlinable, because generic calls that are not specialized take as long as decoding a small message.
@inlinable package func withContiguousBytes<Result>(
    of bytes: some Sequence<UInt8>,
    _ body: (UnsafeRawBufferPointer) throws(MessageError) -> Result
) throws(MessageError) -> Result {
    // withContiguousStorageIfAvailable does not support typed errors, so a value carries them.
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
