import Foundation
import SwiftProtobuf
import SwiftProtobufPluginLibrary
import Testing

@testable import LifelineCodegen

/// The tables of given schemas: the fields that the decoder finds by tag, and the groups that the encoder skips.
@Suite struct TableGeneratorTests {
    /// An entry of `.dispatch`, as text.
    private struct Entry: Equatable {
        var kind: String
        var shape: String
        var tag: String
        var detail: Int
        var offset: String
        var quantifier: String

        init(
            _ kind: String,
            _ shape: String,
            _ tag: String,
            _ detail: Int,
            _ offset: String,
            _ quantifier: String = "0"
        ) {
            (self.kind, self.shape, self.tag, self.detail) = (kind, shape, tag, detail)
            (self.offset, self.quantifier) = (offset, quantifier)
        }
    }

    private struct Group: Equatable {
        var firstField: Int
        /// The first and the last member.
        var members: [String]
    }

    /// The lines of the table of `message`.
    private func table(of message: String, in source: String) throws -> [Substring] {
        let lines = source.split(separator: "\n")
        let start = try #require(lines.firstIndex { $0.hasSuffix(" \(message)__table = {") }, "no table of \(message)")
        return Array(lines[start...].prefix { $0 != "};" })
    }

    private func source(_ schema: String) throws -> String {
        let response = generate(try .compiling(schema))
        #expect(response.error == "")
        return try response.content("CSample/test.lifeline.c")
    }

    /// The entries of `message`, by default M, by index.
    private func dispatch(of schema: String, message: String = "pb__m") throws -> [Int: Entry] {
        let pattern =
            /\[(\d+)\] = LIFELINE_DISPATCH\((\w+), (\w+), (\w+), (\d+), offsetof\(\w+, (\w+)\), (?:0|offsetof\(\w+, (\w+)\))\),/
        var entries: [Int: Entry] = [:]
        for line in try table(of: message, in: source(schema)) where line.contains("LIFELINE_DISPATCH") {
            let match = try #require(try pattern.firstMatch(in: line), "\(line)").output
            let (index, detail) = (try #require(Int(match.1)), try #require(Int(match.5)))
            #expect(entries[index] == nil, "two entries at \(index)")
            entries[index] = Entry(
                String(match.2),
                String(match.3),
                String(match.4),
                detail,
                String(match.6),
                match.7.map(String.init) ?? "0"
            )
        }
        return entries
    }

    private func proto3(_ fields: String) -> String {
        "syntax = \"proto3\"; message M { \(fields) } enum E { ZERO = 0; } message Sub {}"
    }

    // MARK: Dispatch

    @Test func tagsOfOneAndOfTwoBytes() throws {
        let schema = proto3("int32 a = 1; int32 b = 15; int32 c = 16; int32 d = 31; int32 e = 2047; int32 f = 2048;")
        #expect(
            try dispatch(of: schema) == [
                1: Entry("VARINT32", "PLAIN", "0x8", 0, "a"),
                15: Entry("VARINT32", "PLAIN", "0x78", 0, "b"),
                // 16 % 16, 31 % 16; 2047 would have the slot of 31.
                16: Entry("VARINT32", "PLAIN", "0x180", 0, "c"),
                31: Entry("VARINT32", "PLAIN", "0x1F8", 0, "d"),
            ]
        )
        let high = try dispatch(of: proto3("int32 e = 2047; int32 f = 2048; int32 g = 536870911;"))
        #expect(high == [31: Entry("VARINT32", "PLAIN", "0x7FF8", 0, "e")])
    }

    @Test func ofFieldsThatShareAnIndexTheLowestNumberHasIt() throws {
        let entries = try dispatch(of: proto3("int32 late = 33; int32 early = 17; int32 latest = 49; int32 one = 1;"))
        #expect(
            entries == [
                1: Entry("VARINT32", "PLAIN", "0x8", 0, "one"), 17: Entry("VARINT32", "PLAIN", "0x188", 0, "early"),
            ]
        )
        let sparse = try dispatch(of: proto3("int32 a = 100; int32 b = 116;"))
        #expect(sparse == [20: Entry("VARINT32", "PLAIN", "0x6A0", 0, "a")])
    }

    @Test func anEmptyMessageHasNone() throws {
        #expect(try dispatch(of: proto3("")) == [:])
        #expect(try dispatch(of: proto3("int32 a = 2048;")) == [:])
    }

    @Test(arguments: [
        ("int32", "VARINT32", "0x8", "0xA"), ("uint32", "VARINT32", "0x8", "0xA"), ("E", "VARINT32", "0x8", "0xA"),
        ("int64", "VARINT64", "0x8", "0xA"), ("uint64", "VARINT64", "0x8", "0xA"), ("bool", "BOOL", "0x8", "0xA"),
        ("sint32", "SINT32", "0x8", "0xA"), ("sint64", "SINT64", "0x8", "0xA"), ("fixed32", "FIXED32", "0xD", "0xA"),
        ("sfixed32", "FIXED32", "0xD", "0xA"), ("float", "FIXED32", "0xD", "0xA"), ("fixed64", "FIXED64", "0x9", "0xA"),
        ("sfixed64", "FIXED64", "0x9", "0xA"), ("double", "FIXED64", "0x9", "0xA"),
    ]) func numbers(type: String, kind: String, tag: String, packedTag: String) throws {
        #expect(try dispatch(of: proto3("\(type) a = 1;")) == [1: Entry(kind, "PLAIN", tag, 0, "a")])
        #expect(
            try dispatch(of: proto3("int32 z = 9; repeated \(type) a = 1;"))[1]
                == Entry(kind, "PACKED", packedTag, 0, "a", "n_a")
        )
        let unpacked = "int32 before = 1; repeated \(type) a = 2 [packed = false];"
        let tags = ["0x8": "0x10", "0xD": "0x15", "0x9": "0x11"]
        #expect(
            try dispatch(of: proto3(unpacked))[2] == Entry(kind, "REPEATED", try #require(tags[tag]), 1, "a", "n_a")
        )
        let optional = try #require(try dispatch(of: proto3("optional \(type) a = 1;"))[1])
        // A separate `oneof` stores the field's number.
        #expect(optional.shape == "MARKED" && optional.kind == kind && optional.detail == 1)
        #expect(optional.quantifier.hasSuffix("_case"))
        let flag = try dispatch(
            of: "syntax = \"proto2\"; message M { optional \(type == "E" ? "int32" : type) a = 1; }"
        )[1]
        #expect(flag == Entry(kind, "MARKED", tag, 1, "a", "has_a"))
    }

    @Test func textAndBytes() throws {
        let entries = try dispatch(
            of: proto3("string a = 1; bytes b = 2; repeated string c = 3; repeated bytes d = 4;")
        )
        #expect(
            entries == [
                1: Entry("UTF8", "PLAIN", "0xA", 0, "a"), 2: Entry("BYTES", "PLAIN", "0x12", 0, "b"),
                3: Entry("UTF8", "REPEATED", "0x1A", 2, "c", "n_c"),
                4: Entry("BYTES", "REPEATED", "0x22", 3, "d", "n_d"),
            ]
        )
        let unchecked = try dispatch(
            of: "syntax = \"proto2\"; message M { optional string a = 1; repeated string b = 2; }"
        )
        #expect(unchecked[1] == Entry("BYTES", "MARKED", "0xA", 1, "a", "has_a"))
        #expect(unchecked[2] == Entry("BYTES", "REPEATED", "0x12", 1, "b", "n_b"))
    }

    @Test func messagesAndMaps() throws {
        let fields = "int32 z = 1; Sub a = 2; repeated Sub b = 3; map<string, Sub> c = 4; map<int32, E> d = 20;"
        #expect(
            try dispatch(of: proto3(fields)) == [
                1: Entry("VARINT32", "PLAIN", "0x8", 0, "z"), 2: Entry("MESSAGE", "PLAIN", "0x12", 1, "a"),
                3: Entry("MESSAGE", "REPEATED", "0x1A", 2, "b", "n_b"),
                4: Entry("MESSAGE", "MAP", "0x22", 3, "c", "n_c"),
                20: Entry("MESSAGE", "MAP", "0x1A2", 4, "d", "n_d"),
            ]
        )
    }

    @Test func membersOfAOneofStoreTheirNumber() throws {
        let entries = try dispatch(
            of: proto3("oneof o { int32 a = 7; Sub b = 8; string c = 255; string d = 256; bytes e = 2047; }")
        )
        #expect(entries[7] == Entry("VARINT32", "MARKED", "0x38", 7, "a", "o_case"))
        #expect(
            entries[8] == Entry("MESSAGE", "MARKED", "0x42", 1, "b", "o_case"),
            "a message's index leads to its table"
        )
        // A number that does not fit into a byte has no entry: field 2047 would have the slot of 255, which is free.
        #expect(entries[31]?.tag == "0xFFA" && entries[31]?.detail == 255)
        #expect(entries[16] == nil)
        #expect(entries.count == 3)
        let high = try dispatch(of: proto3("oneof o { int32 a = 256; int32 b = 271; } string free = 272;"))
        #expect(high == [16: Entry("UTF8", "PLAIN", "0x1182", 0, "free")])
    }

    @Test func aMessagesIndexMustFitAByte() throws {
        let numbers = (1...255).map { "int32 f\($0) = \($0 + 2000);" }.joined(separator: " ")
        let schema = proto3("\(numbers) Sub a = 300;")
        #expect(try dispatch(of: schema).values.contains(Entry("MESSAGE", "PLAIN", "0x12E2", 0, "a")))
        let behind = proto3(
            (1...255).map { "int32 f\($0) = \($0 + 30);" }.joined(separator: " ") + " Sub a = 1; Sub b = 286;"
        )
        let entries = try dispatch(of: behind)
        #expect(entries[1] == Entry("MESSAGE", "PLAIN", "0xA", 0, "a"))
        #expect(!entries.values.contains { $0.offset == "b" })
        #expect(entries.values.allSatisfy { $0.detail <= 255 })
    }

    /// Numbers of closed enums have to be checked one by one.
    @Test func closedEnumsAreLookedUp() throws {
        let schema = """
            syntax = "proto2"; enum E { ZERO = 0; ONE = 1; }
            message M { optional E a = 1; repeated E b = 2; map<int32, E> c = 3; optional int32 d = 4; }
            """
        #expect(try dispatch(of: schema) == [4: Entry("VARINT32", "MARKED", "0x20", 1, "d", "has_d")])
    }

    @Test func keysAndValuesOfEntriesAreAlwaysThere() throws {
        let entries = try dispatch(of: proto3("map<string, int64> a = 1;"), message: "pb__m__aentry_x129ade97")
        #expect(
            entries == [1: Entry("UTF8", "PLAIN", "0xA", 0, "key"), 2: Entry("VARINT64", "PLAIN", "0x10", 0, "value")]
        )
    }

    /// The decoder looks them up, and reads their fields up to the end tag.
    @Test func groupsHaveTagsOfTheirOwn() throws {
        let schema = "syntax = \"proto2\"; message M { optional group G = 1 {} repeated group H = 2 {} }"
        #expect(try dispatch(of: schema) == [:])
        let text = try source(schema)
        #expect(text.contains("LIFELINE_FORM(LIFELINE_PRESENCE_POINTER, LIFELINE_TYPE_GROUP)"))
        #expect(text.contains(".flags = LIFELINE_FIELD_GROUP | LIFELINE_FIELD_NAMED_BY_TYPE, .form = 0,"))
        #expect(
            text.contains(".encoded_tag = 0x0b00000000000001") && text.contains(".encoded_tag = 0x1300000000000001")
        )
    }

    // MARK: Enums

    /// Joined by underscores, the full names of all three would be one.
    @Test func enumsHaveDifferentNames() throws {
        let text = try source(
            """
            syntax = "proto3"; package a; message b { enum c { INNER = 0; } c x = 1; } enum b__c { OUTER = 0; }
            message M { b__c f = 1; b.c g = 2; b.c h = 3; b_.c i = 4; } message b_ { enum c { OTHER = 0; } }
            """
        )
        // The name of the enum, and the name of its only value.
        let definition = /static const char (enum_\d+)__name_text\[\] = "(\w+)";/
        let values = text.matches(of: definition).map { ("&\($0.output.1)", String($0.output.2)) }
        #expect(values.count == 3)
        let valueOfEnum = Dictionary(values) { first, second in "\(first) and \(second)" }
        let field = /offsetof\(A__M, ([f-i])\),[^}]*\.enumeration = (&\w+)\}/
        let valueOfField = text.matches(of: field).map { "\($0.output.1) \(valueOfEnum[String($0.output.2)] ?? "")" }
        #expect(valueOfField == ["f OUTER", "g INNER", "h INNER", "i OTHER"])
    }

    @Test func enumsHaveTheFirstNameOfEachNumberAndTheOthersBehind() throws {
        let text = try source(
            """
            syntax = "proto3"; enum E { option allow_alias = true; A = 0; BB = 1; CCC = 0; D = -1; } message M { E e = 1; }
            """
        )
        #expect(text.contains("enum_0_numbers[] = {-1, 0, 1};"))
        #expect(text.contains("enum_0_alias_numbers[] = {0};"))
        #expect(text.contains(#"enum_0__name_text[] = "D\000A\000BB\000CCC";"#))
        #expect(text.contains("enum_0__name_entries[] = {{0, 1}, {2, 1}, {4, 2}, {7, 3}};"))
        #expect(text.contains("enum_0__name_order[] = {1, 0, 2, 3};") && text.contains(".count = 3, .flags = 0}"))
    }

    // MARK: Names

    @Test func namesStandInOneText() throws {
        let text = try source(proto3(#"int32 foo_bar = 1; int32 b = 2 [json_name = "\"?"]; int32 c = 3;"#))
        #expect(text.contains(#"pb__m__name_text[] = "foo_bar\000fooBar\000b\000\042\077\000c";"#))
        #expect(text.contains("pb__m__name_entries[] = {{0, 7}, {8, 6}, {15, 1}, {17, 2}, {20, 1}, {20, 1}};"))
        #expect(text.contains("pb__m__name_order[] = {2, 4, 3, 1, 0};"))
        #expect(text.contains(".flags = LIFELINE_MESSAGE_NEEDS_NAME_SEARCH,"))
        #expect(try !source(proto3("int32 foo_bar = 1;")).contains("NAME_SEARCH"))
    }

    @Test func theFirstFieldWithANameInJSONHasIt() throws {
        let text = try source(#"syntax = "proto2"; message M { optional int32 a = 1; optional int32 a_ = 2; }"#)
        #expect(text.contains(#"pb__m__name_text[] = "a\000a_";"#) && text.contains("pb__m__name_order[] = {0, 2};"))
        #expect(text.contains(".flags = LIFELINE_MESSAGE_NEEDS_NAME_SEARCH,"))
    }

    @Test func codeNamesTheVersionThatItIsFor() throws {
        let text = try source(proto3("int32 a = 1;"))
        let version = GeneratorOptions.interfaceVersion
        #expect(text.contains("#if LIFELINE_INTERFACE_VERSION != \(version)\n#error "))
        let header = repository.appending(path: "Sources/CLifelineMessages/include/lifeline_table.h")
        let table = try String(contentsOf: header, encoding: .utf8)
        #expect(table.contains("\n#define LIFELINE_INTERFACE_VERSION \(version)\n"))
    }

    // MARK: Description of the file

    /// Without JSON names that follow from the other names, but with unknown options.
    @Test func theFileIsDescribed() throws {
        let text = try source(
            """
            syntax = "proto3";
            import "google/protobuf/any.proto";
            import "google/protobuf/descriptor.proto";
            extend google.protobuf.MessageOptions { int32 custom = 50000; }
            // A comment.
            message M {
              option (custom) = 7;
              message N {}
              map<string, N> foo_bar = 1;
              int32 other = 2 [json_name = "another"];
            }
            """
        )
        // An extension refers to the table of its message; nothing refers to the other file.
        #expect(text.contains("extern const LifelineFile lifeline_file_google_2fprotobuf_2fdescriptor;"))
        #expect(text.contains("extern const LifelineFile lifeline_file_google_2fprotobuf_2fany LIFELINE_WEAK;"))
        // Without the message that represents the extension.
        let tables = try #require(text.firstMatch(of: /_messages\[\] = {\n([^}]*)};/)).output.1
        let pattern = /\s*&pb__m__table,\n    &pb__m__n_\w+__table,\n    &pb__m__foo_bar_entry_\w+__table,\n/
        #expect(tables.wholeMatch(of: pattern) != nil)
        #expect(text.contains("    .file = &lifeline_file_test,\n"))

        let literal = try #require(text.firstMatch(of: /lifeline_file_test_bytes\[\] =\n([^;]*);/)).output.1
        var bytes: [UInt8] = []
        for line in literal.split(separator: "\n") {
            var rest = line.drop { $0 == " " }.dropFirst().dropLast()
            while let character = rest.popFirst() {
                if character == "\\" {
                    bytes.append(try #require(UInt8(rest.prefix(3), radix: 8)))
                    rest.removeFirst(3)
                } else {
                    bytes += character.utf8
                }
            }
        }
        #expect(text.contains(".bytes = lifeline_file_test_bytes, .count = \(bytes.count),"))
        let file = try Google_Protobuf_FileDescriptorProto(serializedBytes: bytes)
        #expect(file.name == "test.proto" && !file.hasSourceCodeInfo)
        let message = try #require(file.messageType.first)
        #expect(message.field.map(\.name) == ["foo_bar", "other"])
        #expect(message.field.map(\.jsonName) == ["", "another"])
        #expect(Array(message.options.unknownFields.data) == [0x80, 0xB5, 0x18, 7])
    }

    /// Files without messages have descriptors, too, because others import them.
    @Test func filesWithoutMessagesAreDescribed() throws {
        let text = try source(#"syntax = "proto3"; enum E { A = 0; }"#)
        #expect(text.contains("#include \"lifeline_table.h\""))
        #expect(text.contains("    .messages = NULL, .message_count = 0};"))
    }

    // MARK: Groups

    private func groups(of schema: String) throws -> [Group] {
        let text = try source(schema)
        guard let start = text.range(of: "LifelineFieldGroup pb__m__groups[] = {") else { return [] }
        let end = try #require(text.range(of: "};\n", range: start.upperBound..<text.endIndex))
        let pattern =
            /\.first_field = (\d+), \.offset = offsetof\(\w+, (\w+)\),\s+\.size = offsetof\(\w+, (\w+)\) \+ sizeof\(\(\(\w+ \*\)0\)->(\w+)\) - offsetof\(\w+, (\w+)\)/
        return try text[start.upperBound..<end.lowerBound].matches(of: pattern).map { match in
            #expect(match.output.3 == match.output.4 && match.output.2 == match.output.5)
            return Group(
                firstField: try #require(Int(match.output.1)),
                members: [String(match.output.2), String(match.output.3)]
            )
        }
    }

    /// The compiler checks each group against the struct.
    @Test func theOrderOfMembersIsAsserted() throws {
        let text = try source(proto3(fields(1...24)))
        let pattern = /_Static_assert\(\s+offsetof\(Pb__M, (\w+)\) <= offsetof\(Pb__M, (\w+)\),\s+"order of/
        let asserted = text.matches(of: pattern).map { [String($0.output.1), String($0.output.2)] }
        #expect(asserted == [["f1", "f8"], ["f9", "f16"], ["f17", "f24"]])
    }

    private func fields(_ numbers: some Sequence<Int>, type: String = "int32") -> String {
        numbers.map { "\(type) f\($0) = \($0);" }.joined(separator: " ")
    }

    @Test func messagesOfFewFieldsHaveNoGroups() throws {
        #expect(try groups(of: proto3("")) == [])
        #expect(try groups(of: proto3(fields(1...23))) == [])
        #expect(try table(of: "pb__m", in: source(proto3(fields(1...23)))).contains { $0.contains(".groups = NULL") })
        #expect(
            try groups(of: proto3(fields(1...24))) == [
                Group(firstField: 0, members: ["f1", "f8"]), Group(firstField: 8, members: ["f9", "f16"]),
                Group(firstField: 16, members: ["f17", "f24"]),
            ]
        )
        let table = try table(of: "pb__m", in: source(proto3(fields(1...24))))
        #expect(
            table.contains { $0.contains(".groups = pb__m__groups") }
                && table.contains { $0.contains(".group_count = 3,") }
        )
    }

    @Test func theLastGroupMayBeSmall() throws {
        #expect(try groups(of: proto3(fields(1...25))).last == Group(firstField: 24, members: ["f25", "f25"]))
    }

    @Test func everyFieldIsInExactlyOneGroup() throws {
        for count in [24, 31, 32, 33, 100] {
            let starts = try groups(of: proto3(fields(1...count))).map(\.firstField)
            #expect(starts == Array(stride(from: 0, to: count, by: 8)))
        }
    }

    /// A group reaches from the first to the last of its members in the struct, which has them as they were declared.
    @Test func membersStandAsTheyWereDeclared() throws {
        let reversed = try groups(of: proto3(fields((1...24).reversed())))
        #expect(reversed.map(\.members) == [["f8", "f1"], ["f16", "f9"], ["f24", "f17"]])
    }

    /// The presence flag of a field is before it.
    @Test func quantifiersBelongToTheirGroups() throws {
        let lists = try groups(of: proto3(fields(1...24, type: "repeated int32")))
        #expect(lists[0].members == ["n_f1", "f8"])
        let flags = try groups(of: "syntax = \"proto2\"; message M { \(fields(1...24, type: "optional int32")) }")
        #expect(flags[2].members == ["has_f17", "f24"])
    }

    /// Oneofs and their cases are after all other members: a group with one of their members reaches to it.
    @Test func oneofsStandAtTheEnd() throws {
        let schema = proto3(fields(1...4) + " oneof o { int32 a = 5; int32 b = 6; } " + fields(7...24))
        let all = try groups(of: schema)
        #expect(all[0].members[0] == "f1" && ["a", "b"].contains(all[0].members[1]))
        #expect(all[1].members == ["f9", "f16"])
        let only = try groups(of: proto3("oneof o { \(fields(1...24)) }"))
        #expect(only.allSatisfy { $0.members[0] == "o_case" })
    }
}
