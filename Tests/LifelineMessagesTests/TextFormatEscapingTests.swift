import LifelineMessages
import LifelineProtos
import LifelineWellKnownTypes
import Testing

/// Text format prints a peer's text without terminal control characters, and completely for a parser.
@Suite struct TextFormatEscapingTests {
    private typealias ChatMessage = Sample_Chat_V1_ChatMessage

    @Test func controlCharactersAreEscaped() {
        let text = "a\u{9b}2J\u{85}\u{2028}\u{2029}\u{202e}b\u{2066}\u{200f}\u{61c}\u{7f}é👩‍🚀"
        let literal =
            #"a\302\2332J\302\205\342\200\250\342\200\251\342\200\256b\342\201\246\342\200\217\330\234\177é👩‍🚀"#
        #expect(ChatMessage.with { $0.text = text }.textFormatString() == "text: \"\(literal)\"\n")
        let headers = ChatMessage.with { $0.headers["\u{9b}"] = "\u{202e}" }.textFormatString()
        #expect(headers.contains(#"key: "\302\233""#) && headers.contains(#"value: "\342\200\256""#))
    }

    /// C1 controls, the separators of lines and paragraphs, and the marks, embeddings, overrides and isolates of
    /// bidirectional text.
    private static func isObeyed(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x80...0x9F, 0x61C, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }

    @Test func everyTextIsReadBack() throws {
        let scalars = (0...0x10FFFF as ClosedRange<UInt32>).compactMap(Unicode.Scalar.init)
        for start in stride(from: 0, to: scalars.count, by: 997) {
            let text = String(String.UnicodeScalarView(scalars[start..<min(start + 997, scalars.count)]))
            let line = ChatMessage.with { $0.text = text }.textFormatString()
            #expect(bytes(ofLiteralIn: line) == Array(text.utf8))
            #expect(try ChatMessage(textFormatString: line).text == text)
            let isSafe = line.dropLast().unicodeScalars.allSatisfy { $0.isASCII || !Self.isObeyed($0) }
            #expect(isSafe && line.dropLast().utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F })
        }
    }

    /// Reads text like a parser of text format: escapes with one letter, or three octal digits.
    private func bytes(ofLiteralIn line: String) -> [UInt8] {
        var rest = line.utf8.drop { $0 != UInt8(ascii: "\"") }.dropFirst().dropLast(2)
        var bytes: [UInt8] = []
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\"), let escape = rest.popFirst() else {
                bytes.append(byte)
                continue
            }
            switch Unicode.Scalar(escape) {
            case "n": bytes.append(0x0A)
            case "r": bytes.append(0x0D)
            case "t": bytes.append(0x09)
            case "\"", "\\": bytes.append(escape)
            default:
                let digits = [escape] + rest.prefix(2)
                rest = rest.dropFirst(2)
                bytes.append(digits.reduce(0) { $0 << 3 | ($1 - 0x30) })
            }
        }
        return bytes
    }

    @Test func anErrorQuotesAForeignType() {
        let error = #expect(throws: MessageError.self) {
            try ChatMessage(unpackingAny: .with { $0.typeURL = "x/\u{1b}[2J\u{202e}" })
        }
        #expect(error?.message.contains(#""x/\033[2J\342\200\256""#) == true)
    }
}
