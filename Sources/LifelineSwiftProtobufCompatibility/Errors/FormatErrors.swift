// The errors of swift-protobuf, with its cases. docs/migrating-from-swift-protobuf.md lists the ones that are never
// thrown.

/// An error of decoding an encoded message. The cases are those of swift-protobuf.
public enum BinaryDecodingError: Error {
    /// Bytes or text follow the message.
    case trailingGarbage
    /// The input ends inside the message.
    case truncated
    /// Text is not UTF-8.
    case invalidUTF8
    /// The bytes are not an encoding of a message.
    case malformedProtobuf
    /// A `required` field of proto2 is absent.
    case missingRequiredFields
    /// An extension could not be decoded.
    case internalExtensionError
    /// Messages are nested deeper than the options allow.
    case messageDepthLimit
}

/// An error of encoding a message. The cases are those of swift-protobuf.
public enum BinaryEncodingError: Error, Hashable {
    /// A `google.protobuf.Any` holds a message that cannot be converted.
    case anyTranscodeFailure
    /// A `required` field of proto2 is absent.
    case missingRequiredFields
}

/// An error of reading JSON. The cases are those of swift-protobuf.
public enum JSONDecodingError: Error {
    /// The input is not JSON, for a reason without a case.
    case failure
    /// A number is malformed.
    case malformedNumber
    /// A number is out of the range of its field.
    case numberRange
    /// A map is malformed.
    case malformedMap
    /// A boolean is neither `true` nor `false`.
    case malformedBool
    /// A string is malformed.
    case malformedString
    /// Text is not UTF-8.
    case invalidUTF8
    /// A type has no names of fields.
    case missingFieldNames
    /// A value is of another type than its field.
    case schemaMismatch
    /// An enum has no such value.
    case unrecognizedEnumValue
    /// There is a `null` where it is not allowed.
    case illegalNull
    /// The key of a map is not quoted.
    case unquotedMapKey
    /// A number begins with an unnecessary zero.
    case leadingZero
    /// The input ends inside the message.
    case truncated
    /// A duration is malformed.
    case malformedDuration
    /// A timestamp is malformed.
    case malformedTimestamp
    /// A field mask is malformed.
    case malformedFieldMask
    /// Bytes or text follow the message.
    case trailingGarbage
    /// Two fields of one oneof are set.
    case conflictingOneOf
    /// Messages are nested deeper than the options allow.
    case messageDepthLimit
    /// The message has no field with this name.
    case unknownField(String)
}

/// An error of writing a message as JSON. The cases are those of swift-protobuf.
public enum JSONEncodingError: Error, Hashable {
    /// A `google.protobuf.Any` holds a message that cannot be converted.
    case anyTranscodeFailure
    /// A timestamp is out of the range that JSON has for it.
    case timestampRange
    /// A duration is out of the range that JSON has for it.
    case durationRange
    /// A path of a field mask cannot be written in JSON.
    case fieldMaskConversion
    /// A type has no names of fields.
    case missingFieldNames
    /// A `google.protobuf.Value` has no kind.
    case missingValue
    /// A number in a `google.protobuf.Value` is infinite or NaN.
    case valueNumberNotFinite
}

/// An error of reading text format. The cases are those of swift-protobuf.
public enum TextFormatDecodingError: Error {
    /// The input is not text format.
    case malformedText
    /// A number is malformed.
    case malformedNumber
    /// Bytes or text follow the message.
    case trailingGarbage
    /// The input ends inside the message.
    case truncated
    /// Text is not UTF-8.
    case invalidUTF8
    /// A value is of another type than its field.
    case schemaMismatch
    /// A type has no names of fields.
    case missingFieldNames
    /// The message has no field with this name.
    case unknownField
    /// An enum has no such value.
    case unrecognizedEnumValue
    /// Two fields of one oneof are set.
    case conflictingOneOf
    /// An extension could not be decoded.
    case internalExtensionError
    /// Messages are nested deeper than the options allow.
    case messageDepthLimit
}

/// An error of unpacking the message in a `google.protobuf.Any`. The cases are those of swift-protobuf.
public enum AnyUnpackError: Error {
    /// The message is of another type.
    case typeMismatch
    /// The JSON of a well-known type is malformed.
    case malformedWellKnownTypeJSON
    /// The content is not an encoding of the type.
    case malformedAnyField
}
