import LifelineMessages
import LifelineProtos
import LifelineWellKnownTypes
import TestProtos
import Testing

extension [UInt8] {
    init(_ span: Span<UInt8>) { self = span.withUnsafeBufferPointer { Array($0) } }
}

/// Reading strings, bytes and elements in place, without copies.
@Suite struct BorrowingTests {
    private struct Stop: Error, Equatable { var number = 0 }

    static let texts = ["", "a", "NUL \0 é 😀", String(repeating: "é", count: 5_000)]

    // MARK: Singular fields

    @Test(arguments: texts) func aStringIsLent(text: String) throws {
        let built = ChatMessage.with { $0.text = text }
        let decoded = try ChatMessage(serializedBytes: built.serializedBytes())
        for message in [built, decoded] {
            #expect(message.withTextUTF8Span { String(copying: $0) } == text)
            #expect(message.withTextUTF8Span { $0.count } == text.utf8.count)
        }
    }

    @Test(arguments: [0, 1, 16, 100_000]) func bytesAreLent(count: Int) throws {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        let built = ChatMessage.with { $0.voice = bytes }
        let decoded = try ChatMessage(serializedBytes: built.serializedBytes())
        for message in [built, decoded] { #expect(message.withVoiceSpan { Array($0) } == bytes) }
    }

    @Test func nothingIsCopied() throws {
        let message = ChatMessage.with {
            $0.text = "a text that is too long for a small string"
            $0.voice = [1, 2, 3]
        }
        let copy = message
        func address(_ bytes: Span<UInt8>) -> UnsafeRawPointer? {
            bytes.withUnsafeBufferPointer { UnsafeRawPointer($0.baseAddress) }
        }
        #expect(message.withTextUTF8Span { address($0.span) } == copy.withTextUTF8Span { address($0.span) })
        #expect(message.withVoiceSpan { address($0) } == copy.withVoiceSpan { address($0) })
        let list: RepeatedField<String> = ["an element that is too long for a small string"]
        let same = list
        #expect(list.withUTF8Span(at: 0) { address($0.span) } == same.withUTF8Span(at: 0) { address($0.span) })
    }

    @Test func absentFieldsLendTheirDefaults() {
        #expect(ChatMessage().withTextUTF8Span { $0.isEmpty })
        #expect(ChatMessage().withVoiceSpan { $0.isEmpty })
        #expect(ChatMessage().author.withNameUTF8Span { $0.isEmpty })
        var message = Test_Proto2_Defaults()
        let (text, bytes) = (message.unicode, message.aBytes)
        #expect(text.hasPrefix("é 😀") && bytes.prefix(3) == [0, 1, 0x7F])
        #expect(message.withUnicodeUTF8Span { String(copying: $0) } == text)
        #expect(message.withABytesSpan { Array($0) } == bytes)
        message.unicode = ""
        message.aBytes = []
        #expect(message.withUnicodeUTF8Span { $0.isEmpty })
        #expect(message.withABytesSpan { $0.isEmpty })
    }

    @Test func aMemberOfAOneofIsLentWhileItIsSet() {
        var message = ChatMessage.with { $0.sticker = "smile" }
        #expect(message.withStickerUTF8Span { String(copying: $0) } == "smile")
        #expect(message.withVoiceSpan { $0.isEmpty })
        message.voice = [1]
        #expect(message.withStickerUTF8Span { $0.isEmpty })
        #expect(message.withVoiceSpan { Array($0) } == [1])
    }

    @Test func errorsLeaveWithTheirType() {
        let message = ChatMessage.with { ($0.text, $0.voice) = ("text", [1]) }
        do throws(Stop) {
            try message.withTextUTF8Span { (text) throws(Stop) in throw Stop(number: text.count) }
        } catch {
            #expect(error.number == 4)
        }
        #expect(throws: Stop(number: 1)) { try message.withVoiceSpan { throw Stop(number: $0.count) } }
        #expect(throws: Stop(number: 4)) { try message.withTextUTF8Span { throw Stop(number: $0.count) } }
    }

    // MARK: Elements

    @Test func elementsAreLent() throws {
        let texts = RepeatedField(Self.texts)
        let bytes: RepeatedField<[UInt8]> = [[], [0, 255], [UInt8](repeating: 7, count: 3_000)]
        for position in texts.indices {
            #expect(texts.withUTF8Span(at: position) { String(copying: $0) } == texts[position])
        }
        for position in bytes.indices { #expect(bytes.withSpan(at: position) { Array($0) } == bytes[position]) }
        let message = Test_Scalars_Proto3_Packed.with { ($0.someString, $0.someBytes) = (texts, bytes) }
        let decoded = try Test_Scalars_Proto3_Packed(serializedBytes: message.serializedBytes())
        #expect(decoded.someString.withUTF8Span(at: 3) { $0.count } == 10_000)
        #expect(decoded.someBytes.withSpan(at: 2) { $0.count } == 3_000)
        #expect(decoded.someBytes.withSpan(at: 0) { $0.isEmpty })
    }
    @Test func forEachVisitsEveryElementInTurn() {
        var seen: [String] = []
        RepeatedField(Self.texts).forEach { seen.append($0) }
        #expect(seen == Self.texts)
        RepeatedField<String>().forEach { _ in Issue.record("there is no element") }
        let list = ChatMessage.with { $0.attachments = [.with { $0.url = "a" }, .with { $0.url = "b" }] }.attachments
        var urls: [String] = []
        list.forEach { attachment in urls.append(attachment.withURLUTF8Span { String(copying: $0) }) }
        #expect(urls == ["a", "b"])
    }

    @Test func forEachStopsAtAnError() {
        let numbers: RepeatedField<Int32> = [1, 2, 3]
        var seen: [Int32] = []
        #expect(throws: Stop(number: 2)) {
            try numbers.forEach {
                if $0 == 2 { throw Stop(number: 2) }
                seen.append($0)
            }
        }
        #expect(seen == [1])
    }

    // MARK: Maps

    @Test func aMapLendsItsTextInTheOrderOfItsKeys() throws {
        let map: MapField<String, String> = ["é": "", "": "empty", "b": "NUL \0", "a": Self.texts[3]]
        let message = ChatMessage.with { $0.headers = map }
        for map in [map, try ChatMessage(serializedBytes: message.serializedBytes()).headers] {
            var seen: [[String]] = []
            map.forEachUTF8Span { seen.append([String(copying: $0), String(copying: $1)]) }
            #expect(seen == [["", "empty"], ["a", Self.texts[3]], ["b", "NUL \0"], ["é", ""]])
        }
        MapField<String, String>().forEachUTF8Span { _, _ in Issue.record("there is no entry") }
    }

    @Test func aMapStopsLendingAtAnError() {
        let map: MapField<String, String> = ["a": "1", "b": "22", "c": "333"]
        var seen = 0
        do throws(Stop) {
            try map.forEachUTF8Span { (_, value) throws(Stop) in
                if value.count == 2 { throw Stop(number: value.count) }
                seen += 1
            }
            Issue.record("the error was lost")
        } catch {
            #expect(error.number == 2)
        }
        #expect(seen == 1)
    }
}
