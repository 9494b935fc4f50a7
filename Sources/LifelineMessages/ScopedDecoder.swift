public import CLifelineMessages

/// Decodes messages one after another into the same memory, so that most need no allocation.
///
///     var decoder = ScopedDecoder()
///     for bytes in inputs {
///         total += try decoder.withMessage(Telemetry_Sample.self, serializedBytes: bytes) { $0.value }
///     }
///
/// The closure gets an ordinary message. It may keep the message, or a part of it such as a list or a submessage. The
/// decoder then gives up that memory, and takes new memory for the next message. So this is as safe as
/// `init(serializedBytes:)`, and faster if few messages are kept.
///
/// The decoder keeps the memory for its messages, at most 64 KiB. Additional memory for a larger message is freed after
/// the closure. A kept message holds all memory that it was decoded into, up to that size. To keep a few of many small
/// messages for a long time, copy their content.
public struct ScopedDecoder: ~Copyable, @unchecked Sendable {
    // @unchecked Sendable, because there is no other reference to `storage` between two calls.

    /// The most bytes to keep: enough for messages of some 30 KiB, and little beside a connection's buffers.
    private static let largestKeptByteCount = 64 << 10

    /// Nil during a call, before the first one, and after one that has left the storage to a message. It holds a
    /// reference: counting one for a message and one here would take as long as an allocation.
    private var storage: Unmanaged<_MessageStorage>?
    /// The size of the storage's own memory; without a storage, the least for the next one.
    private var byteCount = 0

    /// Makes a decoder, which takes no memory before its first message.
    public init() {}

    deinit { storage?.release() }
}

// MARK: - Decoding

extension ScopedDecoder {
    /// Calls `body` with the message that any contiguous sequence of bytes encodes.
    ///
    /// The bytes are copied once. Nothing refers to them afterwards.
    ///
    /// - Parameters:
    ///   - type: the type of the message, which may be another one for each call.
    ///   - bytes: one encoded message, without a length prefix.
    ///   - partial: whether proto2 `required` fields may be absent.
    ///   - options: limits on depth and memory. Memory that the decoder keeps does not count.
    /// - Returns: The result of `body`.
    /// - Throws: `MessageError`, if the bytes are not an encoding of this message type or exceed a limit, and the
    ///   errors of `body`. The decoder can be used again after both.
    @inlinable public mutating func withMessage<M: Message, Result: ~Copyable>(
        _ type: M.Type = M.self,
        serializedBytes bytes: some Sequence<UInt8>,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions(),
        _ body: (M) throws -> Result
    ) throws -> Result {
        let message: M = try withContiguousBytes(of: bytes) { (bytes) throws(MessageError) in
            try decode(bytes, options: options)
        }
        return try withMessage(consume message, partial: partial, body)
    }

    /// Calls `body` with the message that an array of bytes encodes. See that for a sequence of bytes.
    @inlinable public mutating func withMessage<M: Message, Result: ~Copyable>(
        _ type: M.Type = M.self,
        serializedBytes bytes: borrowing [UInt8],
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions(),
        _ body: (M) throws -> Result
    ) throws -> Result {
        try withMessage(serializedBytes: bytes.span.bytes, partial: partial, options: options, body)
    }

    /// Calls `body` with the message that a span of bytes encodes. See that for a sequence of bytes.
    @inlinable public mutating func withMessage<M: Message, Result: ~Copyable>(
        _ type: M.Type = M.self,
        serializedBytes bytes: RawSpan,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions(),
        _ body: (M) throws -> Result
    ) throws -> Result {
        let message: M = try bytes.withUnsafeBytes { (bytes) throws(MessageError) in
            try decode(bytes, options: options)
        }
        return try withMessage(consume message, partial: partial, body)
    }

    /// Calls `body` with the message that borrowed memory encodes. See that for a sequence of bytes.
    @inlinable public mutating func withMessage<M: Message, Result: ~Copyable>(
        _ type: M.Type = M.self,
        serializedBytes bytes: UnsafeRawBufferPointer,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions(),
        _ body: (M) throws -> Result
    ) throws -> Result {
        try withMessage(decode(bytes, options: options), partial: partial, body)
    }

    @inlinable @inline(__always) mutating func decode<M: Message>(
        _ bytes: UnsafeRawBufferPointer,
        options: DecodingOptions
    ) throws(MessageError) -> M {
        // Converts the options here, where the compiler usually sees constants.
        let (storage, fields) = try decode(bytes, as: M._table, options: LifelineDecodeOptions(options))
        let reference = _MessageReference(
            storage: storage.takeRetainedValue(),
            fields: fields.assumingMemoryBound(to: M._Fields.self)
        )
        return M(_message: reference)
    }

    /// Consuming, so that the caller has no reference of its own in unoptimized code.
    @inlinable @inline(__always) mutating func withMessage<M: Message, Result: ~Copyable>(
        _ message: consuming M,
        partial: Bool,
        _ body: (M) throws -> Result
    ) throws -> Result {
        defer { takeBack(&message._message.untyped.storage) }
        if !partial { try message._requireInitialized() }
        return try body(message)
    }
}

// MARK: - Memory

extension ScopedDecoder {
    /// Decodes a message into the storage. The caller owns the reference to it, and gives it back with `takeBack`.
    @usableFromInline mutating func decode(
        _ bytes: UnsafeRawBufferPointer,
        as table: UnsafePointer<_MessageTable>,
        options: LifelineDecodeOptions
    ) throws(MessageError) -> (storage: Unmanaged<_MessageStorage>, fields: UnsafeMutableRawPointer) {
        guard bytes.count <= Int(Int32.max) else { throw MessageError(tooLarge: table) }
        let needed = lifeline_message_parse_size(table, bytes.count, _MessageStorage.overhead)
        let used = takeStorage(byteCount: needed)
        var failure = LifelineFailure()
        let fields = used._withUnsafeGuaranteedRef {
            $0.parse(bytes, as: table, byteCount: byteCount, options: options, &failure)
        }
        guard let fields else {
            keep(used)
            throw MessageError(failure, as: table)
        }
        return (used, fields)
    }

    /// A storage with room for `needed` bytes. There is no other reference to it.
    @inline(__always) private mutating func takeStorage(byteCount needed: Int) -> Unmanaged<_MessageStorage> {
        guard let kept = storage, byteCount >= needed else { return makeStorage(byteCount: needed) }
        storage = nil
        return kept
    }

    @inline(never) private mutating func makeStorage(byteCount needed: Int) -> Unmanaged<_MessageStorage> {
        if let kept = storage {
            storage = nil
            kept.release()
            // Doubles, so that it rarely grows.
            byteCount = min(2 * byteCount, Self.largestKeptByteCount)
        }
        byteCount = max(byteCount, needed)
        return .passRetained(_MessageStorage.create(uninitializedByteCount: byteCount))
    }

    /// Takes the storage of a message back to use it again, if nothing else refers to it.
    @usableFromInline mutating func takeBack(_ used: inout _MessageStorage?) {
        if isKnownUniquelyReferenced(&used) {
            keep(_MessageStorage.moved(out: &used))
        } else {
            byteCount = 0
        }
    }

    private mutating func keep(_ used: Unmanaged<_MessageStorage>) {
        let blockByteCount = used._withUnsafeGuaranteedRef { storage in
            storage.withUnsafeMutablePointers { lifeline_arena_restart($0, $1, byteCount) }
        }
        if blockByteCount == 0, byteCount <= Self.largestKeptByteCount {
            storage = used
        } else {
            replace(used, blockByteCount: blockByteCount)
        }
    }

    /// Decides about a storage that was too small, or is too large to be kept.
    @inline(never) private mutating func replace(_ used: Unmanaged<_MessageStorage>, blockByteCount: Int) {
        let wanted = min(max(byteCount + blockByteCount, 2 * byteCount), Self.largestKeptByteCount)
        if byteCount == Self.largestKeptByteCount {
            storage = used
        } else {
            // A storage that is too large is for a single message, which does not predict the next ones.
            byteCount = byteCount > wanted ? 0 : wanted
            used.release()
        }
    }
}
