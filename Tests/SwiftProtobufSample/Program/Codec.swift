import Foundation
import SwiftProtobuf

/// Encodes the same message to the same bytes in every run, maps included.
func canonicalData(of message: some SwiftProtobuf.Message) throws -> Data {
    var options = BinaryEncodingOptions()
    options.useDeterministicOrdering = true
    return try message.serializedData(partial: true, options: options)
}

/// Whether the message is the same after it went through each of the formats.
func survivesAllFormats<M: SwiftProtobuf.Message & Equatable>(_ message: M) throws -> Bool {
    let binary = try M(serializedData: message.serializedData())
    let bytes: [UInt8] = try message.serializedBytes()
    let json = try M(jsonUTF8Data: message.jsonUTF8Data())
    let text = try M(textFormatString: message.textFormatString())
    return try binary == message && M(serializedBytes: bytes) == message && json == message && text == message
}

/// Messages of one type by their keys, encoded, as a key-value store on disk would keep them.
struct MessageStore<Stored: SwiftProtobuf.Message & Hashable>: Sendable {
    private var entries: [String: Data] = [:]

    var byteCount: Int { entries.values.reduce(0) { $0 + $1.count } }
    var keys: [String] { entries.keys.sorted() }

    subscript(key: String) -> Data? { entries[key] }

    mutating func put(_ message: Stored, for key: String) throws {
        entries[key] = try message.serializedData()
    }

    func get(_ key: String) throws -> Stored? {
        guard let data = entries[key] else { return nil }
        return try Stored(serializedData: data)
    }

    /// Changes what is stored, or a new message.
    mutating func update(_ key: String, _ change: (inout Stored) throws -> Void) throws {
        var message = try get(key) ?? Stored()
        try change(&message)
        try put(message, for: key)
    }

    func distinct() throws -> Set<Stored> {
        Set(try entries.values.map { try Stored(serializedData: $0) })
    }
}

/// The names of the messages' types and how many bytes each takes, whatever they are.
func inventory(of messages: [any SwiftProtobuf.Message]) throws -> [String] {
    try messages.map { "\(type(of: $0).protoMessageName) \(try $0.serializedData().count)" }
}

/// The enum's names with their numbers, in the order of the schema.
func values<E: SwiftProtobuf.Enum & CaseIterable>(of type: E.Type) -> String {
    type.allCases.map { "\($0)=\($0.rawValue)" }.joined(separator: " ")
}

/// Says in a word why a message could not be read.
func reason(for error: any Error) -> String {
    switch error {
    case BinaryDecodingError.truncated: return "truncated"
    case BinaryDecodingError.invalidUTF8: return "not UTF-8"
    case BinaryDecodingError.missingRequiredFields: return "incomplete"
    case BinaryDecodingError.malformedProtobuf: return "malformed"
    case BinaryEncodingError.missingRequiredFields: return "incomplete, not written"
    case BinaryDelimited.Error.truncated: return "file truncated"
    case JSONDecodingError.unknownField(let name): return "unknown field \(name)"
    case JSONDecodingError.unrecognizedEnumValue: return "unknown enum value"
    case let error as JSONDecodingError: return "JSON: \(error)"
    case AnyUnpackError.typeMismatch: return "another type"
    case is TextFormatDecodingError: return "text format"
    default: return "unexpected error: \(error)"
    }
}
