public import LifelineMessages

/// A message whose type is known only at run time.
///
/// It is a value, and has the same memory as a generated message: the same code decodes and encodes both. A generated
/// message becomes a dynamic one, and back, without a copy.
///
///     var message = DynamicMessage(type)
///     try message.set("text", to: .string("hello"))
///     let bytes = try message.serializedBytes()
public struct DynamicMessage: Hashable, Sendable {
    /// Describes the type of the message.
    public let descriptor: MessageDescriptor
    var content: TableMessage

    init(_ descriptor: MessageDescriptor, _ content: TableMessage) {
        (self.descriptor, self.content) = (descriptor, content)
    }

    /// A message with no field set.
    public init(_ descriptor: MessageDescriptor) {
        self.init(descriptor, TableMessage(descriptor.table))
    }

    /// A generated message, which shares its memory. It cannot be an extension: see ``MessageDescriptor/init(_:)``.
    public init(_ message: some Message) {
        self.init(MessageDescriptor(type(of: message)), TableMessage(message))
    }

    /// The message as one of a generated type with the same full name.
    ///
    /// A message that was made with the descriptor of the linked type shares its memory. Any other is encoded and
    /// decoded.
    ///
    /// - Throws: `MessageError`: `typeMismatch` for another full name, or an error of encoding or decoding.
    public func message<M: Message>(as: M.Type = M.self) throws(MessageError) -> M {
        if content.table == M._table { return content.message(as: M.self) }
        try checkName(M.protoMessageName)
        let bytes = try content.serializedBytes(partial: true)
        return try M(serializedBytes: bytes, partial: true, options: content.optionsForCopy)
    }

    /// The message with another descriptor of the same full name, from another pool. It is encoded and decoded, unless
    /// the descriptor is this message's.
    ///
    /// - Throws: `MessageError`: `typeMismatch` for another full name, or an error of encoding or decoding.
    public func message(as type: MessageDescriptor) throws(MessageError) -> DynamicMessage {
        if content.table == type.table { return self }
        try checkName(type.fullName)
        let bytes = try content.serializedBytes(partial: true)
        return try DynamicMessage(type, serializedBytes: bytes, partial: true, options: content.optionsForCopy)
    }

    private func checkName(_ name: String) throws(MessageError) {
        if descriptor.fullName == name { return }
        throw MessageError(code: .typeMismatch, message: "This is a \(descriptor.fullName), not a \(name).")
    }

    /// Two messages are equal if they have the same descriptor, and the same fields are present with the same values,
    /// as for generated messages.
    public static func == (left: DynamicMessage, right: DynamicMessage) -> Bool { left.content == right.content }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(content)
    }
}

// MARK: - Encoding

extension DynamicMessage {
    /// Decodes a message. See `Message.init(serializedBytes:partial:options:)`.
    public init(
        _ descriptor: MessageDescriptor,
        serializedBytes bytes: some Sequence<UInt8>,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) throws(MessageError) {
        self = try withContiguousBytes(of: bytes) { (bytes) throws(MessageError) in
            let content = try TableMessage(
                serializedBytes: bytes,
                as: descriptor.table,
                partial: partial,
                options: options
            )
            return DynamicMessage(descriptor, content)
        }
    }

    /// Decodes a message from an array of bytes. See `Message.init(serializedBytes:partial:options:)`.
    public init(
        _ descriptor: MessageDescriptor,
        serializedBytes bytes: borrowing [UInt8],
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) throws(MessageError) {
        self = try DynamicMessage(descriptor, serializedBytes: bytes.span.bytes, partial: partial, options: options)
    }

    /// Decodes a message from a span of bytes. See `Message.init(serializedBytes:partial:options:)`.
    public init(
        _ descriptor: MessageDescriptor,
        serializedBytes bytes: RawSpan,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) throws(MessageError) {
        let content = try bytes.withUnsafeBytes { (bytes) throws(MessageError) in
            try TableMessage(serializedBytes: bytes, as: descriptor.table, partial: partial, options: options)
        }
        self.init(descriptor, content)
    }

    /// Merges an encoded message into this one. See `Message.merge(serializedBytes:partial:options:)`.
    public mutating func merge(
        serializedBytes bytes: some Sequence<UInt8>,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) throws(MessageError) {
        var merged = content
        try withContiguousBytes(of: bytes) { (bytes) throws(MessageError) in
            try merged.merge(serializedBytes: bytes, partial: partial, options: options)
        }
        content = merged
    }

    /// The encoded message. See `Message.serializedBytes(partial:)`.
    public func serializedBytes(partial: Bool = false) throws(MessageError) -> [UInt8] {
        try content.serializedBytes(partial: partial)
    }

    /// Calls `body` with the encoded message after its length as a varint. The memory is valid only during the call.
    public func withDelimitedBytes<Result>(
        partial: Bool = false,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        try content.withDelimitedBytes(partial: partial, body)
    }

    /// Whether every `required` field is set, in this message and in all below it.
    public var isInitialized: Bool { content.isInitialized }

    /// Checks the content of extensions, here and below. See `Message.checkExtensions(_:partial:options:)`. The
    /// extensions of a pool are in `MessageRegistry(pool)`.
    public func checkExtensions(
        _ extensions: MessageRegistry,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) throws(MessageError) {
        try content.checkExtensions(extensions, partial: partial, options: options)
    }

    /// The fields that the message type does not know, with their tags: extensions are among them.
    public var unknownFields: [UInt8] { content.unknownFields }

    /// Removes the fields that the message type does not know, but not those of submessages. Extensions are among them.
    public mutating func removeUnknownFields() {
        content.removeUnknownFields()
    }
}

// MARK: - JSON and text

extension DynamicMessage: CustomDebugStringConvertible {
    /// Reads a message from JSON. See `Message.init(jsonString:partial:options:)`.
    public init(
        _ descriptor: MessageDescriptor,
        jsonString: String,
        partial: Bool = false,
        options: JSONDecodingOptions = JSONDecodingOptions()
    ) throws(MessageError) {
        try self.init(descriptor, jsonUTF8Bytes: jsonString.utf8, partial: partial, options: options)
    }

    /// Reads a message from JSON in UTF-8. See `Message.init(jsonString:partial:options:)`.
    public init(
        _ descriptor: MessageDescriptor,
        jsonUTF8Bytes bytes: some Sequence<UInt8>,
        partial: Bool = false,
        options: JSONDecodingOptions = JSONDecodingOptions()
    ) throws(MessageError) {
        self = try withContiguousBytes(of: bytes) { (bytes) throws(MessageError) in
            let content = try TableMessage(
                jsonUTF8Bytes: bytes,
                as: descriptor.table,
                partial: partial,
                options: options
            )
            return DynamicMessage(descriptor, content)
        }
    }

    /// The message as JSON, in one line. See `Message.jsonString(options:)`.
    public func jsonString(options: JSONEncodingOptions = JSONEncodingOptions()) throws(MessageError) -> String {
        try content.jsonString(options)
    }

    /// The message as JSON, in one line, in UTF-8. See `Message.jsonString(options:)`.
    public func jsonUTF8Bytes(options: JSONEncodingOptions = JSONEncodingOptions()) throws(MessageError) -> [UInt8] {
        try content.jsonUTF8Bytes(options)
    }

    /// Reads a message from text format. See `Message.init(textFormatString:partial:options:)`.
    public init(
        _ descriptor: MessageDescriptor,
        textFormatString text: String,
        partial: Bool = false,
        options: TextFormatDecodingOptions = TextFormatDecodingOptions()
    ) throws(MessageError) {
        self = try withContiguousBytes(of: text.utf8) { (bytes) throws(MessageError) in
            let content = try TableMessage(
                textFormat: bytes,
                as: descriptor.table,
                partial: partial,
                options: options
            )
            return DynamicMessage(descriptor, content)
        }
    }

    /// The message in text format. See `Message.textFormatString(options:)`.
    public func textFormatString(options: TextFormatEncodingOptions = TextFormatEncodingOptions()) -> String {
        content.textFormatString(options)
    }

    public var debugDescription: String {
        let text = textFormatString()
        return text.isEmpty ? "\(descriptor.fullName) {}" : "\(descriptor.fullName) {\n\(text)}"
    }
}

// MARK: - Extensions of generated messages

extension Message {
    /// The value of an extension that is known only at run time, such as a custom option; nil if it is not set.
    ///
    ///     let isSecret = try field.options.value(ofExtension: secret)?.boolValue ?? false
    ///
    /// If the extension's pool has its own descriptor of this message, the extension is read from a copy, which is
    /// encoded and decoded.
    ///
    /// - Throws: `MessageError`: `unknownField` for a field that is not an extension of this message, or an error of
    ///   encoding or decoding.
    public func value(ofExtension field: FieldDescriptor) throws(MessageError) -> FieldValue? {
        guard field.isExtension, let type = field.containingType, type.fullName == Self.protoMessageName else {
            throw MessageError(
                code: .unknownField,
                message: "\(field.fullName) is no extension of \(Self.protoMessageName)."
            )
        }
        try field.checkExtensionTable()
        let message = try DynamicMessage(self).message(as: type)
        return message.presentValue(of: field)
    }
}
