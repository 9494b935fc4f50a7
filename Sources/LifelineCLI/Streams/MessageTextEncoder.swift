internal import ArgumentParser
internal import Glibc
internal import LifelineCore
internal import LifelineMessages
internal import LifelineReflection
internal import LifelineWellKnownTypes

/// The text forms of messages for people and programs.
enum TextForm: String, CaseIterable, ExpressibleByArgument {
    /// One object on each line.
    case json
    /// protobuf's text format; a line with `---` follows each message.
    case text
}

/// Writes encoded messages of one type as text.
struct MessageTextEncoder {
    private enum Form {
        case json(JSONEncodingOptions)
        case text(TextFormatEncodingOptions)
    }

    /// The line after a message in text format.
    static let separator = "---"

    private let form: Form
    private let decoder: TypedDecoder
    /// Whether to escape characters that could control a terminal. Default: whether standard output is a terminal.
    var escapesControls = isatty(STDOUT_FILENO) == 1

    private init(_ type: MessageDescriptor, _ form: Form, limit: Int) {
        self.form = form
        decoder = TypedDecoder(type, limit: limit)
    }

    /// - Parameters:
    ///   - pool: the types of extensions and of the content of `google.protobuf.Any`.
    ///   - limit: the most bytes of an encoded message.
    init(_ type: MessageDescriptor, _ form: TextForm, in pool: DescriptorPool, json: JSONFlags, limit: Int) {
        let types = MessageRegistry(pool)
        switch form {
        case .json: self.init(type, .json(json.options(types)), limit: limit)
        case .text: self.init(type, .text(TextFormatEncodingOptions(types: types)), limit: limit)
        }
    }

    /// Returns an encoder for messages of an unknown type: text format with field numbers.
    static func fieldNumbers(limit: Int, inOneLine: Bool = false) -> MessageTextEncoder {
        // All fields are unknown to an empty message.
        let type = MessageDescriptor(Google_Protobuf_Empty.self)
        var options = TextFormatEncodingOptions()
        options.printInOneLine = inOneLine
        return MessageTextEncoder(type, .text(options), limit: limit)
    }

    /// Decodes a message, whose `required` fields may be absent, and appends its text.
    func append(_ frame: UnsafeRawBufferPointer, to output: inout [UInt8]) throws(MessageError) {
        output += try text(of: frame)
        switch form {
        case .json: output.append(UInt8(ascii: "\n"))
        case .text: output += "\(Self.separator)\n".utf8
        }
    }

    /// Returns the text of a message, without the separator after it.
    func text(of frame: UnsafeRawBufferPointer) throws(MessageError) -> [UInt8] {
        let message = try decoder.message(frame)
        switch form {
        case .json(let options):
            let json = try message.jsonUTF8Bytes(options: options)
            return escapesControls ? json.escapedControls : json
        case .text(let options):
            return Array(message.textFormatString(options: options).utf8)
        }
    }
}

/// Options of JSON that is written.
struct JSONFlags: ParsableArguments {
    @Flag(help: "In JSON, print fields that are not set, too, with their defaults.")
    var allFields = false

    @Flag(help: "In JSON, print the names of the .proto file: user_id instead of userId.")
    var protoNames = false

    func options(_ types: MessageRegistry) -> JSONEncodingOptions {
        var options = JSONEncodingOptions(types: types)
        options.alwaysPrintFieldsWithNoPresence = allFields
        options.preserveProtoFieldNames = protoNames
        return options
    }
}

extension [UInt8] {
    /// The same JSON, with escapes for characters that could control a terminal. Such characters occur only in strings.
    var escapedControls: [UInt8] {
        if allSatisfy({ (0x20...0x7E).contains($0) }) { return self }
        var result: [UInt8] = []
        for scalar in String(decoding: self, as: UTF8.self).unicodeScalars {
            if !scalar.isUnsafeInLine {
                result += String(scalar).utf8
            } else {
                for unit in String(scalar).utf16 {
                    let digits = String(unit, radix: 16)
                    result += "\\u\(String(repeating: "0", count: 4 - digits.count))\(digits)".utf8
                }
            }
        }
        return result
    }
}
