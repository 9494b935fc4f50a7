internal import LifelineMessages
internal import LifelineWellKnownTypes

// The error that swift-protobuf throws in place of one of Lifeline's.
extension MessageError {
    @usableFromInline var asBinaryDecodingError: any Error {
        switch code {
        case .truncated, .invalidLength: BinaryDecodingError.truncated
        case .malformedVarint, .invalidTag, .unmatchedGroup: BinaryDecodingError.malformedProtobuf
        case .invalidUTF8: BinaryDecodingError.invalidUTF8
        case .tooDeep: BinaryDecodingError.messageDepthLimit
        case .missingRequiredField: BinaryDecodingError.missingRequiredFields
        case .tooLarge: SwiftProtobufError.BinaryDecoding.tooLarge()
        default: SwiftProtobufError(.binaryDecodingError, message)
        }
    }

    @usableFromInline var asBinaryEncodingError: any Error {
        // Also for messages that are too large, as swift-protobuf does.
        BinaryEncodingError.missingRequiredFields
    }

    func asJSONDecodingError(in json: UnsafeRawBufferPointer) -> any Error {
        switch code {
        case .malformedJSON where isAtEnd(of: json): JSONDecodingError.truncated
        case .malformedJSON: JSONDecodingError.failure
        case .unexpectedValue: JSONDecodingError.schemaMismatch
        case .valueOutOfRange: JSONDecodingError.numberRange
        case .invalidUTF8: JSONDecodingError.invalidUTF8
        case .unknownEnumValue: JSONDecodingError.unrecognizedEnumValue
        case .unknownField: JSONDecodingError.unknownField(name(in: json))
        case .duplicateField: JSONDecodingError.conflictingOneOf
        case .tooDeep: JSONDecodingError.messageDepthLimit
        default: SwiftProtobufError(.jsonDecodingError, message)
        }
    }

    var asJSONEncodingError: any Error {
        switch code {
        case .unknownMessageType, .unexpectedValue: JSONEncodingError.anyTranscodeFailure
        default: SwiftProtobufError(.jsonEncodingError, message)
        }
    }

    func asTextFormatDecodingError(in text: UnsafeRawBufferPointer) -> any Error {
        switch code {
        case .malformedTextFormat where isAtEnd(of: text): TextFormatDecodingError.truncated
        case .valueOutOfRange: TextFormatDecodingError.malformedNumber
        case .unexpectedValue: TextFormatDecodingError.schemaMismatch
        case .invalidUTF8: TextFormatDecodingError.invalidUTF8
        case .unknownField: TextFormatDecodingError.unknownField
        case .unknownEnumValue: TextFormatDecodingError.unrecognizedEnumValue
        case .duplicateField: TextFormatDecodingError.conflictingOneOf
        case .tooDeep: TextFormatDecodingError.messageDepthLimit
        default: TextFormatDecodingError.malformedText
        }
    }

    private func isAtEnd(of text: UnsafeRawBufferPointer) -> Bool { offset.map { $0 >= text.count } ?? false }

    /// The name of the field at the place of the error.
    private func name(in json: UnsafeRawBufferPointer) -> String {
        guard let offset, offset < json.count else { return "" }
        var end = offset + 1
        while end < json.count, json[end] != UInt8(ascii: "\"") {
            end += json[end] == UInt8(ascii: "\\") ? 2 : 1
        }
        // This wrapper is a string in JSON.
        let name = try? LifelineWellKnownTypes.Google_Protobuf_StringValue(
            jsonUTF8Bytes: json[offset..<min(end + 1, json.count)]
        )
        return name?.value ?? ""
    }
}
