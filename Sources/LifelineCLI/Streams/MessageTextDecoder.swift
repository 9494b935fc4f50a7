internal import LifelineMessages
internal import LifelineReflection

/// Reads messages of one type from text.
struct MessageTextDecoder {
    private let type: MessageDescriptor
    let form: TextForm
    private var jsonOptions: JSONDecodingOptions
    private var textOptions: TextFormatDecodingOptions

    /// - Parameters:
    ///   - schema: the types of extensions and of the content of `google.protobuf.Any`.
    ///   - ignoresUnknown: whether to ignore unknown fields and names of enum values.
    ///   - limit: the most bytes of an encoded message.
    init(_ type: MessageDescriptor, in schema: DescriptorPool, from form: TextForm, ignoresUnknown: Bool, limit: Int) {
        let types = MessageRegistry(schema)
        self.type = type
        self.form = form
        jsonOptions = JSONDecodingOptions(types: types)
        jsonOptions.ignoreUnknownFields = ignoresUnknown
        jsonOptions.memoryLimit = max(limit, jsonOptions.memoryLimit)
        textOptions = TextFormatDecodingOptions(types: types)
        textOptions.ignoreUnknownFields = ignoresUnknown
        textOptions.memoryLimit = max(limit, textOptions.memoryLimit)
    }

    func message(_ text: [UInt8]) throws(MessageError) -> DynamicMessage {
        switch form {
        case .json: try DynamicMessage(type, jsonUTF8Bytes: text, options: jsonOptions)
        case .text:
            try DynamicMessage(type, textFormatString: String(decoding: text, as: UTF8.self), options: textOptions)
        }
    }
}
