public import FoundationEssentials
public import LifelineMessages

// MARK: - Encoding

extension SwiftProtobufMessage {
    /// The encoded message.
    ///
    /// - Parameter partial: Whether proto2 `required` fields may be absent.
    /// - Throws: `BinaryEncodingError`.
    @inlinable public func serializedData(
        partial: Bool = false,
        options: BinaryEncodingOptions = BinaryEncodingOptions()
    ) throws -> Data {
        do {
            return try withSerializedBytes(partial: partial) { bytes in
                bytes.baseAddress.map { Data(bytes: $0, count: bytes.count) } ?? Data()
            }
        } catch let error as MessageError {
            throw error.asBinaryEncodingError
        }
    }

    /// The encoded message. See ``serializedData(partial:options:)``.
    @inlinable public func serializedBytes<Bytes: SwiftProtobufContiguousBytes>(
        partial: Bool = false,
        options: BinaryEncodingOptions = BinaryEncodingOptions()
    ) throws -> Bytes {
        do {
            return try withSerializedBytes(partial: partial) { Bytes($0) }
        } catch let error as MessageError {
            throw error.asBinaryEncodingError
        }
    }

    // Swift prefers functions without own parameters. It would take Lifeline's, which throws other errors.
    /// The encoded message. See ``serializedData(partial:options:)``.
    @inlinable public func serializedBytes(
        partial: Bool = false,
        options: BinaryEncodingOptions = BinaryEncodingOptions()
    ) throws -> [UInt8] {
        do {
            return try withSerializedBytes(partial: partial) { [UInt8]($0.assumingMemoryBound(to: UInt8.self)) }
        } catch let error as MessageError {
            throw error.asBinaryEncodingError
        }
    }
}

// MARK: - Decoding

extension SwiftProtobufMessage {
    /// Decodes a message.
    ///
    /// - Parameters:
    ///   - bytes: One encoded message.
    ///   - extensions: Extensions to check. Others are kept and can be read, whatever their content.
    ///   - partial: Whether proto2 `required` fields may be absent.
    ///   - options: A limit on depth, and whether unknown fields are dropped.
    /// - Throws: `BinaryDecodingError`, or `SwiftProtobufError` for a message that takes too much memory.
    @inlinable public init<Bytes: SwiftProtobufContiguousBytes>(
        serializedBytes bytes: Bytes,
        extensions: (any ExtensionMap)? = nil,
        partial: Bool = false,
        options: BinaryDecodingOptions = BinaryDecodingOptions()
    ) throws {
        self = try bytes.withUnsafeBytes { try Self(_decoding: $0, extensions, partial, options) }
    }

    /// Decodes a message. See `init(serializedBytes:extensions:partial:options:)`.
    @inlinable public init(
        serializedData data: Data,
        extensions: (any ExtensionMap)? = nil,
        partial: Bool = false,
        options: BinaryDecodingOptions = BinaryDecodingOptions()
    ) throws {
        self = try data.withUnsafeBytes { try Self(_decoding: $0, extensions, partial, options) }
    }

    // Swift prefers functions without own parameters. Without these two, it would take Lifeline's, which throw other
    // errors.

    /// Decodes a message. See ``init(serializedBytes:extensions:partial:options:)``.
    @inlinable public init(
        serializedBytes bytes: [UInt8],
        extensions: (any ExtensionMap)? = nil,
        partial: Bool = false,
        options: BinaryDecodingOptions = BinaryDecodingOptions()
    ) throws {
        self = try bytes.withUnsafeBytes { try Self(_decoding: $0, extensions, partial, options) }
    }

    /// Decodes a message. See ``init(serializedBytes:extensions:partial:options:)``.
    @inlinable public init(
        serializedBytes bytes: RawSpan,
        extensions: (any ExtensionMap)? = nil,
        partial: Bool = false,
        options: BinaryDecodingOptions = BinaryDecodingOptions()
    ) throws {
        self = try bytes.withUnsafeBytes { try Self(_decoding: $0, extensions, partial, options) }
    }

    @inlinable init(
        _decoding bytes: UnsafeRawBufferPointer,
        _ extensions: (any ExtensionMap)?,
        _ partial: Bool,
        _ options: BinaryDecodingOptions
    ) throws {
        if options.discardUnknownFields {
            self.init()
            try merge(bytes, extensions, partial, options)
            return
        }
        do throws(MessageError) {
            try self.init(serializedBytes: bytes, partial: partial, options: options.options)
            if let extensions {
                try checkExtensions(extensions._registry, partial: partial, options: options.options)
            }
        } catch {
            throw error.asBinaryDecodingError
        }
    }
}

// MARK: - Merging

extension SwiftProtobufMessage {
    /// Merges an encoded message into this one. After an error, this one is unchanged.
    ///
    /// - Throws: as `init(serializedBytes:extensions:partial:options:)` does.
    public mutating func merge<Bytes: SwiftProtobufContiguousBytes>(
        serializedBytes bytes: Bytes,
        extensions: (any ExtensionMap)? = nil,
        partial: Bool = false,
        options: BinaryDecodingOptions = BinaryDecodingOptions()
    ) throws {
        try bytes.withUnsafeBytes { try merge($0, extensions, partial, options) }
    }

    /// Merges an encoded message into this one. See `merge(serializedBytes:extensions:partial:options:)`.
    public mutating func merge(
        serializedData data: Data,
        extensions: (any ExtensionMap)? = nil,
        partial: Bool = false,
        options: BinaryDecodingOptions = BinaryDecodingOptions()
    ) throws {
        try data.withUnsafeBytes { try merge($0, extensions, partial, options) }
    }

    /// Merges an encoded message into this one. See ``merge(serializedBytes:extensions:partial:options:)``.
    public mutating func merge(
        serializedBytes bytes: RawSpan,
        extensions: (any ExtensionMap)? = nil,
        partial: Bool = false,
        options: BinaryDecodingOptions = BinaryDecodingOptions()
    ) throws {
        try bytes.withUnsafeBytes { try merge($0, extensions, partial, options) }
    }

    @usableFromInline mutating func merge(
        _ bytes: UnsafeRawBufferPointer,
        _ extensions: (any ExtensionMap)?,
        _ partial: Bool,
        _ options: BinaryDecodingOptions
    ) throws {
        var merged = self
        let extensions = extensions?._registry ?? MessageRegistry()
        do throws(MessageError) {
            if options.discardUnknownFields {
                try merged.mergeKnownFields(bytes, extensions, partial: partial, options.options)
            } else {
                try merged.merge(serializedBytes: bytes, partial: partial, options: options.options)
            }
            try merged.checkExtensions(extensions, partial: partial, options: options.options)
        } catch {
            throw error.asBinaryDecodingError
        }
        self = merged
    }

    private mutating func mergeKnownFields(
        _ bytes: UnsafeRawBufferPointer,
        _ extensions: MessageRegistry,
        partial: Bool,
        _ options: DecodingOptions
    ) throws(MessageError) {
        var content = TableMessage(self)
        try content.mergeKnownFields(serializedBytes: bytes, extensions: extensions, partial: partial, options: options)
        self = content.message(as: Self.self)
    }
}
