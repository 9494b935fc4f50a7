internal import ArgumentParser
internal import FoundationEssentials
internal import Glibc
internal import LifelineCore
internal import LifelineMessages
internal import LifelineReflection

/// The formats for passed messages.
enum TrafficFormat: String, CaseIterable, ExpressibleByArgument {
    /// For people: `14:03:12.123 #1 → {"text":"Hello"}`.
    case lines
    /// One JSON object on each line.
    case json
}

/// The types of the messages in both directions.
struct TrafficTypes: ParsableArguments {
    @Option(help: ArgumentHelp("The type of the messages to the server.", valueName: "name"))
    var type: String?

    @Option(help: ArgumentHelp("The type of the messages from the server. Default: that of --type.", valueName: "name"))
    var replyType: String?

    @OptionGroup(title: "Schema") var schema: SchemaOptions

    @OptionGroup var json: JSONFlags

    func validate() throws {
        if type == nil, replyType != nil { throw ValidationError("--reply-type goes with --type.") }
        if type == nil, json.allFields || json.protoNames {
            throw ValidationError("--all-fields and --proto-names go with --type.")
        }
    }

    /// - Parameters:
    ///   - format: nil for the format that suits the output.
    ///   - limit: the most bytes of a message.
    func text(_ format: TrafficFormat?, to output: OutputFile, limit: Int) throws(CommandFailure) -> TrafficText {
        let pool = try schema.load()
        let format = format ?? (output.isTerminal ? .lines : .json)
        func encoder(_ name: String?) throws(CommandFailure) -> MessageTextEncoder? {
            guard let (type, pool) = try pool.messageType(named: name) else { return nil }
            var encoder = MessageTextEncoder(type, .json, in: pool, json: json, limit: limit)
            // Lines are for people, who may show them on a terminal later.
            encoder.escapesControls = format == .lines || output.isTerminal
            return encoder
        }
        return TrafficText(
            format: format,
            toServer: try encoder(type),
            toClient: try encoder(replyType ?? type),
            fieldNumbers: .fieldNumbers(limit: limit, inOneLine: true)
        )
    }
}

/// Makes text from passed messages, in lines or as JSON.
struct TrafficText {
    /// A message that cannot be decoded may be long, and is not text.
    private static let maximumShownByteCount = 64

    let format: TrafficFormat
    /// Nil if the type is not known.
    let toServer: MessageTextEncoder?
    let toClient: MessageTextEncoder?
    let fieldNumbers: MessageTextEncoder

    /// Appends a line.
    ///
    /// - Parameter clock: the time of day, if known. It is for people; programs get the time of the message.
    func append(_ passed: PassedMessage, at clock: timespec?, to output: inout [UInt8]) throws {
        let encoder = passed.direction == .toServer ? toServer : toClient
        let result = passed.frame.withUnsafeBytes { content in
            Result { () throws(MessageError) in try (encoder ?? fieldNumbers).text(of: content) }
        }
        switch format {
        case .lines:
            let time = clock?.clockTime ?? decimal(passed.time, places: 6)
            output += "\(time) #\(passed.connection) \(passed.direction.arrow) ".utf8
            switch result {
            case .success(let text): output += text
            case .failure(let error): output += Self.words(for: error, of: passed.frame).utf8
            }
        case .json:
            switch result {
            case .success(let text) where encoder != nil:
                // The message is already JSON.
                output += try jsonLine(TrafficLine(passed)).dropLast()
                output += #","message":"#.utf8
                output += text
                output.append(UInt8(ascii: "}"))
            case .success(let text):
                output += try jsonLine(TrafficLine(passed, fields: String(decoding: text, as: UTF8.self)))
            case .failure(let error):
                output += try jsonLine(TrafficLine(passed, error: error.words.escaped(), frame: passed.frame))
            }
        }
        output.append(UInt8(ascii: "\n"))
    }

    private static func words(for error: MessageError, of bytes: Data) -> String {
        let shown = bytes.prefix(maximumShownByteCount).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }
        let rest = bytes.count > shown.count ? " …" : ""
        let count = bytes.count == 1 ? "1 byte" : "\(bytes.count) bytes"
        return "cannot be decoded: \(error.words.escaped()) \(count): \(shown.joined(separator: " "))\(rest)"
    }
}

/// A JSON line about a message that passed.
private struct TrafficLine: Encodable {
    let connection: Int
    let direction: TrafficDirection
    let time: Double
    /// The reason why the message cannot be decoded.
    let error: String?
    /// The message in text format with field numbers, if its type is not known.
    let fields: String?
    /// The message, if it cannot be decoded.
    let frame: Data?

    init(_ passed: PassedMessage, fields: String? = nil, error: String? = nil, frame: Data? = nil) {
        (connection, direction, time) = (passed.connection, passed.direction, passed.time)
        (self.fields, self.error, self.frame) = (fields, error, frame)
    }
}
