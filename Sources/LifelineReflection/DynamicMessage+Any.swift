public import LifelineMessages
public import LifelineWellKnownTypes

extension DynamicMessage {
    /// The message that a `google.protobuf.Any` holds, with its descriptor of a pool.
    ///
    /// - Throws: `MessageError`: `unknownMessageType` if the pool does not have its type, or the error of decoding.
    public init(
        unpackingAny any: Google_Protobuf_Any,
        with pool: DescriptorPool,
        options: DecodingOptions = DecodingOptions()
    ) throws(MessageError) {
        let name = any.messageName
        // Strings with different bytes may be equal.
        guard let type = pool.message(named: name), type.fullName.utf8.elementsEqual(name.utf8) else {
            throw MessageError(
                code: .unknownMessageType,
                message:
                    "This google.protobuf.Any holds a \(any.typeURL.textFormatLiteral), which is not in the pool."
            )
        }
        try self.init(type, serializedBytes: any.value, options: options)
    }
}
