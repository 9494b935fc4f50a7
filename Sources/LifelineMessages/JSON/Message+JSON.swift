public import CLifelineMessages

// ProtoJSON: https://protobuf.dev/programming-guides/json
extension Message {
    /// The message as JSON, in one line.
    ///
    /// Fields are in the order of their numbers, and map entries in the order of their keys. Unknown fields are left
    /// out: JSON has no form for them.
    ///
    /// - Throws: `MessageError` if JSON has no form for the content: a time or a duration out of its range, an infinite
    ///   number in a `google.protobuf.Value`, text that is not UTF-8, messages nested more than 1,000 deep, or a
    ///   `google.protobuf.Any` with a message whose type is not in `options`, with bytes that are not of its type, or
    ///   with more than 64 MiB or 100 nested others.
    @inlinable public func jsonString(
        options: JSONEncodingOptions = JSONEncodingOptions()
    ) throws(MessageError) -> String {
        defer { extendLifetime(self) }
        return try jsonText(of: _message.fields, as: Self._table, options)
    }

    /// The message as JSON, in one line, in UTF-8. See ``jsonString(options:)``.
    @inlinable public func jsonUTF8Bytes(
        options: JSONEncodingOptions = JSONEncodingOptions()
    ) throws(MessageError) -> [UInt8] {
        defer { extendLifetime(self) }
        return try jsonBytes(of: _message.fields, as: Self._table, options)
    }

    /// Reads a message from JSON.
    ///
    /// - Parameter partial: Whether proto2 `required` fields may be absent.
    /// - Throws: `MessageError`, if the text is not JSON, or not of this message: an unknown or repeated key, a value
    ///   of the wrong kind or out of the field's range. The error tells the place.
    @inlinable public init(
        jsonString: String,
        partial: Bool = false,
        options: JSONDecodingOptions = JSONDecodingOptions()
    ) throws(MessageError) {
        try self.init(jsonUTF8Bytes: jsonString.utf8, partial: partial, options: options)
    }

    /// Reads a message from JSON in UTF-8. See ``init(jsonString:partial:options:)``.
    @inlinable public init(
        jsonUTF8Bytes bytes: some Sequence<UInt8>,
        partial: Bool = false,
        options: JSONDecodingOptions = JSONDecodingOptions()
    ) throws(MessageError) {
        let (storage, message) = try withContiguousBytes(of: bytes) { (bytes) throws(MessageError) in
            try _MessageStorage.parse(json: bytes, as: Self._table, options)
        }
        self.init(
            _message: _MessageReference(storage: storage, fields: message.assumingMemoryBound(to: _Fields.self))
        )
        if !partial { try _requireInitialized() }
    }
}

// MARK: - Arrays and lines

extension Message {
    /// The messages as a JSON array, in one line. See ``jsonString(options:)-method``.
    public static func jsonString(
        from messages: some Collection<Self>,
        options: JSONEncodingOptions = JSONEncodingOptions()
    ) throws(MessageError) -> String {
        try printed(messages, options, start: "[", separator: ",", end: "]") { String(decoding: $0, as: UTF8.self) }
    }

    /// The messages as a JSON array, in one line, in UTF-8.
    public static func jsonUTF8Bytes(
        from messages: some Collection<Self>,
        options: JSONEncodingOptions = JSONEncodingOptions()
    ) throws(MessageError) -> [UInt8] {
        try printed(messages, options, start: "[", separator: ",", end: "]") { [UInt8]($0) }
    }

    /// The messages as JSON lines: each on its own line, which ends with a line break.
    public static func jsonLines(
        from messages: some Collection<Self>,
        options: JSONEncodingOptions = JSONEncodingOptions()
    ) throws(MessageError) -> String {
        try printed(messages, options, start: "", separator: "\n", end: messages.isEmpty ? "" : "\n") {
            String(decoding: $0, as: UTF8.self)
        }
    }

    private static func printed<Result>(
        _ messages: some Collection<Self>,
        _ options: JSONEncodingOptions,
        start: StaticString,
        separator: StaticString,
        end: StaticString,
        result: (UnsafeBufferPointer<UInt8>) -> Result
    ) throws(MessageError) -> Result {
        try JSONText.printed(options) { text in
            guard text.append(start) else { return false }
            var isFirst = true
            for message in messages {
                defer { extendLifetime(message) }
                guard isFirst || text.append(separator) else { return false }
                isFirst = false
                guard text.print(message._message.fields, as: _table) else { return false }
            }
            return text.append(end)
        } result: {
            result($0)
        }
    }

    /// Reads the messages of a JSON array. Throws as ``init(jsonString:partial:options:)`` does.
    public static func array(
        fromJSONString text: String,
        partial: Bool = false,
        options: JSONDecodingOptions = JSONDecodingOptions()
    ) throws(MessageError) -> [Self] {
        try array(fromJSONUTF8Bytes: text.utf8, partial: partial, options: options)
    }

    /// Reads the messages of a JSON array in UTF-8. Throws as ``init(jsonString:partial:options:)`` does.
    public static func array(
        fromJSONUTF8Bytes bytes: some Sequence<UInt8>,
        partial: Bool = false,
        options: JSONDecodingOptions = JSONDecodingOptions()
    ) throws(MessageError) -> [Self] {
        try withContiguousBytes(of: bytes) { (bytes) throws(MessageError) in
            try JSONReader.read(bytes, as: _table) { (reader) throws(MessageError) in
                var messages: [Self] = []
                try reader.expect("[")
                if !reader.take("]") {
                    repeat {
                        messages.append(try reader.oneOfMany(options, partial: partial))
                    } while reader.take(",")
                    try reader.expect("]")
                }
                return messages
            }
        }
    }

    /// Reads JSON lines, or any other sequence of messages in JSON. Throws as ``init(jsonString:partial:options:)``
    /// does.
    public static func array(
        fromJSONLines text: String,
        partial: Bool = false,
        options: JSONDecodingOptions = JSONDecodingOptions()
    ) throws(MessageError) -> [Self] {
        try withContiguousBytes(of: text.utf8) { (bytes) throws(MessageError) in
            try JSONReader.read(bytes, as: _table) { (reader) throws(MessageError) in
                var messages: [Self] = []
                while !reader.isAtEnd { messages.append(try reader.oneOfMany(options, partial: partial)) }
                return messages
            }
        }
    }
}

// MARK: - Printing

/// The implementation for every type of message.
@usableFromInline func jsonText(
    of message: UnsafeRawPointer,
    as table: UnsafePointer<_MessageTable>,
    _ options: JSONEncodingOptions
) throws(MessageError) -> String {
    try JSONText.printed(options) {
        $0.print(message, as: table)
    } result: {
        String(decoding: $0, as: UTF8.self)
    }
}

@usableFromInline func jsonBytes(
    of message: UnsafeRawPointer,
    as table: UnsafePointer<_MessageTable>,
    _ options: JSONEncodingOptions
) throws(MessageError) -> [UInt8] {
    try JSONText.printed(options) {
        $0.print(message, as: table)
    } result: {
        [UInt8]($0)
    }
}

/// JSON during printing.
private struct JSONText: ~Copyable {
    /// Most messages fit. It is also the most that Swift allocates on the stack for a temporary buffer.
    private static let stackByteCount = 1_024

    private var text = LifelineText()
    private let options: UnsafePointer<LifelineJSONPrintOptions>
    private var failure = LifelineFailure()

    private init(_ options: UnsafePointer<LifelineJSONPrintOptions>, in memory: UnsafeMutableRawBufferPointer) {
        self.options = options
        lifeline_text_init(&text, memory.baseAddress, memory.count)
    }

    deinit {
        var text = text
        lifeline_text_destroy(&text)
    }

    /// Returns the result of `result` for the text that `body` prints.
    ///
    /// - Parameter body: returns false if something cannot be printed.
    static func printed<Result>(
        _ options: JSONEncodingOptions,
        _ body: (inout JSONText) -> Bool,
        result: (UnsafeBufferPointer<UInt8>) -> Result
    ) throws(MessageError) -> Result {
        let outcome: Swift.Result<Result, MessageError> = options.withCOptions { options in
            withUnsafeTemporaryAllocation(byteCount: stackByteCount, alignment: 8) { memory in
                var text = JSONText(options, in: memory)
                guard body(&text) else { return .failure(MessageError(text.failure, in: .json, isPrinting: true)) }
                return .success(result(UnsafeBufferPointer(start: text.text.memory, count: text.text.count)))
            }
        }
        return try outcome.get()
    }

    mutating func print(_ message: UnsafeRawPointer, as table: UnsafePointer<_MessageTable>) -> Bool {
        lifeline_json_print(table, message, options, &text, &failure)
    }

    mutating func append(_ string: StaticString) -> Bool {
        if lifeline_text_append(&text, string.utf8Start, string.utf8CodeUnitCount) { return true }
        failure.status = LIFELINE_OUT_OF_MEMORY
        return false
    }
}

// MARK: - Parsing

extension _MessageStorage {
    /// The implementation for every type of message.
    @usableFromInline static func parse(
        json bytes: UnsafeRawBufferPointer,
        as table: UnsafePointer<_MessageTable>,
        _ options: JSONDecodingOptions
    ) throws(MessageError) -> (_MessageStorage, UnsafeMutableRawPointer) {
        try JSONReader.read(bytes, as: table) { (reader) throws(MessageError) in
            try reader.messageInStorage(options)
        }
    }
}

/// Reads messages from JSON, one after another.
private struct JSONReader {
    private let bytes: UnsafeRawBufferPointer
    private let table: UnsafePointer<_MessageTable>
    private var offset = 0
    /// How many bytes the messages may take; nil before the first one.
    private var budget: Int?

    private init(_ bytes: UnsafeRawBufferPointer, as table: UnsafePointer<_MessageTable>) {
        self.bytes = bytes
        self.table = table
    }

    /// Returns what `body` reads, which must be all of the text.
    ///
    /// - Parameter table: the table of the messages.
    static func read<Result>(
        _ bytes: UnsafeRawBufferPointer,
        as table: UnsafePointer<_MessageTable>,
        _ body: (inout JSONReader) throws(MessageError) -> Result
    ) throws(MessageError) -> Result {
        guard bytes.count <= Int(Int32.max) else { throw MessageError(tooLarge: table) }
        var reader = JSONReader(bytes, as: table)
        do throws(MessageError) {
            let result = try body(&reader)
            if !reader.isAtEnd { throw reader.error(LIFELINE_SYNTAX) }
            return result
        } catch {
            // Strings are checked when they are read, and everything else is ASCII. So this check was not made before.
            if lifeline_json_is_utf8(bytes.baseAddress, bytes.count) { throw error }
            throw JSONReader(bytes, as: table).error(LIFELINE_INVALID_UTF8)
        }
    }

    /// The next message of several.
    mutating func oneOfMany<M: Message>(
        _ options: JSONDecodingOptions,
        partial: Bool
    ) throws(MessageError) -> M {
        let (storage, message) = try messageInStorage(options, isOneOfMany: true)
        let fields = message.assumingMemoryBound(to: M._Fields.self)
        let result = M(_message: _MessageReference(storage: storage, fields: fields))
        if !partial { try result._requireInitialized() }
        return result
    }

    mutating func messageInStorage(
        _ options: JSONDecodingOptions,
        isOneOfMany: Bool = false
    ) throws(MessageError) -> (_MessageStorage, UnsafeMutableRawPointer) {
        let bytes = bytes
        var offset = offset
        var budget = budget ?? _MessageStorage.byteBudget(forTextOf: bytes.count, limit: options.memoryLimit)
        defer { (self.offset, self.budget) = (offset, budget) }
        // Names and punctuation take no memory, but structs take about as much. The size of one of many is unknown.
        let expected = isOneOfMany ? 64 : min(bytes.count, 4_096)
        return try _MessageStorage.created(as: table, expecting: expected, in: .json, within: &budget) {
            arena,
            message,
            failure in
            options.withCOptions {
                lifeline_json_parse(table, message, bytes.baseAddress, bytes.count, &offset, arena, $0, &failure)
            }
        }
    }

    /// Whether only spaces are left.
    var isAtEnd: Bool {
        mutating get {
            skipSpace()
            return offset == bytes.count
        }
    }

    mutating func take(_ character: Unicode.Scalar) -> Bool {
        skipSpace()
        guard offset < bytes.count, bytes[offset] == UInt8(ascii: character) else { return false }
        offset += 1
        return true
    }

    mutating func expect(_ character: Unicode.Scalar) throws(MessageError) {
        if !take(character) { throw error(LIFELINE_SYNTAX) }
    }

    private mutating func skipSpace() {
        while offset < bytes.count, isJSONSpace(bytes[offset]) { offset += 1 }
    }

    private func error(_ status: LifelineStatus) -> MessageError {
        var failure = LifelineFailure()
        (failure.status, failure.offset, failure.message) = (status, offset, table)
        return MessageError(failure, in: .json)
    }
}

private func isJSONSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 }
