import LifelineMessages
import LifelineProtos
import LifelineReflection
import LifelineWellKnownTypes
import TestProtos
import Testing

/// Masks as sets of fields, and the fields of messages that they keep and merge.
@Suite struct FieldMaskTests {
    private typealias Choice = Test_Scalars_Proto3_Choice
    private typealias Singular = Test_Scalars_Proto3_Singular

    private func mask(_ paths: String) -> Google_Protobuf_FieldMask {
        .with { $0.paths = RepeatedField(paths.split(separator: " ").map(String.init)) }
    }

    // MARK: Sets

    @Test(
        arguments: [
            ("", ""), ("b a", "a b"), ("a a", "a"), ("a.b a", "a"), ("a a.b a.b.c", "a"), ("a.b a0 a.c", "a.b a.c a0"),
            ("ab a.b", "a.b ab"), ("a. .a a..b", ".a a."),
        ]
    )
    func masksHaveACanonicalForm(paths: String, canonical: String) {
        #expect(mask(paths).canonical == mask(canonical))
    }

    @Test func masksAreSets() {
        #expect(mask("a b.c").union(mask("b d")) == mask("a b d"))
        #expect(mask("a b.c").intersect(mask("b a.x d")) == mask("a.x b.c"))
        #expect(mask("a").intersect(mask("ab")) == mask(""))
        #expect(mask("a b.c b.d").subtract(mask("b.c")) == mask("a b.d"))
        #expect(mask("a.b").subtract(mask("a")) == mask("") && mask("a").subtract(mask("a.b")) == mask("a"))
        #expect(mask("b a.c").contains("a.c.d") && !mask("a.c").contains("a") && !mask("").contains("a"))
        #expect(mask("a a0").contains("a.b"))
    }

    @Test func pathsAreChecked() {
        #expect(mask("a_point.label a_int32").isValid(for: Singular.self) && mask("").isValid(for: Singular.self))
        for path in ["aPoint", "a_point.", ".a_point", "a_point.y0", "a_int32.a", "missing", "a_point..x"] {
            #expect(!mask(path).isValid(for: Singular.self), "\(path)")
            #expect(!mask(path).isValid(for: MessageDescriptor(Singular.self)), "\(path)")
        }
        #expect(mask("values").isValid(for: Google_Protobuf_ListValue.self))
        #expect(!mask("values.string_value").isValid(for: Google_Protobuf_ListValue.self))
        #expect(Google_Protobuf_FieldMask(allFieldsOf: Google_Protobuf_Timestamp.self) == mask("seconds nanos"))
    }

    @Test func pathsComeFromTheNumbersOfFields() throws {
        let mask = try Google_Protobuf_FieldMask(fieldNumbers: [2, 1], of: Google_Protobuf_Timestamp.self)
        #expect(mask == ["nanos", "seconds"])
        for number in [0, -1, 3, .min, .max, 1 << 32 + 1] {
            #expect(throws: MessageError.self) {
                try Google_Protobuf_FieldMask(fieldNumbers: [1, number], of: Google_Protobuf_Timestamp.self)
            }
        }
    }

    @Test func pathsAreCheckedAsTheyAreAdded() throws {
        var mask = Google_Protobuf_FieldMask()
        try mask.addPath("a_point.label", of: Singular.self)
        #expect(throws: MessageError.self) { try mask.addPath("a_point.missing", of: Singular.self) }
        #expect(throws: MessageError.self) { try mask.addPath("", of: Singular.self) }
        #expect(mask == ["a_point.label"])
    }

    // MARK: Messages

    private let full = Singular.with {
        ($0.aInt32, $0.aString) = (1, "text")
        ($0.aPoint.x, $0.aPoint.label) = (3, "here")
    }

    @Test func messagesAreTrimmed() throws {
        let cases: [(String, Singular)] = [
            ("", full), ("a_int32", .with { $0.aInt32 = 1 }), ("missing", Singular()),
            ("a_point.x", .with { $0.aPoint.x = 3 }), ("a_point", .with { $0.aPoint = full.aPoint }),
            ("a_string a_point.label a_int32.x", .with { ($0.aString, $0.aPoint.label) = ("text", "here") }),
            ("a_bool", Singular()),
        ]
        for (paths, expected) in cases {
            var message = full
            message.trim(keeping: mask(paths))
            #expect(message == expected, "\(paths)")
            var dynamic = DynamicMessage(full)
            dynamic.trim(keeping: mask(paths))
            #expect(dynamic == DynamicMessage(expected))
        }
        #expect(full.aPoint.x == 3)
    }

    @Test func emptyPathsKeepNothing() {
        for paths: RepeatedField<String> in [[""], ["", ""]] {
            var message = full
            message.trim(keeping: .with { $0.paths = paths })
            #expect(message == Singular())
        }
    }

    @Test func unknownFieldsStayWhenTrimmed() throws {
        var message = try Singular(serializedBytes: full.serializedBytes() + [0xC0, 0x3E, 1])
        message.trim(keeping: mask("a_int32"))
        #expect(message.unknownFields == [0xC0, 0x3E, 1])
    }

    /// Those of a submessage, too, and with them its extensions. Merging copies them with whole messages only.
    @Test func unknownFieldsOfSubmessages() throws {
        var message = full
        message.aPoint = try .init(serializedBytes: full.aPoint.serializedBytes() + [0xC0, 0x3E, 1])
        var trimmed = message
        trimmed.trim(keeping: mask("a_point.x"))
        #expect(trimmed.aPoint.unknownFields == [0xC0, 0x3E, 1] && trimmed.aPoint.y == 0)
        var merged = Singular()
        try merged.merge(from: message, fieldMask: mask("a_point.x"))
        #expect(merged.aPoint.x == message.aPoint.x && merged.aPoint.unknownFields.isEmpty)
        try merged.merge(from: message, fieldMask: mask("a_point"))
        #expect(merged.aPoint.unknownFields == [0xC0, 0x3E, 1])
    }

    @Test func messagesAreMerged() throws {
        let target = Singular.with { ($0.aBool, $0.aString, $0.aPoint.y) = (true, "old", 4) }
        var merged = target
        try merged.merge(from: full, fieldMask: mask("a_string a_point a_bool missing"))
        #expect(
            merged
                == .with {
                    $0.aString = "text"
                    $0.aPoint = full.aPoint
                    $0.aPoint.y = 4
                }
        )
        merged = target
        try merged.merge(from: full, fieldMask: mask("a_point.x"))
        #expect(merged == .with { ($0.aBool, $0.aString, $0.aPoint.y, $0.aPoint.x) = (true, "old", 4, 3) })
        var options = FieldMaskMergeOptions()
        options.replacesMessages = true
        try merged.merge(from: full, fieldMask: mask("a_point"), options: options)
        #expect(merged.aPoint == full.aPoint)
        try merged.merge(from: Singular(), fieldMask: mask("a_point.label a_point.x"))
        #expect(merged.hasAPoint && merged.aPoint == .init())
        try merged.merge(from: Singular(), fieldMask: mask("a_point"), options: options)
        #expect(!merged.hasAPoint)
        try merged.merge(from: Singular(), fieldMask: mask("a_point.label"))
        #expect(!merged.hasAPoint)
        let before = merged
        try merged.merge(from: full, fieldMask: mask(""))
        #expect(merged == before)
    }

    @Test func elementsAreAddedOrReplaced() throws {
        let source = Google_Protobuf_Struct.with { $0.fields = ["a": "new", "b": 1] }
        var target = Google_Protobuf_Struct.with { $0.fields = ["a": "old", "c": 2] }
        try target.merge(from: source, fieldMask: mask("fields"))
        #expect(target == .with { $0.fields = ["a": "new", "b": 1, "c": 2] })
        var options = FieldMaskMergeOptions()
        options.replacesRepeatedFields = true
        try target.merge(from: source, fieldMask: mask("fields"), options: options)
        #expect(target == source)

        var dynamic = DynamicMessage(Google_Protobuf_ListValue.with { $0.values = [1] })
        let other = DynamicMessage(Google_Protobuf_ListValue.with { $0.values = [2] })
        try dynamic.merge(from: other, fieldMask: mask("values"))
        #expect(try dynamic.jsonString() == "[1,2]")
        let error = #expect(throws: MessageError.self) {
            try dynamic.merge(from: DynamicMessage(source), fieldMask: mask("fields"))
        }
        #expect(error?.code == .typeMismatch)
    }

    /// Paths may come from a peer.
    @Test func longPathsCostNoStack() throws {
        let long = Array(repeating: "nested", count: 20_000).joined(separator: ".")
        let masks = mask("\(long) \(long).a_string a_string")
        #expect(masks.isValid(for: Choice.self) && masks.canonical.paths.count == 2)
        var message = Choice.with { $0.nested.nested.aString = "deep" }
        message.trim(keeping: masks)
        #expect(message == .with { $0.nested.nested = .init() })
        var target = Choice()
        try target.merge(from: message, fieldMask: masks)
        #expect(target == message)
        let many = mask((0..<5_000).map { "a_point.\($0) \($0 % 7).x" }.joined(separator: " "))
        #expect(!many.isValid(for: Singular.self) && many.union(many) == many.canonical)
        var trimmed = full
        trimmed.trim(keeping: many)
        #expect(trimmed == .with { $0.aPoint = .init() })
    }
}
