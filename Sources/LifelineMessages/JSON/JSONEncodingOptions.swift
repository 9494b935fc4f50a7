internal import CLifelineMessages

/// How messages are written as JSON.
public struct JSONEncodingOptions: Sendable {
    /// Whether integers of 64 bits are written as numbers. By default, they are strings, as ProtoJSON demands: many
    /// parsers, such as JavaScript's, round numbers above 2⁵³.
    public var alwaysPrintInt64sAsNumbers = false
    /// Whether enum values are written as numbers. By default, they are written as names, if these are known.
    public var alwaysPrintEnumsAsInts = false
    /// Whether fields are written with their names in the `.proto` file, such as `user_id`. By default, they have their
    /// JSON names: `userId`, or the value of the option `json_name`.
    public var preserveProtoFieldNames = false
    /// Whether fields without presence are written even if they have their default: proto3 fields without `optional`,
    /// repeated fields and maps.
    public var alwaysPrintFieldsWithNoPresence = false
    /// The types of messages that a `google.protobuf.Any` may hold, and of extensions.
    public var types: MessageRegistry

    /// Makes options with the default values.
    ///
    /// - Parameter types: the messages that a `google.protobuf.Any` may hold, and the extensions that JSON may name.
    public init(types: MessageRegistry = MessageRegistry()) {
        self.types = types
    }
}

extension JSONEncodingOptions {
    /// Calls `body` with the options in C.
    func withCOptions<Result>(_ body: (UnsafePointer<LifelineJSONPrintOptions>) -> Result) -> Result {
        types.withCTypes { types in
            var options = LifelineJSONPrintOptions(
                write_double: { writeShortest($0, to: $1) },
                write_float: { writeShortest($0, to: $1) },
                types: types,
                // The highest limit of decoding: everything that was decoded can be printed.
                maximum_depth: 1_000,
                enums_as_numbers: alwaysPrintEnumsAsInts,
                int64_as_numbers: alwaysPrintInt64sAsNumbers,
                proto_names: preserveProtoFieldNames,
                absent_fields: alwaysPrintFieldsWithNoPresence
            )
            return body(&options)
        }
    }
}

/// Writes the shortest decimal number that reads back as `number`, which is finite. Returns its length, 24 bytes at
/// most.
func writeShortest(
    _ number: some BinaryFloatingPoint & CustomStringConvertible,
    to place: UnsafeMutablePointer<UInt8>
) -> Int {
    var text = number.description
    return text.withUTF8 { digits in
        // Whole numbers need no point.
        let isWhole =
            digits.count > 2 && digits[digits.count - 2] == UInt8(ascii: ".") && digits.last == UInt8(ascii: "0")
        let count = isWhole ? digits.count - 2 : digits.count
        for index in 0..<count { place[index] = digits[index] }
        return count
    }
}
