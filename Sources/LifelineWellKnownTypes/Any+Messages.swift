public import LifelineMessages

extension Google_Protobuf_Any {
    /// A message of any type, with its type's name.
    ///
    /// - Parameter typePrefix: The text before the name in `typeURL`. Peers only use the part after the last "/".
    /// - Throws: `MessageError` as `serializedBytes(partial:)` does.
    public init(
        message: some Message,
        partial: Bool = false,
        typePrefix: String = "type.googleapis.com"
    ) throws(MessageError) {
        self.init()
        typeURL = "\(typePrefix)/\(type(of: message).protoMessageName)"
        value = try message.serializedBytes(partial: partial)
    }

    /// Whether this holds an `M`.
    public func isA<M: Message>(_: M.Type) -> Bool {
        // By bytes, because Strings that differ in them may be equal.
        messageName.utf8.elementsEqual(M.protoMessageName.utf8)
    }

    /// The full name of the message's type: what follows the last "/" of `typeURL`.
    package var messageName: String {
        let url = typeURL
        guard let slash = url.utf8.lastIndex(of: UInt8(ascii: "/")) else { return url }
        return String(url[url.utf8.index(after: slash)...])
    }

    /// The message that this holds, of whichever of some types it is:
    ///
    ///     switch try any.unpacked(with: types) {
    ///     case let user as Sample_Chat_V1_User: greet(user)
    ///     default: break
    ///     }
    ///
    /// - Parameter types: Linked types. `DynamicMessage` of LifelineReflection unpacks others.
    /// - Throws: `MessageError`: `unknownMessageType` when it is of none of them, or what decoding throws.
    public func unpacked(
        with types: MessageRegistry,
        options: DecodingOptions = DecodingOptions()
    ) throws(MessageError) -> any Message {
        guard let type = types[messageName] else {
            throw MessageError(
                code: .unknownMessageType,
                message:
                    "This google.protobuf.Any holds a \(typeURL.textFormatLiteral), which is no linked type of the "
                    + "registry."
            )
        }
        return try type.init(serializedBytes: value, options: options)
    }
}

extension Message {
    /// The message that a `google.protobuf.Any` holds.
    ///
    /// - Throws: `MessageError`: `typeMismatch` when it is of another type, or what decoding throws.
    public init(
        unpackingAny any: Google_Protobuf_Any,
        options: DecodingOptions = DecodingOptions()
    ) throws(MessageError) {
        guard any.isA(Self.self) else {
            throw MessageError(
                code: .typeMismatch,
                message:
                    "This google.protobuf.Any holds a \(any.typeURL.textFormatLiteral), not a "
                    + "\(Self.protoMessageName). Ask isA(_:) first."
            )
        }
        self = try Self(serializedBytes: any.value, options: options)
    }
}
