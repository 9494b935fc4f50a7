internal import CLifelineMessages

/// An extension: a field of a message that is declared outside of it (`extend` in a `.proto` file).
///
/// `protoc-gen-lifeline` generates a type for each extension, and a property for the extended message, like
/// swift-protobuf. Both do the same:
///
///     options.Sample_weight = 3
///     options[Sample_Extensions_weight.self] = 3
///
/// A message keeps its extensions, encoded, among its unknown fields. So a program that does not know an extension does
/// not lose it, and reading or writing one costs as much as decoding or encoding it. An extension reads as absent if
/// its bytes are not of its type, or if it takes more than 64 MiB beyond three times its bytes. To check the content of
/// extensions when a message is decoded, use ``Message/init(serializedBytes:extensions:partial:options:)``.
///
/// `isInitialized` and encoding do not look for `required` fields in extensions;
/// ``Message/checkExtensions(_:partial:options:)`` does.
public protocol MessageExtension: Message {
    /// The message that has the extension.
    associatedtype _Extended: Message
    associatedtype _Value

    /// The extension's value. If it is absent: the declared default, or an empty message or list.
    var value: _Value { get set }
}

extension Message {
    /// The value of an extension; its default if it is absent. One that is set may take up to 2 GiB.
    public subscript<Extension: MessageExtension>(_: Extension.Type) -> Extension._Value
    where Extension._Extended == Self {
        get { (read(Extension.self) ?? Extension()).value }
        set {
            var content = read(Extension.self) ?? Extension()
            content.value = newValue
            write(content)
        }
    }

    /// Whether an extension is set, or a repeated one has elements.
    public func hasExtension<Extension: MessageExtension>(_: Extension.Type) -> Bool
    where Extension._Extended == Self {
        read(Extension.self) != nil
    }

    /// Clears an extension. It then reads as its default.
    public mutating func clearExtension<Extension: MessageExtension>(_: Extension.Type)
    where Extension._Extended == Self {
        write(Extension())
    }

    /// Nil if the extension is absent.
    private func read<Extension: MessageExtension>(_: Extension.Type) -> Extension? {
        guard let (storage, content) = _message.untyped.extensionContent(as: Extension._table) else { return nil }
        let fields = content.assumingMemoryBound(to: Extension._Fields.self)
        return Extension(_message: _MessageReference(storage: storage, fields: fields))
    }

    private mutating func write<Extension: MessageExtension>(_ content: Extension) {
        _message.untyped.setExtension(content._message.untyped, as: Extension._table, in: Self._table)
    }
}

extension _UntypedReference {
    /// The bytes of memory that one extension may take.
    var extensionLimit: Int { DecodingOptions().memoryLimit + 3 * unknownByteCount }

    /// The extension that the table describes, as a message of that table; nil if it is absent.
    func extensionContent(
        as table: UnsafePointer<_MessageTable>
    ) -> (storage: _MessageStorage, fields: UnsafeMutableRawPointer)? {
        guard hasUnknownFields else { return nil }
        let storage = _MessageStorage.create(byteCount: 256)
        storage.arena.pointee.budget = lifeline_arena_budget(extensionLimit)
        storage.arena.pointee.may_hold_malformed_text = mayHoldMalformedText
        let content = lifeline_extension_read(table, fields, storage.arena)
        extendLifetime(self)
        guard let content else { return nil }
        let size = lifeline_arena_block_bytes(storage.arena)
        storage.arena.pointee.budget = _MessageStorage.allowance(forSize: size)
        return (storage, content)
    }

    /// Replaces an extension by `content`, of the extension's table, or removes it if `content` has no field set.
    mutating func setExtension(
        _ content: _UntypedReference,
        as table: UnsafePointer<_MessageTable>,
        in own: UnsafePointer<_MessageTable>
    ) {
        // Nothing to remove. Removing would copy a message that is shared.
        if !hasUnknownFields, content.storage == nil { return }
        let fields = mutableFields(as: own)
        withStorage { $0.write(content.fields, as: table, from: content.storage, toExtensionsOf: fields) }
        extendLifetime(content)
    }
}

// MARK: - Decoding

extension Message {
    /// Decodes a message, and checks the content of its extensions like that of other fields.
    ///
    /// - Parameters:
    ///   - bytes: One encoded message, without a length prefix.
    ///   - extensions: The extensions to check. Others stay unknown fields, whatever their content.
    ///   - partial: Whether proto2 `required` fields may be absent, also in extensions.
    ///   - options: Limits on depth and memory. They apply to the check of the extensions separately.
    /// - Throws: `MessageError`, if the bytes are not an encoding of this message type, or exceed a limit.
    public init(
        serializedBytes bytes: some Sequence<UInt8>,
        extensions: MessageRegistry,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) throws(MessageError) {
        try self.init(serializedBytes: bytes, partial: partial, options: options)
        try checkExtensions(extensions, partial: partial, options: options)
    }

    /// Checks the content of extensions in this message and below it, for a message that was decoded without a
    /// registry.
    ///
    /// - Parameters:
    ///   - extensions: The extensions to check.
    ///   - partial: Whether proto2 `required` fields may be absent in them.
    ///   - options: Limits on their depth and memory.
    /// - Throws: `MessageError`, if an extension is not of its type, lacks a required field or exceeds a limit.
    public func checkExtensions(
        _ extensions: MessageRegistry,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) throws(MessageError) {
        defer { extendLifetime(self) }
        try extensions.check(_message.fields, as: Self._table, partial: partial, options: options)
    }
}

extension MessageRegistry {
    /// Checks the content of extensions in a message and below it.
    func check(
        _ message: UnsafeRawPointer,
        as table: UnsafePointer<_MessageTable>,
        partial: Bool,
        options: DecodingOptions
    ) throws(MessageError) {
        var failure = LifelineFailure()
        var options = LifelineDecodeOptions(options)
        let isValid = withCTypes { types in
            var types = types
            return lifeline_extensions_check(table, message, &types, partial, &options, &failure)
        }
        if !isValid { throw MessageError(failure, as: table) }
    }
}
