import Glibc
import LifelineMessages
import LifelineProtos
import LifelineTestSupport
import TestProtos
import Testing

/// JSON at the places where the parser changes from sixteen or eight bytes at once to single bytes. All texts are at
/// the end of a page that no readable page follows, so that reading too far causes a fault.
@Suite(.timeLimit(.minutes(5))) struct JSONBoundaryTests {
    private typealias Singular = Test_Scalars_Proto3_Singular

    /// A page, and an unreadable page after it.
    private final class Page {
        private let size = Int(getpagesize())
        private let memory: UnsafeMutableRawPointer

        init() {
            memory = mmap(nil, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)!
            precondition(memory != MAP_FAILED && mprotect(memory + size, size, PROT_NONE) == 0)
        }

        deinit { munmap(memory, 2 * size) }

        /// The result of a text at the end of the page.
        func read(_ json: [UInt8], _ options: JSONDecodingOptions = JSONDecodingOptions()) -> Result<
            Singular, MessageError
        > {
            let text = UnsafeMutableRawBufferPointer(start: memory + size - json.count, count: json.count)
            text.copyBytes(from: json)
            do throws(MessageError) {
                return .success(try Singular(jsonUTF8Bytes: UnsafeRawBufferPointer(text), options: options))
            } catch {
                return .failure(error)
            }
        }

        func code(_ json: [UInt8], _ options: JSONDecodingOptions = JSONDecodingOptions()) -> MessageError.Code? {
            if case .failure(let error) = read(json, options) { error.code } else { nil }
        }

        func message(_ json: some Sequence<UInt8>) -> Singular? { try? read(Array(json)).get() }
    }

    private let page = Page()
    /// From no block of sixteen to more than two.
    private let lengths = 0...40

    // MARK: Strings

    private func stringField(_ content: some Sequence<UInt8>, behind: String = "") -> [UInt8] {
        Array(#"{"aString":""#.utf8) + content + Array("\"\(behind)}".utf8)
    }

    private func letters(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(ascii: "a") + UInt8($0 % 26) } }

    @Test func stringsOfEveryLength() {
        for length in lengths {
            let text = String(decoding: letters(length), as: UTF8.self)
            for spaces in [0, 1, 7, 15, 16, 17, 40] {
                let read = page.message(stringField(text.utf8, behind: String(repeating: " ", count: spaces)))
                #expect(read?.aString == text)
            }
            // If the end is missing, the parser must not search for it behind the text.
            #expect(page.code(stringField(text.utf8).dropLast(2)) == .malformedJSON)
        }
    }

    @Test(
        arguments: [
            (#"\n"#, "\n"), (#"\""#, "\""), (#"\\"#, "\\"), (#"\u0041"#, "A"), (#"\u20ac"#, "€"),
            (#"\ud83d\ude00"#, "😀"), ("é", "é"), ("€", "€"), ("😀", "😀"), ("\u{7f}", "\u{7f}"),
        ]
    ) func escapesAtEveryPosition(json: String, meant: String) {
        for length in lengths {
            for position in 0...length {
                let (first, last) = (letters(position), letters(length - position))
                let expected = String(decoding: first + meant.utf8 + last, as: UTF8.self)
                #expect(page.message(stringField(first + json.utf8 + last))?.aString == expected)
            }
        }
    }

    @Test(arguments: [0x00, 0x0A, 0x1F] as [UInt8]) func controlCharactersAreRefused(byte: UInt8) {
        for length in lengths {
            for position in 0...length {
                let json = stringField(letters(position) + [byte] + letters(length - position))
                guard case .failure(let error) = page.read(json) else {
                    Issue.record("accepted at \(position) of \(length)")
                    continue
                }
                #expect(error.code == .malformedJSON && error.offset == 12 + position)
            }
        }
    }

    @Test(arguments: [[0x80], [0xC3], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF5, 0x80, 0x80, 0x80]] as [[UInt8]])
    func malformedUTF8IsRefusedAtEveryPosition(sequence: [UInt8]) {
        var passingOver = JSONDecodingOptions()
        passingOver.ignoreUnknownFields = true
        for length in lengths {
            for position in 0...length {
                let text = letters(position) + sequence + letters(length - position)
                let quoted = [UInt8(ascii: "\"")] + text + [UInt8(ascii: "\"")]
                let fields: [[UInt8]] = [
                    stringField(text), Array(#"{"unknown":"#.utf8) + quoted + Array("}".utf8),
                    Array("{".utf8) + quoted + Array(":1}".utf8), Array(#"{"aBytes":"#.utf8) + quoted + Array("}".utf8),
                    Array(#"{"aColor":"#.utf8) + quoted + Array("}".utf8),
                    // Also if there is another error before it, or if it is outside of strings.
                    Array(#"{"aInt32":?,"aString":"#.utf8) + quoted + Array("}".utf8), Array("{}".utf8) + text,
                    Array(#"{"aString":"\n"#.utf8) + text + Array("\"}".utf8),
                ]
                for json in fields {
                    #expect(page.code(json) == .invalidUTF8)
                    #expect(page.code(json, passingOver) == .invalidUTF8)
                }
            }
        }
    }

    @Test func ofMessagesInAnArrayTheWholeTextIsUTF8() {
        for json in [#"[{},{"aString":"*"}]"#, #"[{"aInt32":?},"*"]"#, #"[{}]*"#, "{} {}*"] {
            let bytes = json.utf8.map { $0 == UInt8(ascii: "*") ? 0xFF : $0 }
            let error = #expect(throws: MessageError.self) { try Singular.array(fromJSONUTF8Bytes: bytes) }
            #expect(error?.code == .invalidUTF8 && error?.offset == 0)
        }
    }

    // MARK: Numbers

    @Test func integersOfEveryLength() {
        for length in 1...25 {
            for digits in [letters(length).map { $0 % 10 + 48 }, Array(repeating: 57, count: length), [49]] {
                for sign in ["", "-"] {
                    let number = sign + String(decoding: digits, as: UTF8.self)
                    let isNumber = digits[0] != 48 || digits.count == 1
                    for end in ["", " ", "                        "] {
                        for json in [#"{"aInt64":\#(number)\#(end)}"#, #"{"aInt64":"\#(number)"\#(end)}"#] {
                            #expect(page.message(json.utf8)?.aInt64 == (isNumber ? Int64(number) : nil))
                        }
                        let json = #"{"aUint64":\#(number)\#(end)}"#
                        #expect(page.message(json.utf8)?.aUint64 == (isNumber ? UInt64(number) : nil))
                        // The same numbers in another form.
                        for form in ["\(number).0", "\(number)e0", "\(number)0e-1", "\(number)0E-01"] {
                            let json = #"{"aInt64":\#(form)\#(end)}"#
                            #expect(page.message(json.utf8)?.aInt64 == (isNumber ? Int64(number) : nil))
                        }
                    }
                }
            }
        }
    }

    @Test func theLimitsOfEveryTypeOfInteger() {
        func check<Number: FixedWidthInteger>(_ field: String, _ path: KeyPath<Singular, Number>) {
            for limit in [Int128(Number.min), Int128(Number.max)] {
                for number in [limit - 1, limit, limit + 1] {
                    for json in [#"{"\#(field)":\#(number)}"#, #"{"\#(field)":"\#(number)"}"#] {
                        let expected = Number(exactly: number)
                        #expect(page.message(json.utf8)?[keyPath: path] == expected)
                        if expected == nil { #expect(page.code(Array(json.utf8)) == .valueOutOfRange) }
                    }
                }
            }
            #expect(page.message(#"{"\#(field)":-0}"#.utf8)?[keyPath: path] == 0)
        }
        check("aInt32", \.aInt32)
        check("aInt64", \.aInt64)
        check("aUint32", \.aUint32)
        check("aUint64", \.aUint64)
        check("aSint32", \.aSint32)
        check("aSint64", \.aSint64)
        check("aFixed32", \.aFixed32)
        check("aFixed64", \.aFixed64)
        check("aSfixed32", \.aSfixed32)
        check("aSfixed64", \.aSfixed64)
        #expect(page.message(#"{"aColor":2147483647}"#.utf8)?.aColor == .highest)
        #expect(page.message(#"{"aColor":-2147483648}"#.utf8)?.aColor == .lowest)
        for json in [#"{"aColor":2147483648}"#, #"{"aColor":-2147483649}"#] {
            #expect(page.code(Array(json.utf8)) == .valueOutOfRange)
        }
    }

    /// Every byte that is not a digit, after every number of digits.
    @Test func otherCharactersEndANumber() {
        let ends = (UInt8(0)...127).filter { !(48...57).contains($0) }
        for length in 1...18 {
            for end in ends {
                let number = [49] + letters(length - 1).map { $0 % 10 + 48 }
                let read = page.message(Array(#"{"aInt64":"#.utf8) + number + [end] + Array("}".utf8))
                let isSpace = [0x20, 0x0A, 0x0D, 0x09].contains(end)
                // A second bracket or a comma is refused after the number.
                let expected = isSpace ? Int64(String(decoding: number, as: UTF8.self)) : nil
                #expect(read?.aInt64 == expected)
            }
        }
    }

    // MARK: Names

    /// Fields with short names and with long ones.
    private let members = [
        ("id", #""1""#), ("from", #""2""#), ("to", #""3""#), ("text", #""4""#), ("attachments", "[]"),
        ("headers", "{}"), ("signal", "[]"), ("ttl", "5"), ("utcOffset", "-6"), ("nonce", "7"),
    ]

    private func object(_ members: some Sequence<(String, String)>, colon: String = ":") -> String {
        "{" + members.map { #""\#($0)"\#(colon)\#($1)"# }.joined(separator: ",") + "}"
    }

    @Test func namesInAnyOrder() throws {
        let expected = try Sample_Chat_V1_ChatMessage(jsonString: object(members))
        #expect(expected.id == "1" && expected.ttl == 5 && expected.utcOffset == -6 && expected.nonce == 7)
        var random = SeededGenerator(seed: 5)
        for _ in 0..<1_000 {
            let shuffled = object(members.shuffled(using: &random))
            #expect(try Sample_Chat_V1_ChatMessage(jsonString: shuffled) == expected)
        }
        for colon in [" :", ": ", "\n:\t"] {
            #expect(try Sample_Chat_V1_ChatMessage(jsonString: object(members, colon: colon)) == expected)
        }
    }

    @Test func namesThatAreAlmostThoseOfFields() {
        func check<M: Message>(_: M.Type, _ members: [(String, String)]) {
            func outcome(of members: [(String, String)]) -> MessageError.Code? {
                do throws(MessageError) {
                    _ = try M(jsonString: object(members))
                    return nil
                } catch {
                    return error.code
                }
            }
            for (index, member) in members.enumerated() {
                func outcomeWhenNamed(_ name: String) -> MessageError.Code? {
                    var changed = members
                    changed[index].0 = name
                    return outcome(of: changed)
                }
                let name = member.0
                for position in name.indices {
                    let (before, after) = (name[..<position], name[name.index(after: position)...])
                    #expect(outcomeWhenNamed(before + "~" + after) == .unknownField)
                    #expect(outcomeWhenNamed(before + "\u{0}" + after) == .malformedJSON)
                    #expect(
                        outcomeWhenNamed(before + #"\u00"# + String(name[position].asciiValue!, radix: 16) + after)
                            == nil
                    )
                }
                #expect(outcomeWhenNamed(name + "~") == .unknownField)
                #expect(outcomeWhenNamed("~" + name) == .unknownField)
                #expect(outcome(of: members + [member]) == .duplicateField)
                #expect(outcome(of: [member, member]) == .duplicateField)
            }
        }
        check(Sample_Chat_V1_ChatMessage.self, members)
        check(Test_Scalars_Proto3_Point.self, [("x", "1"), ("y", "2"), ("label", #""""#)])
        let many = [("field1", "1"), ("field99", "2"), ("beyondTwoByteTags", "3"), ("highest", #""AA==""#)]
        check(Test_Scalars_Many_ManyFields.self, many)
    }

    // MARK: Bytes

    private let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    private func bytesField(_ letters: [UInt8]) -> [UInt8] { Array(#"{"aBytes":""#.utf8) + letters + Array("\"}".utf8) }

    @Test func bytesOfEveryLengthInBothAlphabets() {
        var random = SeededGenerator(seed: 3)
        for length in 0...70 where length % 4 != 1 {
            let text = (0..<length).map { _ in alphabet.randomElement(using: &random)! }
            let ofURLs = String(decoding: text, as: UTF8.self).replacing("+", with: "-").replacing("/", with: "_")
            let padding = Array(repeating: UInt8(ascii: "="), count: (4 - length % 4) % 4)
            for letters in [text, Array(ofURLs.utf8), text + padding] {
                #expect(page.message(bytesField(letters))?.aBytes.elementsEqual(decoded(text)) == true)
            }
        }
    }

    @Test(arguments: [3, 16, 19, 35]) func invalidBase64AtEveryPosition(length: Int) {
        // Both alphabets, characters that would end the text, and padding.
        let others = (UInt8(0x20)...0x7F).filter { !(alphabet + Array("-_\"\\=".utf8)).contains($0) }
        for position in 0..<length {
            for other in others {
                var text = letters(length)
                text[position] = other
                #expect(page.code(bytesField(text)) == .unexpectedValue)
            }
            // A character of two bytes, such as é, has the top bit set in each byte.
            let text = letters(position) + "é".utf8 + letters(length - position)
            #expect(page.code(bytesField(text)) == .unexpectedValue)
        }
    }

    private func decoded(_ text: [UInt8]) -> [UInt8] {
        var (bytes, bits, count) = ([UInt8](), 0, 0)
        for letter in text {
            bits = (bits << 6 | alphabet.firstIndex(of: letter)!) & 0xFFFF
            count += 6
            guard count >= 8 else { continue }
            count -= 8
            bytes.append(UInt8(truncatingIfNeeded: bits >> count))
        }
        return bytes
    }
}
