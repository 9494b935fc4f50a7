internal import CLifelineMessages

extension Message {
    /// The encoded message.
    ///
    /// The encoding is deterministic: equal messages have equal bytes. _Fields stand in the order of their numbers, map
    /// entries in the order of their keys, and unknown fields last.
    ///
    /// - Parameter partial: Whether proto2 `required` fields may be absent.
    /// - Throws: `MessageError`, when a required field is absent, messages are nested more than 100 deep, or the encoding
    ///   has more than 2³¹−1 bytes.
    public func serializedBytes(partial: Bool = false) throws(MessageError) -> [UInt8] {
        try encode(delimited: false, partial: partial) { [UInt8]($0) }
    }

    /// Appends the encoded message to `buffer`. Throws as `serializedBytes(partial:)` does; `buffer` is then as it was.
    public func append(
        to buffer: inout some RangeReplaceableCollection<UInt8>,
        partial: Bool = false
    ) throws(MessageError) {
        try encode(delimited: false, partial: partial) { buffer.append(contentsOf: $0) }
    }

    /// Calls `body` with the encoded message, which is valid for the time of the call.
    ///
    /// - Throws: `MessageError` as `serializedBytes(partial:)` does, and what `body` throws.
    public func withSerializedBytes<Result>(
        partial: Bool = false,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        try encode(delimited: false, partial: partial) { bytes in Swift.Result { try body(bytes) } }.get()
    }

    /// Calls `body` with the encoded message behind its length as a varint: one frame of a delimited stream. The memory
    /// is valid for the time of the call.
    ///
    /// - Throws: `MessageError` as `serializedBytes(partial:)` does, and what `body` throws.
    public func withDelimitedBytes<Result>(
        partial: Bool = false,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        try encode(delimited: true, partial: partial) { bytes in Swift.Result { try body(bytes) } }.get()
    }
}

extension Message {
    func encode<Result>(
        delimited: Bool,
        partial: Bool,
        maximumDepth: Int = 100,
        _ body: (UnsafeRawBufferPointer) -> Result
    ) throws(MessageError) -> Result {
        if !partial { try requireInitialized() }
        defer { extendLifetime(self) }
        var encoder = LifelineEncoder()
        lifeline_encoder_init(&encoder)
        defer { lifeline_encoder_destroy(&encoder) }
        var failure = LifelineFailure()
        let depth = UInt32(clamping: min(maximumDepth, 1_000))
        guard lifeline_message_encode(Self._table, _message.fields, delimited, depth, &encoder, &failure) else {
            throw MessageError(failure, typeName: Self.protoMessageName)
        }
        let start = encoder.memory.map { UnsafeRawPointer($0 + encoder.start) }
        return body(UnsafeRawBufferPointer(start: start, count: encoder.capacity - encoder.start))
    }
}
