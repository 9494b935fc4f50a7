public import LifelineMessages

/// How messages are written in the binary format.
public struct BinaryEncodingOptions: Sendable {
    /// Has no effect: equal messages always have equal encodings.
    public var useDeterministicOrdering = false

    /// Makes options with the default values.
    public init() {}
}

/// How messages are read from the binary format.
public struct BinaryDecodingOptions: Sendable {
    /// How many messages may be nested. Values above 1,000 count as 1,000.
    public var messageDepthLimit = 100
    /// Whether to drop fields that a message type does not know. Extensions in the given map are kept, with their whole
    /// content.
    public var discardUnknownFields = false
    /// The bytes of memory that a message may take, beyond a multiple of its input's. swift-protobuf has no such limit.
    public var memoryLimit = DecodingOptions().memoryLimit

    /// Makes options with the default values.
    public init() {}
}

/// How messages are written as JSON.
public struct JSONEncodingOptions: Sendable {
    /// Whether integers of 64 bits are written as numbers instead of strings.
    public var alwaysPrintInt64sAsNumbers = false
    /// Whether enum values are written by their numbers.
    public var alwaysPrintEnumsAsInts = false
    /// Whether fields are written by their names in the `.proto` file.
    public var preserveProtoFieldNames = false
    /// Has no effect: map entries are always in the order of their keys.
    public var useDeterministicOrdering = false

    /// Makes options with the default values.
    public init() {}
}

/// How messages are read from JSON.
public struct JSONDecodingOptions: Sendable {
    /// How many objects and arrays may be nested. Values above 1,000 count as 1,000.
    public var messageDepthLimit = 100
    /// Whether to skip fields and enum values with unknown names.
    public var ignoreUnknownFields = false
    /// The bytes of memory that a message may take, beyond a multiple of its input's. swift-protobuf has no such limit.
    public var memoryLimit = DecodingOptions().memoryLimit

    /// Makes options with the default values.
    public init() {}
}

/// How messages are written in text format.
public struct TextFormatEncodingOptions: Sendable {
    /// Whether unknown fields are printed, by their numbers.
    public var printUnknownFields = true
    /// Has no effect: map entries are always in the order of their keys.
    public var useDeterministicOrdering = true

    /// Makes options with the default values.
    public init() {}
}

/// How messages are read from text format.
public struct TextFormatDecodingOptions: Sendable {
    /// How many messages may be nested. Values above 1,000 count as 1,000.
    public var messageDepthLimit = 100
    /// Whether to skip fields with unknown names, and extensions.
    public var ignoreUnknownFields = false
    /// Whether to skip unknown extensions, and other fields.
    public var ignoreUnknownExtensionFields = false
    /// The bytes of memory that a message may take, beyond a multiple of its input's. swift-protobuf has no such limit.
    public var memoryLimit = DecodingOptions().memoryLimit

    /// Makes options with the default values.
    public init() {}
}

// MARK: - As Lifeline has them

/// swift-protobuf's limit also counts the outermost message, except in JSON.
private func maximumDepth(_ messageDepthLimit: Int) -> Int { max(0, messageDepthLimit &- 1) }

extension BinaryDecodingOptions {
    @usableFromInline var options: DecodingOptions {
        DecodingOptions(maximumDepth: maximumDepth(messageDepthLimit), memoryLimit: memoryLimit)
    }
}

extension JSONEncodingOptions {
    var options: LifelineMessages.JSONEncodingOptions {
        var options = LifelineMessages.JSONEncodingOptions(types: Google_Protobuf_Any.registered)
        options.alwaysPrintInt64sAsNumbers = alwaysPrintInt64sAsNumbers
        options.alwaysPrintEnumsAsInts = alwaysPrintEnumsAsInts
        options.preserveProtoFieldNames = preserveProtoFieldNames
        return options
    }
}

extension JSONDecodingOptions {
    func options(_ extensions: (any ExtensionMap)?) -> LifelineMessages.JSONDecodingOptions {
        var options = LifelineMessages.JSONDecodingOptions(types: Google_Protobuf_Any.registered(and: extensions))
        options.maximumDepth = messageDepthLimit
        options.memoryLimit = memoryLimit
        options.ignoreUnknownFields = ignoreUnknownFields
        return options
    }
}

extension TextFormatEncodingOptions {
    var options: LifelineMessages.TextFormatEncodingOptions {
        var options = LifelineMessages.TextFormatEncodingOptions(types: Google_Protobuf_Any.registered)
        options.printUnknownFields = printUnknownFields
        return options
    }
}

extension TextFormatDecodingOptions {
    func options(_ extensions: (any ExtensionMap)?) -> LifelineMessages.TextFormatDecodingOptions {
        var options = LifelineMessages.TextFormatDecodingOptions(types: Google_Protobuf_Any.registered(and: extensions))
        options.maximumDepth = maximumDepth(messageDepthLimit)
        options.memoryLimit = memoryLimit
        options.ignoreUnknownFields = ignoreUnknownFields || ignoreUnknownExtensionFields
        return options
    }
}
