import LifelineMessages
import LifelineProtos
import TestProtos
import Testing

/// Strings that are not UTF-8, where they are allowed: they read as U+FFFD, and are encoded unchanged.
@Suite struct MalformedTextTests {
    private static let unchecked = DecodingOptions(validatesUTF8: false)
    /// Each with the result of String.
    private static let samples: [(bytes: [UInt8], text: String)] = [
        ([0xFF], "\u{FFFD}"), ([0x61, 0xC3, 0x62], "a\u{FFFD}b"), ([0xC3, 0xA9], "é"), ([], ""),
        ([0x61, 0xE2, 0x82], "a\u{FFFD}"),
        ([UInt8](repeating: 0x61, count: 40) + [0x80], String(repeating: "a", count: 40) + "\u{FFFD}"),
    ]

    private func string(_ tag: [UInt8], _ content: [UInt8]) -> [UInt8] { tag + [UInt8(content.count)] + content }

    @Test(arguments: samples.indices) func singular(index: Int) throws {
        let (bytes, text) = Self.samples[index]
        let encoded = bytes.isEmpty ? [] : string([0x22], bytes)
        let message = try ChatMessage(serializedBytes: encoded, options: Self.unchecked)
        #expect(message.text == text)
        #expect(message.withTextUTF8Span { String(copying: $0) } == text)
        #expect(try message.serializedBytes() == encoded)
        #expect(try ChatMessage(serializedBytes: encoded, options: Self.unchecked) == message)
        _ = message.textFormatString()
    }

    @Test(arguments: samples.indices) func oneofsAndSubmessages(index: Int) throws {
        let (bytes, text) = Self.samples[index]
        let name = string([0x12], bytes)
        let encoded = string([0x52], name) + string([0x8A, 1], bytes)
        let message = try ChatMessage(serializedBytes: encoded, options: Self.unchecked)
        #expect(message.author.name == text)
        #expect(message.author.withNameUTF8Span { String(copying: $0) } == text)
        #expect(message.sticker == text)
        #expect(message.body == .sticker(text))
        if !bytes.isEmpty { #expect(try message.serializedBytes() == encoded) }
        let author = message.author
        if !bytes.isEmpty { #expect(try author.serializedBytes() == name) }
    }

    @Test(arguments: samples.indices) func repeated(index: Int) throws {
        let (bytes, text) = Self.samples[index]
        let encoded = string([0x72], bytes) + string([0x72], [0x62])
        let message = try Test_Scalars_Proto3_Packed(serializedBytes: encoded, options: Self.unchecked)
        #expect(Array(message.someString) == [text, "b"])
        #expect(message.someString.withUTF8Span(at: 0) { String(copying: $0) } == text)
        #expect(message.someString.withUTF8Span(at: 1) { String(copying: $0) } == "b")
        #expect(try message.serializedBytes() == encoded)
    }

    @Test(arguments: samples.indices) func mapKeysAndValues(index: Int) throws {
        let (bytes, text) = Self.samples[index]
        let encoded =
            string([0x32], string([0x0A], [0x41]) + string([0x12], bytes))
            + string([0x32], string([0x0A], bytes) + [0x12, 0])
        let sorted = bytes.isEmpty ? Array(encoded.suffix(6) + encoded.dropLast(6)) : encoded
        let message = try ChatMessage(serializedBytes: encoded, options: Self.unchecked)
        #expect(message.headers.count == 2)
        #expect(message.headers["A"] == text)
        #expect(message.headers.map(\.key) == (bytes.isEmpty ? ["", "A"] : ["A", text]))
        var seen: [[String]] = []
        message.headers.forEachUTF8Span { seen.append([String(copying: $0), String(copying: $1)]) }
        #expect(seen == message.headers.map { [$0.key, $0.value] })
        #expect(try message.serializedBytes() == sorted)
    }

    @Test func theCheckIsOnlyLeftOutWhereItIsAskedFor() throws {
        let encoded: [UInt8] = [0x22, 1, 0xFF]
        var message = try ChatMessage(serializedBytes: encoded, options: Self.unchecked)
        #expect(throws: MessageError.self) { try ChatMessage(serializedBytes: message.serializedBytes()) }
        #expect(throws: MessageError.self) { try message.merge(serializedBytes: encoded) }
        #expect(message.text == "\u{FFFD}")
        try message.merge(serializedBytes: [0x1A, 1, 0xFE], options: Self.unchecked)
        #expect(message.to == "\u{FFFD}")
        #expect(try message.serializedBytes() == [0x1A, 1, 0xFE, 0x22, 1, 0xFF])
        message.text = "a"
        #expect(try message.serializedBytes() == [0x1A, 1, 0xFE, 0x22, 1, 0x61])
    }

    @Test func mergingMalformedTextIntoAMessageOfOurs() throws {
        var message = ChatMessage.with { $0.text = "text" }
        let copy = message
        try message.merge(serializedBytes: [0x1A, 1, 0xFF], options: Self.unchecked)
        #expect(message.to == "\u{FFFD}")
        #expect(message.text == "text")
        #expect(copy == .with { $0.text = "text" })
    }

    // MARK: Copies

    /// A part that is put into another message keeps its text unchanged, and reads the same there.
    @Test func copiedParts() throws {
        let bytes: [UInt8] = string([0x52], string([0x12], [0xFF])) + string([0x2A], string([0x0A], [0xFE]))
        let source = try ChatMessage(serializedBytes: bytes, options: Self.unchecked)
        let message = ChatMessage.with {
            $0.author = source.author
            $0.attachments.append(source.attachments[0])
            $0.replyTo = source
        }
        #expect(message.author.name == "\u{FFFD}")
        #expect(message.attachments[0].url == "\u{FFFD}")
        #expect(message.replyTo.author.name == "\u{FFFD}")
        let encoded = try message.serializedBytes()
        #expect(encoded.filter { $0 == 0xFF }.count == 2)
        #expect(encoded.filter { $0 == 0xFE }.count == 2)
        var changed = source
        changed.text = "changed"
        #expect(changed.author.name == "\u{FFFD}")
        #expect(changed.author == source.author)
        changed.author.level = 1
        #expect(try changed.author.serializedBytes() == [0x12, 1, 0xFF, 0x20, 1])
    }

    @Test func valuesInAMap() throws {
        let bytes: [UInt8] = [0x2A, 8, 0x0A, 1, 0x61, 0x12, 3, 0x0A, 1, 0xFF]
        let source = try Test_Imports_Tree(serializedBytes: bytes, options: Self.unchecked)
        var message = Test_Imports_Tree()
        message.named["b"] = source.named["a"]
        message.named["c", default: .init()] = source.named["a"] ?? .init()
        message.children.append(source.named["a"] ?? .init())
        #expect(message.named["b"]?.name == "\u{FFFD}")
        #expect(message.named["c"]?.name == "\u{FFFD}")
        #expect(message.children[0].name == "\u{FFFD}")
        #expect(try message.serializedBytes().filter { $0 == 0xFF }.count == 3)
    }

    /// Lists and maps contain valid text after they are taken out of their message and changed.
    @Test func changedCopiesOfListsAndMaps() throws {
        let list = try Test_Scalars_Proto3_Packed(serializedBytes: string([0x72], [0xFF]), options: Self.unchecked)
        var copy = list.someString
        copy.append("b")
        #expect(Array(copy) == ["\u{FFFD}", "b"])
        let map = try ChatMessage(serializedBytes: string([0x32], string([0x0A], [0xFF])), options: Self.unchecked)
        var headers = map.headers
        headers["a"] = "b"
        #expect(headers.map(\.key) == ["a", "\u{FFFD}"])
        let unchanged = try list.serializedBytes() + map.serializedBytes()
        #expect(unchanged == string([0x72], [0xFF]) + [0x32, 5, 0x0A, 1, 0xFF, 0x12, 0])
    }

    @Test func changedCopiesOfMapsWithMalformedKeys() throws {
        let keys: [[UInt8]] = [[0xF4, 0x8F, 0xBF, 0xBF], [0xFD], [0xFE], [0xFF]]
        let bytes = keys.flatMap { string([0x32], string([0x0A], $0)) }
        let message = try ChatMessage(serializedBytes: bytes, options: Self.unchecked)
        #expect(message.headers.count == 4)
        #expect(message.headers["\u{10FFFF}"] == "")
        var headers = message.headers
        headers["a"] = "b"
        #expect(headers["a"] == "b")
        #expect(headers["\u{10FFFF}"] == "")
    }

    // MARK: Proto2

    /// This message does not require UTF-8, whatever the options are.
    @Test func textOfProto2IsNeverChecked() throws {
        let bytes = string([0x72], [0xFF])
        let singular = try Test_Scalars_Proto2_Singular(serializedBytes: bytes)
        #expect(singular.aString == "\u{FFFD}")
        #expect(singular.withAStringUTF8Span { String(copying: $0) } == "\u{FFFD}")
        #expect(try singular.serializedBytes() == bytes)
        let list = try Test_Scalars_Proto2_Unpacked(serializedBytes: bytes + bytes)
        #expect(Array(list.someString) == ["\u{FFFD}", "\u{FFFD}"])
        #expect(list.someString.withUTF8Span(at: 1) { String(copying: $0) } == "\u{FFFD}")
        var seen: [String] = []
        for text in list.someString { seen.append(text) }
        #expect(seen == ["\u{FFFD}", "\u{FFFD}"])
        #expect(try list.serializedBytes() == bytes + bytes)
        let entry = string([0x72], string([0x0A], [0xFE]) + string([0x12], [0xFF]))
        let map = try Test_Scalars_Proto2_Maps(serializedBytes: entry)
        #expect(map.byString.map { [$0.key, $0.value] } == [["\u{FFFD}", "\u{FFFD}"]])
        map.byString.forEachUTF8Span { #expect(String(copying: $0) == String(copying: $1)) }
        #expect(try map.serializedBytes() == entry)
        var choice = try Test_Scalars_Proto2_Choice(serializedBytes: string([0x7A], [0xFF]))
        #expect(choice.value == .aString("\u{FFFD}"))
        choice.aString += "a"
        #expect(choice.aString == "\u{FFFD}a")
    }

    @Test func mergingTextOfProto2() throws {
        var message = Test_Scalars_Proto2_Singular.with { $0.aInt32 = 1 }
        try message.merge(serializedBytes: [0x72, 1, 0xFF])
        #expect(message.aString == "\u{FFFD}")
        #expect(message.withAStringUTF8Span { String(copying: $0) } == "\u{FFFD}")
        var list = Test_Scalars_Proto2_Unpacked.with { $0.someString = ["a"] }
        try list.merge(serializedBytes: [0x72, 1, 0xFF])
        #expect(Array(list.someString) == ["a", "\u{FFFD}"])
        var map = Test_Scalars_Proto2_Maps.with { $0.byString["a"] = "b" }
        try map.merge(serializedBytes: [0x72, 6, 0x0A, 1, 0xFE, 0x12, 1, 0xFF])
        #expect(map.byString.map { [$0.key, $0.value] } == [["a", "b"], ["\u{FFFD}", "\u{FFFD}"]])
        // Into a part, and then as a part of another message.
        var point = Test_Scalars_Proto2_Singular()
        try point.aPoint.merge(serializedBytes: [0x08, 2])
        #expect(point.aPoint.x == 1)
        #expect(throws: MessageError.self) { try point.aPoint.merge(serializedBytes: [0x08]) }
        #expect(point.aPoint == .with { $0.x = 1 })
    }
}
