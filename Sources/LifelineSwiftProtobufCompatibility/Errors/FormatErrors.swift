// The errors of swift-protobuf, with its cases. docs/migrating-from-swift-protobuf.md lists those that are never thrown.

public enum BinaryDecodingError: Error {
    case trailingGarbage
    case truncated
    case invalidUTF8
    case malformedProtobuf
    case missingRequiredFields
    case internalExtensionError
    case messageDepthLimit
}

public enum BinaryEncodingError: Error, Hashable {
    case anyTranscodeFailure
    case missingRequiredFields
}

public enum JSONDecodingError: Error {
    case failure
    case malformedNumber
    case numberRange
    case malformedMap
    case malformedBool
    case malformedString
    case invalidUTF8
    case missingFieldNames
    case schemaMismatch
    case unrecognizedEnumValue
    case illegalNull
    case unquotedMapKey
    case leadingZero
    case truncated
    case malformedDuration
    case malformedTimestamp
    case malformedFieldMask
    case trailingGarbage
    case conflictingOneOf
    case messageDepthLimit
    case unknownField(String)
}

public enum JSONEncodingError: Error, Hashable {
    case anyTranscodeFailure
    case timestampRange
    case durationRange
    case fieldMaskConversion
    case missingFieldNames
    case missingValue
    case valueNumberNotFinite
}

public enum TextFormatDecodingError: Error {
    case malformedText
    case malformedNumber
    case trailingGarbage
    case truncated
    case invalidUTF8
    case schemaMismatch
    case missingFieldNames
    case unknownField
    case unrecognizedEnumValue
    case conflictingOneOf
    case internalExtensionError
    case messageDepthLimit
}

public enum AnyUnpackError: Error {
    case typeMismatch
    case malformedWellKnownTypeJSON
    case malformedAnyField
}
