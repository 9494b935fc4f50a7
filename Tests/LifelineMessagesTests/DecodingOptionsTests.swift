import LifelineMessages
import LifelineProtos
import LifelineWellKnownTypes
import TestProtos
import Testing

/// The limits of DecodingOptions, at their edges.
@Suite struct DecodingOptionsTests {
    private func code<M: Message>(_ bytes: [UInt8], as _: M.Type, _ options: DecodingOptions) -> MessageError.Code? {
        do throws(MessageError) {
            _ = try M(serializedBytes: bytes, options: options)
            return nil
        } catch {
            return error.code
        }
    }

    @Test func defaults() {
        let options = DecodingOptions()
        #expect(options.maximumDepth == 100)
        #expect(options.memoryLimit == 67_108_864)
        #expect(options.validatesUTF8)
    }

    // MARK: Depth

    /// Wraps content in a field of a Test_Imports_Tree with this number, which adds a level.
    private static let ways: [(name: String, wrap: @Sendable ([UInt8]) -> [UInt8])] = [
        ("submessage", { field(2, $0) }),
        ("submessage after another field", { [0x0A, 1, 0x61] + field(2, $0) }),
        ("submessage before another field", { field(2, $0) + [0x0A, 1, 0x61] }),
        ("submessage again", { field(2, []) + field(2, $0) }),
        ("optional submessage", { field(3, $0) }),
        ("repeated submessage", { field(4, []) + field(4, $0) + field(4, []) }),
        ("member of a oneof", { field(6, $0) }),
    ]

    private static func field(_ number: UInt8, _ content: [UInt8]) -> [UInt8] {
        [number << 3 | 2] + varint(content.count) + content
    }

    private static func varint(_ value: Int) -> [UInt8] {
        value < 128 ? [UInt8(value)] : [UInt8(value % 128 + 128)] + varint(value / 128)
    }

    @Test(arguments: ways.indices, [1, 2, 7, 100, 1_000]) func exactlyTheMaximumDepthIsAccepted(
        way: Int,
        maximum: Int
    ) throws {
        let wrap = Self.ways[way].wrap
        var bytes: [UInt8] = []
        for _ in 0..<maximum { bytes = wrap(bytes) }
        let options = DecodingOptions(maximumDepth: maximum)
        #expect(code(bytes, as: Test_Imports_Tree.self, options) == nil)
        #expect(code(wrap(bytes), as: Test_Imports_Tree.self, options) == .tooDeep)
    }

    /// A map entry is a message, too: a tree in a map is two levels deeper.
    @Test(arguments: [2, 10, 100]) func mapEntriesCountAsMessages(maximum: Int) throws {
        var bytes: [UInt8] = []
        for _ in 0..<(maximum / 2) { bytes = Self.field(5, Self.field(2, bytes)) }
        let limits = (0...(2 * maximum)).filter {
            code(bytes, as: Test_Imports_Tree.self, DecodingOptions(maximumDepth: $0)) == nil
        }
        let lowest = try #require(limits.first)
        #expect(limits == Array(lowest...(2 * maximum)), "what one limit accepts, a higher one does")
        #expect(lowest == maximum || lowest == maximum / 2)
        #expect(
            code(Self.field(5, Self.field(2, bytes)), as: Test_Imports_Tree.self, .init(maximumDepth: lowest)) != nil
        )
    }

    @Test func noDepthAtAll() throws {
        let options = DecodingOptions(maximumDepth: 0)
        #expect(code([0x0A, 1, 0x61], as: Test_Imports_Tree.self, options) == nil)
        #expect(code([0x12, 0], as: Test_Imports_Tree.self, options) == .tooDeep)
        #expect(code([0x73, 0x74], as: Test_Imports_Tree.self, options) == .tooDeep, "a group counts too")
        #expect(code([0x72, 1, 0], as: Test_Imports_Tree.self, options) == nil, "unknown bytes are not looked into")
    }

    @Test(arguments: [1, 5, 100]) func groupsInsideMessagesCountAsOne(maximum: Int) {
        // Half of the way down in submessages, the other half in groups of field 14, which a tree does not have.
        let (outer, inner) = (maximum / 2, maximum - maximum / 2)
        func bytes(groups: Int) -> [UInt8] {
            var bytes = [UInt8](repeating: 0x73, count: groups) + [UInt8](repeating: 0x74, count: groups)
            for _ in 0..<outer { bytes = Self.field(2, bytes) }
            return bytes
        }
        let options = DecodingOptions(maximumDepth: maximum)
        #expect(code(bytes(groups: inner), as: Test_Imports_Tree.self, options) == nil)
        #expect(code(bytes(groups: inner + 1), as: Test_Imports_Tree.self, options) == .tooDeep)
    }

    @Test func depthIsCountedAnewByMerging() throws {
        var tree = Test_Imports_Tree()
        let options = DecodingOptions(maximumDepth: 2)
        try tree.merge(serializedBytes: [0x12, 2, 0x12, 0], options: options)
        #expect(throws: MessageError.self) {
            try tree.merge(serializedBytes: [0x12, 4, 0x12, 2, 0x12, 0], options: options)
        }
        #expect(tree == .with { $0.left.left = .init() })
    }

    // MARK: Memory

    /// The lowest limit at which `bytes` are decoded, to within 64 bytes.
    private func lowestMemoryLimit<M: Message>(_ bytes: [UInt8], as _: M.Type) -> Int {
        var (refused, accepted) = (-1, 1 << 31)
        while accepted - refused > 64 {
            let middle = refused + (accepted - refused) / 2
            switch code(bytes, as: M.self, DecodingOptions(memoryLimit: middle)) {
            case nil: accepted = middle
            case .memoryLimitExceeded: refused = middle
            case let other: Issue.record("\(other as Any) with a limit of \(middle)")
            }
            if accepted <= 64 { break }
        }
        return accepted
    }

    @Test(arguments: [1_000, 10_000, 100_000]) func emptySubmessagesAreBoundedByTheLimit(count: Int) {
        let bytes = [[UInt8]](repeating: [0x2A, 0], count: count).flatMap { $0 }
        let limit = lowestMemoryLimit(bytes, as: ChatMessage.self)
        // They take their structs and pointers to them, up to five in a growing array, and blocks that double.
        let size = MemoryLayout<Sample_Chat_V1_Attachment._Fields>.size
        #expect(limit > count * (size + 8) - 4 * bytes.count - 4_096)
        #expect(limit < 2 * count * (size + 40) + 4_096)
    }

    @Test(
        arguments: [
            ("map entries", [0x32, 0]), ("map entries of numbers", [0x9A, 1, 0]), ("empty messages", [0x2A, 0]),
            ("enums", [0xC8, 1, 1]), ("unpacked numbers", [0x38, 1]), ("unknown fields", [0xFD, 7, 1, 2, 3, 4]),
            ("submessages", [0x52, 0]), ("members of a oneof by turns", [0x7A, 0, 0x82, 1, 0]),
        ] as [(String, [UInt8])]
    ) func whateverIsRepeatedIsBounded(name: String, element: [UInt8]) throws {
        let bytes = [[UInt8]](repeating: element, count: 50_000).flatMap { $0 }
        let limit = lowestMemoryLimit(bytes, as: ChatMessage.self)
        // The multiple of the input that lifeline_message_decode documents, twice for blocks that are rounded up.
        let perByte = max(50, MemoryLayout<ChatMessage._Fields>.size / 2 + 20)
        #expect(limit < 2 * perByte * bytes.count, "\(name)")
        let message = try ChatMessage(serializedBytes: bytes, options: DecodingOptions(memoryLimit: limit))
        #expect(message.memoryByteCount <= Self.promise(limit, bytes.count), "\(name)")

        // The same as JSON and as text.
        let json = try [UInt8](message.jsonUTF8Bytes())
        var jsonOptions = JSONDecodingOptions()
        let lowest = lowestLimit { limit in
            jsonOptions.memoryLimit = limit
            return (try? ChatMessage(jsonUTF8Bytes: json, options: jsonOptions)) != nil
        }
        jsonOptions.memoryLimit = lowest
        let fromJSON = try ChatMessage(jsonUTF8Bytes: json, options: jsonOptions)
        #expect(fromJSON.memoryByteCount <= Self.promise(lowest, json.count), "\(name)")

        var printing = TextFormatEncodingOptions()
        printing.printUnknownFields = false
        let text = message.textFormatString(options: printing)
        var textOptions = TextFormatDecodingOptions()
        let lowestOfText = lowestLimit { limit in
            textOptions.memoryLimit = limit
            return (try? ChatMessage(textFormatString: text, options: textOptions)) != nil
        }
        textOptions.memoryLimit = lowestOfText
        let fromText = try ChatMessage(textFormatString: text, options: textOptions)
        #expect(fromText.memoryByteCount <= Self.promise(lowestOfText, text.utf8.count), "\(name)")
    }

    /// The most bytes that SECURITY.md and the options allow a message to take.
    private static func promise(_ limit: Int, _ inputByteCount: Int) -> Int {
        max(0, limit) + 3 * inputByteCount + 5_120
    }

    /// The lowest accepted limit, to within 64 bytes.
    private func lowestLimit(_ isAccepted: (Int) -> Bool) -> Int {
        var (refused, accepted) = (-1, 1 << 31)
        while accepted - refused > 64, accepted > 64 {
            let middle = refused + (accepted - refused) / 2
            if isAccepted(middle) { accepted = middle } else { refused = middle }
        }
        return accepted
    }

    @Test func ordinaryMessagesNeedNoLimit() throws {
        let bytes = try HostileInputTests.rich().serializedBytes()
        let many = ChatMessage.with { $0.text = String(repeating: "long ", count: 100_000) }
        for limit in [Int.min, -1, 0, 63, Int.max] {
            #expect(code([], as: ChatMessage.self, DecodingOptions(memoryLimit: limit)) == nil)
            #expect(code(try many.serializedBytes(), as: ChatMessage.self, DecodingOptions(memoryLimit: limit)) == nil)
        }
        #expect(lowestMemoryLimit(bytes, as: ChatMessage.self) <= 4_096)
    }

    @Test func aRefusedMergeChangesNothing() throws {
        let original = ValueSemanticsTests.sample()
        var message = original
        let bytes = [[UInt8]](repeating: [0x2A, 0], count: 100_000).flatMap { $0 }
        do throws(MessageError) {
            try message.merge(serializedBytes: bytes, options: DecodingOptions(memoryLimit: 100_000))
            Issue.record("it was accepted")
        } catch {
            #expect(error.code == .memoryLimitExceeded)
        }
        #expect(message == original)
        message.text += "!"
        #expect(original == ValueSemanticsTests.sample())
    }
}
