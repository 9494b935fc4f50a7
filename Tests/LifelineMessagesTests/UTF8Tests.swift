import LifelineMessages
import LifelineTestSupport
import TestProtos
import Testing

/// The decoder and Swift accept the same UTF-8.
@Suite(.timeLimit(.minutes(5))) struct UTF8Tests {
    /// A message with one string, whose bytes are overwritten repeatedly, because building messages would take longer.
    private struct Input {
        private var bytes: [UInt8]
        private let size: Int

        /// The string is `background`, which has less than 128 bytes.
        init(_ background: [UInt8]) {
            precondition(background.count < 128)
            size = background.count
            bytes = [0x72, UInt8(size)] + background
        }

        /// Whether the decoder accepts the string after `part` is written over it at `position`.
        mutating func isAccepted(_ part: [UInt8], at position: Int) -> Bool {
            let range = (2 + position)..<(2 + position + part.count)
            let old = bytes[range]
            bytes.replaceSubrange(range, with: part)
            defer { bytes.replaceSubrange(range, with: old) }
            return Self.isAccepted(bytes)
        }

        static func isAccepted(_ bytes: [UInt8]) -> Bool {
            do throws(MessageError) {
                _ = try Test_Scalars_Proto3_Singular(serializedBytes: bytes)
                return true
            } catch {
                #expect(error.code == .invalidUTF8)
                return false
            }
        }
    }

    /// Hashing and comparing take several times as long if a String does not know it.
    @Test func stringsKnowWhetherTheyAreASCII() throws {
        for (text, isASCII) in [("a text of more than fifteen bytes", true), ("ein Text, der kürzer wäre", false)] {
            let message = try Test_Scalars_Proto3_Singular(serializedBytes: [0x72, UInt8(text.utf8.count)] + text.utf8)
            let read = message.aString
            #expect(read == text)
            #expect(read.utf8Span.isKnownASCII == isASCII)
        }
    }

    private func isValid(_ bytes: [UInt8]) -> Bool { String(validating: bytes, as: UTF8.self) != nil }

    private func isAccepted(_ string: [UInt8]) -> Bool {
        var length: [UInt8] = []
        var rest = string.count
        while rest >= 128 {
            length.append(UInt8(rest % 128 + 128))
            rest /= 128
        }
        return Input.isAccepted([0x72] + length + [UInt8(rest)] + string)
    }

    // The limits of the rules for well-formed UTF-8 (Unicode 15, table 3-7).
    private static let firstBytes: [UInt8] = [
        0x00, 0x7F, 0x80, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4,
        0xF5, 0xF7, 0xF8, 0xFB, 0xFC, 0xFE, 0xFF,
    ]
    private static let laterBytes: [UInt8] = [0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC2, 0xFF]

    private static let threeBytes: [[UInt8]] = firstBytes.flatMap { first in
        laterBytes.flatMap { second in laterBytes.map { third in [first, second, third] } }
    }
    private static let fourBytes: [[UInt8]] = threeBytes.filter { $0[0] >= 0xE0 }.flatMap { three in
        [0x7F, 0x80, 0xBF, 0xC0].map { three + [$0] }
    }

    @Test func everyByte() {
        var input = Input([UInt8](repeating: 0x61, count: 41))
        for byte in UInt8.min...UInt8.max {
            #expect(isAccepted([byte]) == (byte < 0x80))
            for position in 0...40 { #expect(input.isAccepted([byte], at: position) == (byte < 0x80)) }
        }
    }

    @Test func everySequenceOfTwoBytes() {
        var acceptedCount = 0
        var inputs = [14, 15, 16].map { ($0, Input([UInt8](repeating: 0x61, count: 40))) }
        for first in UInt8.min...UInt8.max {
            for second in UInt8.min...UInt8.max {
                let bytes = [first, second]
                let valid = isValid(bytes)
                #expect(isAccepted(bytes) == valid, "\(bytes)")
                if valid { acceptedCount += 1 }
                guard first >= 0x80 || second >= 0x80 else { continue }
                for index in inputs.indices {
                    #expect(inputs[index].1.isAccepted(bytes, at: inputs[index].0) == valid, "\(bytes)")
                }
            }
        }
        #expect(acceptedCount == 128 * 128 + 30 * 64)
    }

    /// Text of ASCII, and of characters of two, three and four bytes: the sequence stands between whole characters.
    @Test(arguments: ["a", "é", "€", "😀"]) func boundarySequencesAtEveryPosition(character: String) {
        let width = character.utf8.count
        let background = [UInt8](String(repeating: character, count: 60 / width).utf8)
        var input = Input(background)
        for sequence in Self.threeBytes + Self.fourBytes {
            let valid = isValid(sequence)
            // Written over whole characters, so that the rest of the text stays valid.
            let padded = sequence + [UInt8](repeating: 0x61, count: (width - sequence.count % width) % width)
            for position in stride(from: 0, through: 40, by: width) {
                let accepted = input.isAccepted(padded, at: position)
                if accepted != valid { Issue.record("\(sequence) at \(position): accepted is \(accepted)") }
            }
        }
    }

    /// The same at the end of the text, where memory continues but the text does not.
    @Test func boundarySequencesAtTheEnd() {
        for count in 0...40 {
            let text = [UInt8](repeating: 0x61, count: count)
            for sequence in Self.threeBytes {
                let accepted = isAccepted(text + sequence)
                if accepted != isValid(sequence) { Issue.record("\(sequence) behind \(count)") }
            }
            for whole in ["é", "€", "\u{800}", "😀", "\u{10FFFF}"] {
                let bytes = Array(whole.utf8)
                for cut in 1..<bytes.count {
                    #expect(!isAccepted(text + bytes.prefix(cut)), "cut \(bytes) behind \(count)")
                    #expect(!isAccepted(text + bytes.dropFirst(cut)), "\(bytes) without its start, behind \(count)")
                    // The next field would complete the sequence, but does not belong to the string.
                    let message = [0x72, UInt8(count + cut)] + text + bytes
                    #expect((try? Test_Scalars_Proto3_Singular(serializedBytes: message)) == nil)
                }
                #expect(isAccepted(text + bytes))
            }
        }
    }

    @Test func theEndsOfWhatUnicodeHas() {
        for value: UInt32 in [0, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFD, 0xFFFF, 0x1_0000, 0x10_FFFF] {
            let text = Unicode.Scalar(value).map { String(Character($0)) } ?? ""
            for count in 0...40 { #expect(isAccepted([UInt8](repeating: 0x61, count: count) + Array(text.utf8))) }
        }
        let malformed: [[UInt8]] = [
            [0xC0, 0x80], [0xC1, 0xBF], [0xE0, 0x80, 0x80], [0xE0, 0x9F, 0xBF], [0xF0, 0x80, 0x80, 0x80],
            [0xF0, 0x8F, 0xBF, 0xBF], [0xED, 0xA0, 0x80], [0xED, 0xAF, 0xBF], [0xED, 0xB0, 0x80], [0xED, 0xBF, 0xBF],
            [0xED, 0xA0, 0xBD, 0xED, 0xB8, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80],
            [0xF8, 0x88, 0x80, 0x80, 0x80], [0xFC, 0x84, 0x80, 0x80, 0x80, 0x80], [0xFE], [0xFF],
        ]
        for bytes in malformed {
            for count in 0...40 { #expect(!isAccepted([UInt8](repeating: 0x61, count: count) + bytes)) }
        }
    }

    @Test func randomText() {
        var generator = SeededGenerator(seed: 8)
        let alphabet = ["a", "\0", "~", "é", "\u{7FF}", "€", "\u{FFFF}", "\u{D7FF}", "😀", "\u{10FFFF}"].map {
            Array($0.utf8)
        }
        var (acceptedCount, refusedCount) = (0, 0)
        for _ in 0..<30_000 {
            var bytes: [UInt8] = []
            for _ in 0..<Int.random(in: 0...80, using: &generator) {
                bytes += alphabet[.random(in: 0..<alphabet.count, using: &generator)]
            }
            if Bool.random(using: &generator), !bytes.isEmpty {
                let position = Int.random(in: 0..<bytes.count, using: &generator)
                switch Int.random(in: 0..<3, using: &generator) {
                case 0: bytes[position] = .random(in: 0...255, using: &generator)
                case 1: bytes.remove(at: position)
                default: bytes.removeLast(Int.random(in: 1...min(3, bytes.count), using: &generator))
                }
            }
            let valid = isValid(bytes)
            if isAccepted(bytes) != valid { Issue.record("\(bytes)") }
            if valid { acceptedCount += 1 } else { refusedCount += 1 }
        }
        #expect(acceptedCount > 5_000 && refusedCount > 5_000)
    }

    @Test(arguments: [1_000, 4_096, 100_000]) func longText(count: Int) {
        var generator = SeededGenerator(seed: 9)
        let bytes = [UInt8]((0..<(count / 10)).map { _ in "abcé€😀" }.joined().utf8)
        #expect(isAccepted(bytes))
        for _ in 0..<50 {
            var damaged = bytes
            damaged[.random(in: 0..<bytes.count, using: &generator)] = .random(in: 0...255, using: &generator)
            #expect(isAccepted(damaged) == isValid(damaged))
        }
    }
}
