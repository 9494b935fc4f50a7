public import CLifelineMessages

// The specification: https://protobuf.dev/reference/protobuf/textformat-spec
extension Message {
    /// The message in protobuf's text format, for reading and logging.
    ///
    /// Fields are in the order of their numbers, and map entries in the order of their keys. Control characters for
    /// terminals are escaped. If something cannot be printed because it is nested more than 1,000 deep, a comment tells
    /// that.
    public func textFormatString(options: TextFormatEncodingOptions = TextFormatEncodingOptions()) -> String {
        defer { extendLifetime(self) }
        return textFormat(of: _message.fields, as: Self._table, options)
    }

    public var debugDescription: String {
        let text = textFormatString()
        return text.isEmpty ? "\(Self.protoMessageName) {}" : "\(Self.protoMessageName) {\n\(text)}"
    }

    /// Reads a message from text format.
    ///
    /// - Parameter partial: Whether proto2 `required` fields may be absent.
    /// - Throws: `MessageError`, if the text is not text format, or not of this message: an unknown field, one that is
    ///   set twice, a value of the wrong kind or out of the field's range. The error tells the place.
    @inlinable public init(
        textFormatString text: String,
        partial: Bool = false,
        options: TextFormatDecodingOptions = TextFormatDecodingOptions()
    ) throws(MessageError) {
        let (storage, message) = try withContiguousBytes(of: text.utf8) { (bytes) throws(MessageError) in
            try _MessageStorage.parse(textFormat: bytes, as: Self._table, options)
        }
        self.init(
            _message: _MessageReference(storage: storage, fields: message.assumingMemoryBound(to: Self._Fields.self))
        )
        if !partial { try _requireInitialized() }
    }
}

/// How messages are written in text format.
public struct TextFormatEncodingOptions: Sendable {
    /// Whether to print everything on one line. By default, each field has its own.
    public var printInOneLine = false
    /// Whether unknown fields are printed, with their numbers and a form that the encoding allows. The types they were
    /// written with are not known. True by default.
    public var printUnknownFields = true
    /// The types of messages to print in full in a `google.protobuf.Any`.
    public var types: MessageRegistry

    /// Makes options with the default values.
    ///
    /// - Parameter types: the messages that a `google.protobuf.Any` may hold, and the extensions that are named.
    public init(types: MessageRegistry = MessageRegistry()) {
        self.types = types
    }
}

/// How messages are read from text format, and limits on it.
public struct TextFormatDecodingOptions: Sendable {
    /// How many messages may be nested; more is an error. 100 by default. Values above 1,000 count as 1,000.
    public var maximumDepth = 100
    /// Bytes that the message may take beyond three times the input and a constant; more is an error. 64 MiB by
    /// default, as in ``DecodingOptions``.
    public var memoryLimit = 64 << 20
    /// Whether to skip fields that the message does not have, and extensions. They are errors by default.
    public var ignoreUnknownFields = false
    /// The types of messages that a `google.protobuf.Any` may hold in full.
    public var types: MessageRegistry

    /// Makes options with the default values.
    ///
    /// - Parameter types: the messages that a `google.protobuf.Any` may hold, and the extensions that text may name.
    public init(types: MessageRegistry = MessageRegistry()) {
        self.types = types
    }
}

// MARK: - Printing

func textFormat(
    of message: UnsafeRawPointer,
    as table: UnsafePointer<_MessageTable>,
    _ options: TextFormatEncodingOptions
) -> String {
    var text = LifelineText()
    lifeline_text_init(&text, nil, 0)
    defer { lifeline_text_destroy(&text) }
    var failure = LifelineFailure()
    let isPrinted = options.types.withCTypes { types in
        var options = LifelineTextPrintOptions(
            write_double: { writeShortest($0, to: $1) },
            write_float: { writeShortest($0, to: $1) },
            types: types,
            // The highest limit of decoding: everything that was decoded can be printed.
            maximum_depth: 1_000,
            in_one_line: options.printInOneLine,
            unknown_fields: options.printUnknownFields
        )
        return lifeline_text_print(table, message, &options, &text, &failure)
    }
    let printed = String(decoding: UnsafeBufferPointer(start: text.memory, count: text.count), as: UTF8.self)
    if isPrinted { return printed }
    let comment = "# The rest is left out. \(MessageError(failure, in: .text, isPrinting: true).message)"
    return printed + (options.printInOneLine ? " \(comment)" : "\n\(comment)\n")
}

extension String {
    /// A quoted literal of text format, on one line. Text keeps its letters. Characters that control a terminal, end
    /// the line or change the direction of reading are escaped in octal, byte by byte, which every parser of text
    /// format reads.
    package var textFormatLiteral: String {
        var (string, text) = (self, LifelineText())
        lifeline_text_init(&text, nil, 0)
        defer { lifeline_text_destroy(&text) }
        string.withUTF8 { _ = lifeline_text_append_literal(&text, $0.baseAddress, $0.count, true) }
        return String(decoding: UnsafeBufferPointer(start: text.memory, count: text.count), as: UTF8.self)
    }
}

// MARK: - Parsing

extension _MessageStorage {
    @usableFromInline static func parse(
        textFormat bytes: UnsafeRawBufferPointer,
        as table: UnsafePointer<_MessageTable>,
        _ options: TextFormatDecodingOptions
    ) throws(MessageError) -> (_MessageStorage, UnsafeMutableRawPointer) {
        guard bytes.count <= Int(Int32.max) else { throw MessageError(tooLarge: table) }
        var budget = byteBudget(forTextOf: bytes.count, limit: options.memoryLimit)
        // About half of text is names and punctuation, which take no memory.
        return try created(as: table, expecting: min(bytes.count / 2, 4_096), in: .text, within: &budget) {
            arena,
            message,
            failure in
            options.types.withCTypes { types in
                var options = LifelineTextParseOptions(
                    types: types,
                    maximum_depth: UInt32(clamping: max(0, min(options.maximumDepth, 1_000))),
                    ignore_unknown_fields: options.ignoreUnknownFields
                )
                return lifeline_text_parse(table, message, bytes.baseAddress, bytes.count, arena, &options, &failure)
            }
        }
    }

    /// How many bytes the messages in a text of this length may take.
    static func byteBudget(forTextOf byteCount: Int, limit: Int) -> Int {
        // The sum does not overflow, and no machine has so much memory.
        min(max(0, limit), 1 << 40) + 3 * byteCount + 4_096
    }

    /// A new storage with the message that `parse` reads.
    ///
    /// - Parameters:
    ///   - byteCount: how many bytes the message probably takes beside its struct.
    ///   - budget: how many bytes it may take. Is lowered by the bytes it takes.
    static func created(
        as table: UnsafePointer<_MessageTable>,
        expecting byteCount: Int,
        in format: TextualFormat,
        within budget: inout Int,
        _ parse: (UnsafeMutablePointer<LifelineArena>, UnsafeMutableRawPointer, inout LifelineFailure) -> Bool
    ) throws(MessageError) -> (_MessageStorage, UnsafeMutableRawPointer) {
        let size = Int(table.pointee.size) + byteCount
        budget -= size + overhead
        var failure = LifelineFailure()
        (failure.status, failure.message) = (LIFELINE_OUT_OF_MEMORY, table)
        if budget < 0 { throw MessageError(failure, in: format) }
        let storage = _MessageStorage.create(byteCount: size)
        let arena = storage.arena
        arena.pointee.budget = lifeline_arena_budget(budget)
        guard let message = lifeline_message_create(table, arena), parse(arena, message, &failure) else {
            throw MessageError(failure, in: format)
        }
        let blocks = lifeline_arena_block_bytes(arena)
        budget -= blocks
        arena.pointee.budget = _MessageStorage.allowance(forSize: blocks)
        return (storage, message)
    }
}
