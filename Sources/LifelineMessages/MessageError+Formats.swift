internal import CLifelineMessages

/// A format that people can read.
enum TextualFormat: String {
    case json = "JSON"
    case text = "text format"

    /// The type of the options for reading it.
    fileprivate var options: String { self == .json ? "JSONDecodingOptions" : "TextFormatDecodingOptions" }
}

extension MessageError {
    /// Describes in words what C reported of a format.
    init(_ failure: LifelineFailure, in format: TextualFormat, isPrinting: Bool = false) {
        let (name, options) = (format.rawValue, format.options)
        let field = failure.describedField ?? "the message"
        let place = "at byte \(failure.offset) of the \(format == .json ? name : "text"), in \(field)"
        switch failure.status {
        case LIFELINE_SYNTAX:
            let code: Code = format == .json ? .malformedJSON : .malformedTextFormat
            self.init(code: code, message: "There is no valid \(name) \(place).")
        case LIFELINE_WRONG_KIND where isPrinting:
            self.init(
                code: .unexpectedValue,
                message: "The google.protobuf.Any of \(field) holds bytes that are no message of its type."
            )
        case LIFELINE_WRONG_KIND:
            self.init(code: .unexpectedValue, message: "The value \(place), is of another kind than the field.")
        case LIFELINE_OUT_OF_RANGE where isPrinting:
            self.init(
                code: .valueOutOfRange,
                message:
                    "\(name) has no form for the value of \(field): a time, a duration or a path out of its range, "
                    + "or an infinite number."
            )
        case LIFELINE_OUT_OF_RANGE:
            self.init(code: .valueOutOfRange, message: "The value \(place), is none that the field can hold.")
        case LIFELINE_UNKNOWN_FIELD:
            self.init(
                code: .unknownField,
                message: "There is no such field as the one \(place). "
                    + "Set \(options).ignoreUnknownFields to pass over fields that are not known."
            )
        case LIFELINE_DUPLICATE_FIELD:
            self.init(
                code: .duplicateField,
                message: "A field, a key of a map, or a oneof is set for the second time \(place)."
            )
        case LIFELINE_UNKNOWN_ENUM_VALUE:
            self.init(
                code: .unknownEnumValue,
                message: "The enum has no such value as the one \(place)."
            )
        case LIFELINE_UNKNOWN_MESSAGE:
            self.init(
                code: .unknownMessageType,
                message: "The google.protobuf.Any "
                    + (isPrinting ? "of \(field)" : "\(place),")
                    + " holds a message of a type that is not known. Name it in the options' `types`."
            )
        case LIFELINE_INVALID_UTF8 where isPrinting:
            self.init(code: .invalidUTF8, message: "The text of \(field) is not UTF-8, as \(name) has to be.")
        case LIFELINE_INVALID_UTF8:
            self.init(code: .invalidUTF8, message: "The text of \(field) is not UTF-8, \(place).")
        case LIFELINE_TOO_DEEP where !isPrinting:
            self.init(
                code: .tooDeep,
                message: "Values are nested deeper than the limit allows, \(place). "
                    + "Raise \(options).maximumDepth if that is legitimate; 1,000 is the most."
            )
        case LIFELINE_OUT_OF_MEMORY:
            self.init(
                code: .memoryLimitExceeded,
                message: isPrinting
                    ? "Printing \(field) takes too much memory: messages in google.protobuf.Any may take 64 MiB."
                    : "The message takes more memory than \(options).memoryLimit allows, \(place)."
            )
        default:
            self.init(failure, typeName: field)
        }
        if !isPrinting { offset = failure.offset }
    }
}
