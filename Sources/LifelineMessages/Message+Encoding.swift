public import CLifelineMessages

extension Message {
    /// The encoded message.
    ///
    /// The encoding is deterministic: equal messages have equal bytes. Fields are in the order of their numbers, map
    /// entries in the order of their keys, and unknown fields last.
    ///
    /// - Parameter partial: Whether proto2 `required` fields may be absent.
    /// - Throws: `MessageError`, if a required field is absent, messages are nested more than 1,000 deep (a map's entry
    ///   without its message does not count), or the encoding has more than 2³¹−1 bytes.
    @inlinable public func serializedBytes(partial: Bool = false) throws(MessageError) -> [UInt8] {
        if !partial { try _requireInitialized() }
        defer { extendLifetime(self) }
        return try MessageEncoding().array(of: _message.fields, as: Self._table)
    }

    /// The same as `serializedBytes(partial:)`.
    @inlinable public func encodedPayload(partial: Bool) throws -> [UInt8] {
        defer { extendLifetime(self) }
        return try MessageEncoding().payload(of: _message.fields, as: Self._table, partial: partial)
    }

    /// Appends the encoded message to `buffer`. Throws as `serializedBytes(partial:)` does; `buffer` is then unchanged.
    @inlinable public func append(
        to buffer: inout some RangeReplaceableCollection<UInt8>,
        partial: Bool = false
    ) throws(MessageError) {
        if !partial { try _requireInitialized() }
        defer { extendLifetime(self) }
        try MessageEncoding().append(_message.fields, as: Self._table, to: &buffer)
    }

    /// Calls `body` with the encoded message, which is valid only during the call.
    ///
    /// - Throws: `MessageError` as `serializedBytes(partial:)` does, and the errors of `body`.
    @inlinable public func withSerializedBytes<Result>(
        partial: Bool = false,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        if !partial { try _requireInitialized() }
        defer { extendLifetime(self) }
        return try MessageEncoding().withBytes(of: _message.fields, as: Self._table, body)
    }

    /// Calls `body` with the encoded message after its length as a varint: one frame of a delimited stream. The memory
    /// is valid only during the call.
    ///
    /// - Throws: `MessageError` as `serializedBytes(partial:)` does, and the errors of `body`.
    @inlinable public func withDelimitedBytes<Result>(
        partial: Bool = false,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        if !partial { try _requireInitialized() }
        defer { extendLifetime(self) }
        return try MessageEncoding(isDelimited: true).withBytes(of: _message.fields, as: Self._table, body)
    }

    /// Encodes the message at the end of `buffer`, without allocating: messages are written from their end to their
    /// start.
    ///
    /// - Parameters:
    ///   - buffer: It has enough room if 88 bytes are left beside the encoded message and its prefix. The bytes before
    ///     the encoded message are unspecified afterwards.
    ///   - delimited: Whether to put the message's length before it, as a varint.
    ///   - partial: Whether proto2 `required` fields may be absent.
    /// - Returns: The part of `buffer` with the encoded message; nil if there is too little room.
    /// - Throws: `MessageError` as `serializedBytes(partial:)` does.
    @inlinable public func serialize(
        intoEndOf buffer: UnsafeMutableRawBufferPointer,
        delimited: Bool = false,
        partial: Bool = false
    ) throws(MessageError) -> Slice<UnsafeMutableRawBufferPointer>? {
        if !partial { try _requireInitialized() }
        defer { extendLifetime(self) }
        let encoding = MessageEncoding(isDelimited: delimited)
        let start = try encoding.start(of: _message.fields, as: Self._table, intoEndOf: buffer)
        return start.map { buffer[$0...] }
    }
}

/// The encoding that all public functions share, for all types of messages.
@usableFromInline struct MessageEncoding {
    @usableFromInline var isDelimited = false

    @inlinable init(isDelimited: Bool = false) {
        self.isDelimited = isDelimited
    }

    @usableFromInline func array(
        of message: UnsafeRawPointer,
        as table: UnsafePointer<_MessageTable>
    ) throws(MessageError) -> [UInt8] {
        var failure = LifelineFailure()
        // Through a typed buffer, from which an array is made with a single copy.
        let array = bytes(of: message, as: table, &failure) { [UInt8]($0.assumingMemoryBound(to: UInt8.self)) }
        guard let array else { throw MessageError(failure, as: table) }
        return array
    }

    @usableFromInline func payload(
        of message: UnsafeRawPointer,
        as table: UnsafePointer<_MessageTable>,
        partial: Bool
    ) throws -> [UInt8] {
        if !partial { try table.requireInitialized(message) }
        return try array(of: message, as: table)
    }

    @inlinable func append(
        _ message: UnsafeRawPointer,
        as table: UnsafePointer<_MessageTable>,
        to buffer: inout some RangeReplaceableCollection<UInt8>
    ) throws(MessageError) {
        var failure = LifelineFailure()
        let appended: Void? = bytes(of: message, as: table, &failure) { buffer.append(contentsOf: $0) }
        if appended == nil { throw MessageError(failure, as: table) }
    }

    @inlinable func withBytes<Result>(
        of message: UnsafeRawPointer,
        as table: UnsafePointer<_MessageTable>,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        var failure = LifelineFailure()
        let result = try bytes(of: message, as: table, &failure, body)
        guard let result else { throw MessageError(failure, as: table) }
        return result
    }

    /// Equal messages have the same encoding, which is deterministic for maps too.
    func hash(_ message: UnsafeRawPointer, as table: UnsafePointer<_MessageTable>, into hasher: inout Hasher) {
        var failure = LifelineFailure()
        let hashed: Void? = bytes(of: message, as: table, &failure) { hasher.combine(bytes: $0) }
        if hashed == nil { hasher.combine(String(cString: table.pointee.full_name)) }
    }

    /// Returns the result of `body` for the encoded message; nil if encoding failed.
    @inlinable @inline(__always) func bytes<Result>(
        of message: UnsafeRawPointer,
        as table: UnsafePointer<_MessageTable>,
        _ failure: inout LifelineFailure,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> Result? {
        // Most messages fit. It is also the most that Swift allocates on the stack for a temporary buffer.
        try withUnsafeTemporaryAllocation(byteCount: 1_024, alignment: 8) { buffer in
            var encoder = LifelineEncoder()
            lifeline_encoder_init(&encoder, buffer.baseAddress, buffer.count, true)
            defer { lifeline_encoder_destroy(&encoder) }
            guard encode(message, as: table, with: &encoder, &failure) else { return nil }
            let start = encoder.memory.map { UnsafeRawPointer($0 + encoder.start) }
            return try body(UnsafeRawBufferPointer(start: start, count: encoder.capacity - encoder.start))
        }
    }

    /// The start of the encoded message in `buffer`; nil if there is too little room.
    @usableFromInline func start(
        of message: UnsafeRawPointer,
        as table: UnsafePointer<_MessageTable>,
        intoEndOf buffer: UnsafeMutableRawBufferPointer
    ) throws(MessageError) -> Int? {
        var encoder = LifelineEncoder()
        lifeline_encoder_init(&encoder, buffer.baseAddress, buffer.count, false)
        var failure = LifelineFailure()
        if encode(message, as: table, with: &encoder, &failure) { return encoder.start }
        if failure.status == LIFELINE_NO_ROOM { return nil }
        throw MessageError(failure, as: table)
    }

    @inlinable @inline(__always) func encode(
        _ message: UnsafeRawPointer,
        as table: UnsafePointer<_MessageTable>,
        with encoder: inout LifelineEncoder,
        _ failure: inout LifelineFailure
    ) -> Bool {
        // The highest limit of decoding: everything that was decoded can be encoded.
        lifeline_message_encode(table, message, isDelimited, 1_000, &encoder, &failure)
    }
}
