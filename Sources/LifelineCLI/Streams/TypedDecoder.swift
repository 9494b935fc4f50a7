internal import LifelineCore
internal import LifelineMessages
internal import LifelineReflection

/// Decodes messages of one type, whose `required` fields may be absent.
struct TypedDecoder {
    private let type: MessageDescriptor
    private let options: DecodingOptions

    /// - Parameter limit: the most bytes of an encoded message.
    init(_ type: MessageDescriptor, limit: Int) {
        self.type = type
        options = DecodingOptions(memoryLimit: max(limit, DecodingOptions().memoryLimit))
    }

    func message(_ frame: UnsafeRawBufferPointer) throws(MessageError) -> DynamicMessage {
        try DynamicMessage(type, serializedBytes: RawSpan(_unsafeBytes: frame), partial: true, options: options)
    }
}
