public import FoundationEssentials
internal import LifelineMessages

// MARK: - Encoding

extension SwiftProtobufMessage {
    /// The message as JSON.
    ///
    /// - Throws: `JSONEncodingError`, or `SwiftProtobufError` for a value without a form in JSON.
    public func jsonString(options: JSONEncodingOptions = JSONEncodingOptions()) throws -> String {
        do throws(MessageError) {
            return try jsonString(options: options.options)
        } catch {
            throw error.asJSONEncodingError
        }
    }

    /// The message as JSON in UTF-8. See ``jsonString(options:)-method``.
    public func jsonUTF8Bytes(options: JSONEncodingOptions = JSONEncodingOptions()) throws -> [UInt8] {
        do throws(MessageError) {
            return try jsonUTF8Bytes(options: options.options)
        } catch {
            throw error.asJSONEncodingError
        }
    }

    /// The message as JSON in UTF-8. See ``jsonString(options:)-method``.
    public func jsonUTF8Bytes<Bytes: SwiftProtobufContiguousBytes>(
        options: JSONEncodingOptions = JSONEncodingOptions()
    ) throws -> Bytes {
        let bytes: [UInt8] = try jsonUTF8Bytes(options: options)
        return Bytes(bytes)
    }

    /// The message as JSON in UTF-8. See ``jsonString(options:)-method``.
    public func jsonUTF8Data(options: JSONEncodingOptions = JSONEncodingOptions()) throws -> Data {
        let bytes: [UInt8] = try jsonUTF8Bytes(options: options)
        return Data(bytes)
    }
}

// MARK: - Decoding

extension SwiftProtobufMessage {
    /// Reads a message from JSON. Proto2 `required` fields may be absent.
    ///
    /// - Parameter extensions: Extensions that may be in the JSON.
    /// - Throws: `JSONDecodingError`, or `SwiftProtobufError` for a `google.protobuf.Any` of an unregistered type and
    ///   for a message that takes too much memory.
    public init(
        jsonString: String,
        extensions: (any ExtensionMap)? = nil,
        options: JSONDecodingOptions = JSONDecodingOptions()
    ) throws {
        try self.init(jsonUTF8Bytes: Array(jsonString.utf8), extensions: extensions, options: options)
    }

    /// Reads a message from JSON in UTF-8. See ``init(jsonString:extensions:options:)``.
    public init(
        jsonUTF8Data: Data,
        extensions: (any ExtensionMap)? = nil,
        options: JSONDecodingOptions = JSONDecodingOptions()
    ) throws {
        try self.init(jsonUTF8Bytes: jsonUTF8Data, extensions: extensions, options: options)
    }

    /// Reads a message from JSON in UTF-8. See ``init(jsonString:extensions:options:)``.
    public init<Bytes: SwiftProtobufContiguousBytes>(
        jsonUTF8Bytes: Bytes,
        extensions: (any ExtensionMap)? = nil,
        options: JSONDecodingOptions = JSONDecodingOptions()
    ) throws {
        self = try jsonUTF8Bytes.withUnsafeBytes { json in
            do throws(MessageError) {
                return try Self(jsonUTF8Bytes: json, partial: true, options: options.options(extensions))
            } catch {
                throw error.asJSONDecodingError(in: json)
            }
        }
    }
}

// MARK: - Arrays

extension SwiftProtobufMessage {
    /// The messages as a JSON array. See ``jsonString(options:)-method``.
    public static func jsonString<Messages: Collection>(
        from messages: Messages,
        options: JSONEncodingOptions = JSONEncodingOptions()
    ) throws -> String where Messages.Element == Self {
        do throws(MessageError) {
            return try jsonString(from: messages, options: options.options)
        } catch {
            throw error.asJSONEncodingError
        }
    }

    /// The messages as a JSON array in UTF-8. See ``jsonString(options:)-method``.
    public static func jsonUTF8Bytes<Messages: Collection, Bytes: SwiftProtobufContiguousBytes>(
        from messages: Messages,
        options: JSONEncodingOptions = JSONEncodingOptions()
    ) throws -> Bytes where Messages.Element == Self {
        do throws(MessageError) {
            let bytes: [UInt8] = try jsonUTF8Bytes(from: messages, options: options.options)
            return Bytes(bytes)
        } catch {
            throw error.asJSONEncodingError
        }
    }

    /// The messages as a JSON array in UTF-8. See ``jsonString(options:)-method``.
    public static func jsonUTF8Data<Messages: Collection>(
        from messages: Messages,
        options: JSONEncodingOptions = JSONEncodingOptions()
    ) throws -> Data where Messages.Element == Self {
        try jsonUTF8Bytes(from: messages, options: options)
    }

    /// Reads the messages of a JSON array. See ``init(jsonString:extensions:options:)``.
    public static func array(
        fromJSONString jsonString: String,
        extensions: (any ExtensionMap)? = nil,
        options: JSONDecodingOptions = JSONDecodingOptions()
    ) throws -> [Self] {
        try array(fromJSONUTF8Bytes: Array(jsonString.utf8), extensions: extensions, options: options)
    }

    /// Reads the messages of a JSON array in UTF-8. See ``init(jsonString:extensions:options:)``.
    public static func array(
        fromJSONUTF8Data jsonUTF8Data: Data,
        extensions: (any ExtensionMap)? = nil,
        options: JSONDecodingOptions = JSONDecodingOptions()
    ) throws -> [Self] {
        try array(fromJSONUTF8Bytes: jsonUTF8Data, extensions: extensions, options: options)
    }

    /// Reads the messages of a JSON array in UTF-8. See ``init(jsonString:extensions:options:)``.
    public static func array<Bytes: SwiftProtobufContiguousBytes>(
        fromJSONUTF8Bytes jsonUTF8Bytes: Bytes,
        extensions: (any ExtensionMap)? = nil,
        options: JSONDecodingOptions = JSONDecodingOptions()
    ) throws -> [Self] {
        try jsonUTF8Bytes.withUnsafeBytes { json in
            do throws(MessageError) {
                return try array(fromJSONUTF8Bytes: json, partial: true, options: options.options(extensions))
            } catch {
                throw error.asJSONDecodingError(in: json)
            }
        }
    }
}
