internal import LifelineCore
internal import LifelineMessages
internal import LifelineReflection

/// The form in which messages are printed.
enum PrintedForm {
    case text(MessageTextEncoder)
    /// The unchanged bytes; with a type, after a check of the message.
    case delimited(TypedDecoder?)

    /// - Parameters:
    ///   - format: nil for JSON if the type is known, and otherwise for text with field numbers.
    ///   - limit: the most bytes of an encoded message.
    init(
        _ format: MessageFormat?,
        of type: (type: MessageDescriptor, pool: DescriptorPool)?,
        json: JSONFlags,
        limit: Int
    ) {
        guard let (type, pool) = type else {
            self = format == .delimited ? .delimited(nil) : .text(.fieldNumbers(limit: limit))
            return
        }
        switch format ?? .text(.json) {
        case .text(let form): self = .text(MessageTextEncoder(type, form, in: pool, json: json, limit: limit))
        case .delimited: self = .delimited(TypedDecoder(type, limit: limit))
        }
    }

    /// Appends the printed form of a message.
    func append(_ payload: UnsafeRawBufferPointer, to output: inout [UInt8]) throws(MessageError) {
        switch self {
        case .text(let encoder):
            try encoder.append(payload, to: &output)
        case .delimited(let decoder):
            _ = try decoder?.message(payload)
            output += Varint.encoded(UInt64(payload.count))
            output += payload
        }
    }
}
