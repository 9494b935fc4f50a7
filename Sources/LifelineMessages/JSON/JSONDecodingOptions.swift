internal import CLifelineMessages

/// How messages are read from JSON, and limits on it.
public struct JSONDecodingOptions: Sendable {
    /// How many objects and arrays may be nested; more is an error. 100 by default, as in other protobuf
    /// implementations. Values above 1,000 count as 1,000, for which a thread needs up to 1 MiB of stack. In a
    /// `google.protobuf.Value`, each counts as two or three messages, of which 1,000 may be nested.
    public var maximumDepth = 100
    /// Bytes that the message, or all messages of an array, may take beyond three times the input and a constant; more
    /// is an error. 64 MiB by default, as in ``DecodingOptions``.
    public var memoryLimit = 64 << 20
    /// Whether to skip fields that the message does not have, and names that an enum does not have. They are errors by
    /// default.
    public var ignoreUnknownFields = false
    /// The types of messages that a `google.protobuf.Any` may hold, and of extensions.
    public var types: MessageRegistry

    /// Makes options with the default values.
    ///
    /// - Parameter types: the messages that a `google.protobuf.Any` may hold, and the extensions that JSON may name.
    public init(types: MessageRegistry = MessageRegistry()) {
        self.types = types
    }
}

extension JSONDecodingOptions {
    /// Calls `body` with the options in C.
    func withCOptions<Result>(_ body: (UnsafePointer<LifelineJSONParseOptions>) -> Result) -> Result {
        types.withCTypes { types in
            var options = LifelineJSONParseOptions(
                types: types,
                maximum_depth: UInt32(clamping: max(0, min(maximumDepth, 1_000))),
                ignore_unknown_fields: ignoreUnknownFields
            )
            return body(&options)
        }
    }
}
