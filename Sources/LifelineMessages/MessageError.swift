internal import CLifelineMessages

/// An error of decoding or encoding a message.
public struct MessageError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of failure. More kinds may be added: give a `switch` over them a default.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        private enum Kind: String, Sendable {
            case truncated, malformedVarint, invalidTag, unmatchedGroup, invalidLength, invalidUTF8, tooDeep
            case memoryLimitExceeded, missingRequiredField, tooLarge, typeMismatch
            case malformedJSON, malformedTextFormat, unexpectedValue, valueOutOfRange, unknownField, duplicateField,
                unknownEnumValue
            case unknownMessageType
        }
        private let kind: Kind

        /// The input ends inside a field.
        public static let truncated = Self(kind: .truncated)
        /// A varint has more than ten bytes or more than 64 bits.
        public static let malformedVarint = Self(kind: .malformedVarint)
        /// A tag has field number 0, an unknown wire type, or more than 32 bits.
        public static let invalidTag = Self(kind: .invalidTag)
        /// A group ends that did not begin.
        public static let unmatchedGroup = Self(kind: .unmatchedGroup)
        /// A packed field's length is not a multiple of its element's size.
        public static let invalidLength = Self(kind: .invalidLength)
        /// A `string` is not UTF-8: one of proto3, or of an edition unless it has `features.utf8_validation = NONE`.
        public static let invalidUTF8 = Self(kind: .invalidUTF8)
        /// Messages are nested deeper than allowed.
        public static let tooDeep = Self(kind: .tooDeep)
        /// Decoding would take more memory than allowed.
        public static let memoryLimitExceeded = Self(kind: .memoryLimitExceeded)
        /// A field is absent that is `required` in proto2, or `LEGACY_REQUIRED` in an edition.
        public static let missingRequiredField = Self(kind: .missingRequiredField)
        /// An encoded message would have, or has, more than 2³¹−1 bytes: protobuf's limit.
        public static let tooLarge = Self(kind: .tooLarge)
        /// A `google.protobuf.Any` holds another message type than the one asked for.
        public static let typeMismatch = Self(kind: .typeMismatch)
        /// The input is not JSON.
        public static let malformedJSON = Self(kind: .malformedJSON)
        /// The input is not text format.
        public static let malformedTextFormat = Self(kind: .malformedTextFormat)
        /// JSON or text has another kind of value than the field: a string for a message, say.
        public static let unexpectedValue = Self(kind: .unexpectedValue)
        /// A number or a time that the field cannot hold, or that JSON cannot.
        public static let valueOutOfRange = Self(kind: .valueOutOfRange)
        /// JSON or text has a field that the message does not have.
        public static let unknownField = Self(kind: .unknownField)
        /// JSON or text has a field twice, JSON a map's key, or there are two members of a oneof.
        public static let duplicateField = Self(kind: .duplicateField)
        /// JSON or text has a name, or a closed enum's number, that the enum does not declare.
        public static let unknownEnumValue = Self(kind: .unknownEnumValue)
        /// A `google.protobuf.Any` has a message whose type is not in the options.
        public static let unknownMessageType = Self(kind: .unknownMessageType)

        public var description: String { kind.rawValue }
    }

    /// The kind of failure.
    public var code: Code
    /// The failure, its place, and how to fix it.
    public var message: String
    /// The offset of the failure in the input, if there is one.
    package var offset: Int?

    /// Makes an error with a text for people.
    public init(code: Code, message: String) {
        self.code = code
        self.message = message
    }

    public var description: String { "\(code): \(message)" }
}

extension MessageError {
    /// Describes in words what C reported. `typeName` is the message at which decoding or encoding began.
    init(_ failure: LifelineFailure, typeName: String) {
        let field = failure.describedField ?? typeName
        let position = "byte \(failure.offset) of a \(typeName)"
        switch failure.status {
        case LIFELINE_TRUNCATED:
            self.init(code: .truncated, message: "The input ends inside \(field), which begins at \(position).")
        case LIFELINE_MALFORMED_VARINT:
            self.init(code: .malformedVarint, message: "A varint in \(field) has over 64 bits, at \(position).")
        case LIFELINE_INVALID_TAG:
            self.init(
                code: .invalidTag,
                message: "There is no valid tag at \(position), inside \(field): the input is not protobuf."
            )
        case LIFELINE_UNMATCHED_GROUP:
            self.init(code: .unmatchedGroup, message: "A group ends that did not begin, at \(position), in \(field).")
        case LIFELINE_INVALID_LENGTH:
            self.init(
                code: .invalidLength,
                message: "The packed field \(field) at \(position) has a length that is no multiple of its elements'."
            )
        case LIFELINE_INVALID_UTF8:
            self.init(
                code: .invalidUTF8,
                message: "The string \(field) at \(position) is not UTF-8. Declare it as bytes if it need not be text."
            )
        case LIFELINE_TOO_DEEP:
            self.init(
                code: .tooDeep,
                message: "Messages are nested deeper than the limit allows, in \(field). "
                    + "Raise DecodingOptions.maximumDepth if that is legitimate; 1,000 is the most, also for encoding."
            )
        case LIFELINE_OUT_OF_MEMORY:
            self.init(
                code: .memoryLimitExceeded,
                message: "Decoding a \(typeName) takes more memory than DecodingOptions.memoryLimit allows, "
                    + "at byte \(failure.offset)."
            )
        case LIFELINE_MISSING_REQUIRED:
            self.init(
                code: .missingRequiredField,
                message: "The required field \(field) is not set. Pass `partial: true` to do without it."
            )
        default:
            self.init(code: .tooLarge, message: "A \(typeName) has more than 2147483647 bytes, protobuf's limit.")
        }
    }
}

extension LifelineFailure {
    /// "package.Message.field (number 3)", or only the message's name if no field is involved.
    var describedField: String? {
        guard let table = message else { return nil }
        let typeName = String(cString: table.pointee.full_name)
        guard field_number != 0 else { return typeName }
        let fields = UnsafeBufferPointer(start: table.pointee.fields, count: Int(table.pointee.field_count))
        guard let index = fields.firstIndex(where: { $0.number == field_number }) else {
            return "\(typeName), unknown field \(field_number)"
        }
        return "\(typeName).\(table.pointee.names[2 * index]) (number \(field_number))"
    }
}
