import LifelineDescriptorTypes
import LifelineMessages
import LifelineProtos
import LifelineReflection
import LifelineTestSupport
import LifelineWellKnownTypes
import TestProtos
import Testing

/// Reading and changing messages by their descriptors.
@Suite struct DynamicMessageTests {
    private typealias Singular = Test_Scalars_Proto3_Singular

    /// The same type, linked and read.
    private static func types(_ name: String) throws -> [MessageDescriptor] {
        let pool = try DescriptorPool(Schemas.set())
        return [try #require(Schemas.linked.message(named: name)), try #require(pool.message(named: name))]
    }

    private func field(_ name: String, _ message: DynamicMessage) throws -> FieldDescriptor {
        try #require(message.descriptor.field(named: name))
    }

    // MARK: Generated messages

    @Test func generatedMessagesAreViewed() throws {
        let point = Test_Scalars_Proto3_Point.with { ($0.x, $0.label) = (3, "here") }
        let message = DynamicMessage(Singular.with { ($0.aString, $0.aPoint) = ("text", point) })
        #expect(message["a_string"] == .string("text") && message["a_int32"] == .int32(0))
        #expect(message["a_point"]?.messageValue?["label"] == .string("here"))
        #expect(message["a_point"] == .message(DynamicMessage(point)))
        #expect(message.presentFields.map(\.name) == ["a_string", "a_point"])
        #expect(try message.message(as: Singular.self).aPoint == point)
    }

    @Test func messagesBecomeGeneratedOnes() throws {
        for type in try Self.types("test.scalars.proto3.Singular") {
            var message = DynamicMessage(type)
            message["a_sint64"] = .int64(-5)
            message["a_bytes"] = .bytes([1, 2])
            let generated = try message.message(as: Singular.self)
            #expect(generated == .with { ($0.aSint64, $0.aBytes) = (-5, [1, 2]) })
            let error = #expect(throws: MessageError.self) { try message.message(as: Google_Protobuf_Any.self) }
            #expect(error?.code == .typeMismatch)
        }
    }

    @Test func copiesAreIndependent() throws {
        let generated = Singular.with { $0.aString = "before" }
        var message = DynamicMessage(generated)
        let copy = message
        message["a_string"] = .string("after")
        #expect(generated.aString == "before" && copy["a_string"] == .string("before"))
        #expect(message["a_string"] == .string("after") && message != copy)
        message["a_string"] = .string("before")
        #expect(message == copy && message.hashValue == copy.hashValue)
    }

    // MARK: Fields

    @Test func fieldsAreSetAndCleared() throws {
        var random = SeededGenerator(seed: 1)
        for name in ["proto3.Singular", "proto3.Optional", "proto3.Choice", "proto2.Unpacked", "proto3.Packed"] {
            for type in try Self.types("test.scalars.\(name)") {
                for _ in 0..<10 {
                    let source = try Schemas.random(type, using: &random)
                    var message = DynamicMessage(type)
                    for field in source.presentFields { try message.set(field, to: source[field]) }
                    #expect(message == source)
                    for field in source.presentFields {
                        #expect(message.has(field))
                        message.clear(field)
                        #expect(!message.has(field) && message[field] == DynamicMessage(type)[field])
                    }
                    #expect(try message == DynamicMessage(type) && message.serializedBytes() == [])
                }
            }
        }
    }

    @Test func oneofsHoldOneField() throws {
        for type in try Self.types("test.scalars.proto3.Choice") {
            var message = DynamicMessage(type)
            let oneof = try #require(type.oneofs.first)
            #expect(message.presentField(of: oneof) == nil)
            for field in oneof.fields {
                let value = message[field]
                try message.set(field, to: value)
                #expect(message.presentField(of: oneof) == field && message[field] == value)
                #expect(message.presentFields.count == 1)
            }
        }
    }

    @Test func wrongValuesAreRefused() throws {
        for type in try Self.types("test.scalars.proto3.Singular") {
            var message = DynamicMessage(type)
            let other = DynamicMessage(Google_Protobuf_Any())
            for field in type.fields {
                let kinds: [FieldValue] = [
                    .bool(true), .int32(1), .int64(1), .uint32(1), .uint64(1), .float(1), .double(1), .string("a"),
                    .bytes([1]), .enumeration(1), .message(other), .list([]), .map([:]),
                ]
                var acceptedCount = 0
                for value in kinds {
                    do throws(MessageError) {
                        try message.set(field, to: value)
                        acceptedCount += 1
                    } catch {
                        #expect(error.code == .unexpectedValue && error.message.contains(field.fullName))
                    }
                }
                #expect(acceptedCount == (field.type == .message ? 0 : 1), "\(field.name)")
            }
            #expect(throws: MessageError.self) { try message.set("missing", to: .bool(true)) }
            let foreign = try #require(other.descriptor.field(number: 1))
            let error = #expect(throws: MessageError.self) { try message.set(foreign, to: .string("")) }
            #expect(error?.code == .unknownField)
        }
    }

    @Test func wrongSubscriptsEndTheProgram() async {
        await #expect(processExitsWith: .failure) {
            var message = DynamicMessage(Google_Protobuf_Any())
            message["value"] = .int32(1)
        }
        await #expect(processExitsWith: .failure) {
            let message = DynamicMessage(Google_Protobuf_Any())
            guard let field = MessageDescriptor(Google_Protobuf_Timestamp.self).field(number: 1) else { return }
            _ = message[field]
        }
        await #expect(processExitsWith: .failure) { _ = DynamicMessage(Test_Extending_Extensions_unit()) }
        await #expect(processExitsWith: .failure) {
            let message = DynamicMessage(Singular())
            guard let field = message.descriptor.field(named: "a_double") else { return }
            _ = message.count(of: field)
        }
    }

    /// protoc accepts fields whose name in JSON is another field's in the file.
    @Test(arguments: [[1, 2, 3, 4], [4, 3, 2, 1]] as [[Int32]]) func eachFormatPrefersItsOwnNames(numbers: [Int32])
        throws
    {
        let file = Google_Protobuf_FileDescriptorProto.proto3 { file in
            file.messageType = [
                .with { type in
                    type.name = "M"
                    type.field = [
                        .init("foo_bar", numbers[0]), .init("first", numbers[1]), .init("second", numbers[2]),
                        .init("third_one", numbers[3]),
                    ]
                    type.field[1].jsonName = "foo_bar"
                    type.field[2].jsonName = "third_one"
                }
            ]
        }
        let type = try #require(DescriptorPool(.of(file)).message(named: "test.M"))
        var message = DynamicMessage(type)
        for (name, value) in zip(["foo_bar", "first", "second", "third_one"], 1...4) {
            message[name] = .int32(Int32(value))
        }
        let members = [#""fooBar":1"#, #""foo_bar":2"#, #""third_one":3"#, #""thirdOne":4"#]
        for members in [members, members.reversed()] {
            #expect(try DynamicMessage(type, jsonString: "{\(members.joined(separator: ","))}") == message)
        }
        #expect(try DynamicMessage(type, jsonString: message.jsonString()) == message)
        let lines = ["foo_bar: 1", "first: 2", "second: 3", "third_one: 4"]
        #expect(try DynamicMessage(type, textFormatString: lines.joined(separator: " ")) == message)
        #expect(try DynamicMessage(type, textFormatString: message.textFormatString()) == message)
    }

    /// protoc accepts that a name is one field's in the .proto file and another's in JSON, and two fields' in JSON.
    @Test func theFirstFieldWithAnAmbiguousNameHasIt() throws {
        for type in try Self.types("test.names.CWords") {
            for json in [
                #"{"bool":"a"}"#, #"{"errno":"b","bool":"a"}"#, #"{"bool":"a","errno":"b"}"#,
                #"{"int":"c","bool":"a"}"#,
            ] {
                let message = try DynamicMessage(type, jsonString: json)
                #expect(message["bool"] == .string("a") && !message.has("bool_"), "\(json)")
            }
            #expect(try DynamicMessage(type, jsonString: #"{"bool_":"d"}"#)["bool_"] == .string("d"))
        }
    }

    @Test func groupsAreNamedByTheirTypesInText() throws {
        let file = Google_Protobuf_FileDescriptorProto.with { file in
            (file.name, file.syntax) = ("test.proto", "proto2")
            file.messageType = [
                .with { type in
                    type.name = "M"
                    type.nestedType = [
                        .with {
                            $0.name = "Part"
                            $0.field = [.init("a", 1)]
                        }
                    ]
                    type.field = [.init("part", 1, .group, ".M.Part"), .init("other", 2)]
                    type.field[1].jsonName = "part"
                    type.options.deprecatedLegacyJsonFieldConflicts = true
                }
            ]
        }
        let type = try #require(try DescriptorPool(.of(file)).message(named: "M"))
        var message = DynamicMessage(type)
        try message.set("other", to: .int32(2))
        try message.update(field("part", message)) { try $0.set("a", to: .int32(1)) }
        let text = message.textFormatString()
        #expect(text == "Part {\n  a: 1\n}\nother: 2\n")
        #expect(try DynamicMessage(type, textFormatString: text) == message)
        #expect(try DynamicMessage(type, textFormatString: "other: 2 part { a: 1 }") == message)
    }

    @Test func keysThatAreNotUTF8AreFoundByTheirBytes() throws {
        let name = "test.scalars.proto3.MapKeys"
        for type in try Self.types(name) {
            let map = try #require(type.fields.first { $0.mapKey?.type == .string })
            var source = DynamicMessage(type)
            let (low, high) = (FieldValue.string("\u{1F600}"), FieldValue.string("z"))
            var random = SeededGenerator(seed: 1)
            let value = try Schemas.value(of: #require(map.mapValue), depth: 1, using: &random)
            for key in [low, high] { try source.setValue(of: map, forKey: key, to: value) }
            // "z" becomes FF, which is read as U+FFFD: lower than the other key as text, and higher as bytes.
            let bytes = try source.serializedBytes().map { $0 == UInt8(ascii: "z") ? 0xFF : $0 }
            var message = try DynamicMessage(
                type,
                serializedBytes: bytes,
                options: DecodingOptions(validatesUTF8: false)
            )
            #expect(message.count(of: map) == 2)
            #expect(message.value(of: map, forKey: low) == value && message.value(of: map, forKey: high) == nil)
            #expect(message.value(of: map, forKey: .string("\u{FFFD}")) == nil)
            try message.setValue(of: map, forKey: low, to: value)
            #expect(message.count(of: map) == 2)
            try message.setValue(of: map, forKey: .string("\u{FFFD}"), to: value)
            #expect(message.count(of: map) == 3 && message.value(of: map, forKey: .string("\u{FFFD}")) == value)
        }
    }

    @Test func textIsComparedByItsBytes() throws {
        let (composed, decomposed) = ("\u{E9}", "e\u{301}")
        #expect(composed == decomposed && FieldValue.string(composed) != .string(decomposed))
        let type = MessageDescriptor(Google_Protobuf_Struct.self)
        let fields = try #require(type.field(named: "fields"))
        let value = FieldValue.message(DynamicMessage(Google_Protobuf_Value.with { $0.boolValue = true }))
        var message = DynamicMessage(type)
        try message.set(fields, to: .map([.string(composed): value, .string(decomposed): value]))
        #expect(message.count(of: fields) == 2 && message[fields].mapValue?.count == 2)
        let copy = message
        try message.set(fields, to: message[fields])
        #expect(message == copy)
    }

    /// Compared by bits, like generated messages.
    @Test func numbersAreComparedByTheirBits() throws {
        let numbers: [Double] = [0, -0.0, 1, .nan, -.nan, .infinity]
        for type in try Self.types("test.scalars.proto3.Singular") {
            for (left, right) in numbers.flatMap({ left in numbers.map { (left, $0) } }) {
                let isSame = left.bitPattern == right.bitPattern
                let (value, other) = (FieldValue.double(left), FieldValue.double(right))
                #expect((value == other) == isSame && Set([value, other]).count == (isSame ? 1 : 2))
                let (float, otherFloat) = (FieldValue.float(Float(left)), FieldValue.float(Float(right)))
                #expect((float == otherFloat) == isSame)
                #expect((FieldValue.list([value]) == .list([other])) == isSame)
                #expect((FieldValue.map([.int32(1): value]) == .map([.int32(1): other])) == isSame)
                var (message, otherMessage) = (DynamicMessage(type), DynamicMessage(type))
                try message.set("a_double", to: value)
                try otherMessage.set("a_double", to: other)
                #expect((message == otherMessage) == isSame && message["a_double"] == value)
                #expect(Set([message, otherMessage]).count == (isSame ? 1 : 2))
                #expect((FieldValue.message(message) == .message(otherMessage)) == isSame)
            }
        }
    }

    @Test func copiesOfAnotherPoolMayBeDeepAndOfAnyText() throws {
        let pool = try DescriptorPool(Schemas.set())
        let type = try #require(pool.message(named: "test.imports.Tree"))
        var tree = DynamicMessage(Test_Imports_Tree())
        let left = try #require(tree.descriptor.field(named: "left"))
        for _ in 0..<200 {
            var outer = DynamicMessage(tree.descriptor)
            try outer.set(left, to: .message(tree))
            tree = outer
        }
        let copy = try tree.message(as: type)
        #expect(try copy.message(as: Test_Imports_Tree.self) == tree.message(as: Test_Imports_Tree.self))

        let malformed = try DynamicMessage(
            MessageDescriptor(Google_Protobuf_FieldMask.self),
            serializedBytes: [0x0A, 1, 0xFF],
            options: DecodingOptions(validatesUTF8: false)
        )
        let mask = try #require(pool.message(named: "google.protobuf.FieldMask"))
        #expect(try malformed.message(as: mask).serializedBytes() == [0x0A, 1, 0xFF])
    }

    @Test func submessagesAreChangedInPlace() throws {
        for type in try Self.types("test.scalars.proto3.Choice") {
            var message = DynamicMessage(type)
            let nested = try field("nested", message)
            try message.update(nested) { inner in
                try inner.update(field("nested", inner)) { try $0.set("a_string", to: .string("deep")) }
            }
            let copy = message
            try message.update(nested) { $0["a_double"] = .double(1) }
            #expect(copy["nested"]?.messageValue?["nested"]?.messageValue?["a_string"] == .string("deep"))
            #expect(message["nested"]?.messageValue?["a_double"] == .double(1))
            #expect(try DynamicMessage(type, serializedBytes: message.serializedBytes()) == message)

            var kept: DynamicMessage?
            try message.update(nested) {
                $0["a_string"] = .string("kept")
                kept = $0
            }
            try message.update(nested) { $0["a_string"] = .string("changed") }
            #expect(kept?["a_string"] == .string("kept"))
            try message.update(nested) { $0 = DynamicMessage(type) }
            #expect(message["nested"] == .message(DynamicMessage(type)) && message.has(nested))
            struct Failure: Error {}
            #expect(throws: Failure.self) { try message.update(nested) { _ in throw Failure() } }
            #expect(throws: MessageError.self) { try message.update(field("a_string", message)) { _ in } }
        }
    }

    @Test func submessagesOfAnotherTypeAreRefused() throws {
        for type in try Self.types("test.scalars.proto3.Choice") {
            var message = DynamicMessage(type)
            message["nested"] = .message(DynamicMessage(type))
            let error = #expect(throws: MessageError.self) {
                try message.update(field("nested", message)) { inner in
                    try inner.set("a_string", to: .string("lost"))
                    inner = DynamicMessage(Google_Protobuf_Any.with { $0.value = [1] })
                }
            }
            #expect(error?.code == .typeMismatch && error?.message.contains("google.protobuf.Any") == true)
            #expect(message["nested"] == .message(DynamicMessage(type)))
            struct Failure: Error {}
            #expect(throws: Failure.self) {
                try message.update(field("nested", message)) { inner in
                    inner = DynamicMessage(Google_Protobuf_Any())
                    throw Failure()
                }
            }
            #expect(message["nested"] == .message(DynamicMessage(type)))
        }
        var list = DynamicMessage(Google_Protobuf_ListValue.with { $0.values = [1, 2] })
        let error = #expect(throws: MessageError.self) {
            try list.updateElement(of: field("values", list), at: 0) { $0 = DynamicMessage(Google_Protobuf_Any()) }
        }
        #expect(error?.code == .typeMismatch)
        list.removeElement(of: try field("values", list), at: 0)
        #expect(try list.jsonString() == "[2]")
    }

    @Test func closedEnumsHoldDeclaredNumbers() throws {
        let file = Google_Protobuf_FileDescriptorProto.with { file in
            (file.name, file.syntax) = ("test.proto", "proto2")
            file.enumType = [
                .with { enumeration in
                    enumeration.name = "E"
                    enumeration.value = RepeatedField(
                        [("A", 0), ("B", 5), ("C", -3)].map { name, number in
                            .with { ($0.name, $0.number) = (name, number) }
                        }
                    )
                }
            ]
            file.messageType = [
                .with { type in
                    type.name = "M"
                    type.field = [
                        .init("single", 1, .enum, ".E"), .init("list", 2, .enum, ".E", isRepeated: true),
                        .init("map", 3, .message, ".M.MapEntry", isRepeated: true),
                    ]
                    type.nestedType = [
                        .with {
                            $0.name = "MapEntry"
                            $0.options.mapEntry = true
                            $0.field = [.init("key", 1), .init("value", 2, .enum, ".E")]
                        }
                    ]
                }
            ]
        }
        var message = DynamicMessage(try #require(try DescriptorPool(.of(file)).message(named: "M")))
        let (list, map) = (try field("list", message), try field("map", message))
        for number: Int32 in [0, 5, -3] {
            let value = FieldValue.enumeration(number)
            try message.set("single", to: value)
            try message.append(value, to: list)
            try message.setValue(of: map, forKey: .int32(1), to: value)
            #expect(message["single"] == value && message.value(of: map, forKey: .int32(1)) == value)
        }
        let before = message
        for number: Int32 in [1, 6, -4, .max] {
            let value = FieldValue.enumeration(number)
            let attempts: [() throws -> Void] = [
                { try message.set("single", to: value) }, { try message.append(value, to: list) },
                { try message.set("list", to: .list([.enumeration(0), value])) },
                { try message.setElement(of: list, at: 0, to: value) },
                { try message.setValue(of: map, forKey: .int32(1), to: value) },
                { try message.set("map", to: .map([.int32(2): value])) },
            ]
            for attempt in attempts {
                let error = #expect(throws: MessageError.self) { try attempt() }
                #expect(error?.code == .unexpectedValue)
            }
        }
        #expect(message == before)
    }

    // MARK: Repeated fields and maps

    @Test func entriesOfMapsAreMessages() throws {
        for type in try Self.types("google.protobuf.Struct") {
            let entryType = try #require(type.field(named: "fields")?.messageType)
            var entry = DynamicMessage(entryType)
            let value = try #require(entryType.field(named: "value")?.messageType)
            #expect(entry["key"] == .string("") && entry["value"] == .message(DynamicMessage(value)))
            #expect(entry.presentFields.isEmpty && !entry.has("key"))
            entry.clear(try field("key", entry))
            let mask = Google_Protobuf_FieldMask.with { $0.paths = ["key", "value.string_value"] }
            try entry.merge(from: DynamicMessage(entryType), fieldMask: mask)
            entry.trim(keeping: mask)
            try entry.set("key", to: .string("a"))
            #expect(entry["key"] == .string("a") && entry["value"] == .message(DynamicMessage(value)))
        }
    }

    @Test func elementsAreChanged() throws {
        for type in try Self.types("test.scalars.proto3.Packed") {
            for field in type.fields where field.type == .int32 {
                var message = DynamicMessage(type)
                for number in 0..<100 { try message.append(.int32(Int32(number)), to: field) }
                let copy = message
                try message.setElement(of: field, at: 50, to: .int32(-1))
                message.removeElement(of: field, at: 0)
                #expect(message.count(of: field) == 99 && message.element(of: field, at: 49) == .int32(-1))
                #expect(copy[field].listValue == (0..<100).map { .int32(Int32($0)) })
                #expect(throws: MessageError.self) { try message.append(.int64(1), to: field) }
                #expect(throws: MessageError.self) { try message.setElement(of: field, at: 0, to: .bool(true)) }
                try message.set(field, to: .list([]))
                #expect(!message.has(field))
            }
        }
    }

    @Test func messagesInListsAreChangedInPlace() throws {
        var message = DynamicMessage(Google_Protobuf_ListValue.with { $0.values = [nil, nil] })
        let values = try field("values", message)
        try message.updateElement(of: values, at: 1) { $0["string_value"] = .string("second") }
        #expect(try message.jsonString() == #"[null,"second"]"#)
        #expect(throws: MessageError.self) { try message.update(values) { _ in } }
    }

    @Test func mapsAreSorted() throws {
        for type in try Self.types("google.protobuf.Struct") {
            var message = DynamicMessage(type)
            let fields = try field("fields", message)
            let value = try #require(fields.mapValue?.messageType)
            for key in ["b", "c", "a", "b"] {
                var content = DynamicMessage(value)
                content["string_value"] = .string(key)
                try message.setValue(of: fields, forKey: .string(key), to: .message(content))
            }
            #expect(try message.jsonString() == #"{"a":"a","b":"b","c":"c"}"#)
            #expect(message.value(of: fields, forKey: .string("c"))?.messageValue?["string_value"] == .string("c"))
            #expect(message.value(of: fields, forKey: .string("d")) == nil)
            #expect(message.value(of: fields, forKey: .int32(1)) == nil)
            let copy = message
            try message.setValue(of: fields, forKey: .string("b"), to: nil)
            try message.setValue(of: fields, forKey: .string("x"), to: nil)
            #expect(try message.jsonString() == #"{"a":"a","c":"c"}"# && copy.count(of: fields) == 3)
            var again = DynamicMessage(type)
            try again.set(fields, to: message[fields])
            #expect(again == message)
            #expect(throws: MessageError.self) { try message.setValue(of: fields, forKey: .bool(true), to: nil) }
            #expect(throws: MessageError.self) {
                try message.setValue(of: fields, forKey: .string("a"), to: .string("a"))
            }
        }
    }

    @Test func keysOfAllTypesAreSorted() throws {
        for name in ["test.scalars.proto3.MapKeys", "test.scalars.proto2.Maps"] {
            for type in try Self.types(name) where !type.fields.isEmpty {
                var random = SeededGenerator(seed: 3)
                for _ in 0..<20 {
                    let message = try Schemas.random(type, using: &random)
                    // Decoding sorts them, so they are sorted.
                    let bytes = try message.serializedBytes()
                    #expect(try DynamicMessage(type, serializedBytes: bytes).serializedBytes() == bytes)
                }
            }
        }
    }

    // MARK: Formats

    @Test func unknownFieldsAreKept() throws {
        let type = MessageDescriptor(Test_Empty_Nothing.self)
        var message = try DynamicMessage(type, serializedBytes: [8, 1])
        #expect(message.unknownFields == [8, 1])
        #expect(try message.serializedBytes() == [8, 1])
        message.removeUnknownFields()
        #expect(message == DynamicMessage(type))
    }

    @Test func messagesAreMergedAndDelimited() throws {
        for type in try Self.types("google.protobuf.FieldMask") {
            var message = try DynamicMessage(type, jsonString: #""a""#)
            try message.merge(serializedBytes: DynamicMessage(type, jsonString: #""b,c""#).serializedBytes())
            #expect(try message.jsonString() == #""a,b,c""#)
            #expect(try message.withDelimitedBytes { Array($0) } == [9] + message.serializedBytes())
            let before = message
            #expect(throws: MessageError.self) { try message.merge(serializedBytes: [10, 5]) }
            #expect(message == before)
        }
    }

    @Test func anyHoldsMessagesOfAPool() throws {
        let file = Google_Protobuf_FileDescriptorProto.proto3 { file in
            file.messageType = [
                .with {
                    $0.name = "M"
                    $0.field = [.init("a", 1)]
                }
            ]
        }
        let pool = try DescriptorPool(.of(file))
        let types = MessageRegistry(pool)
        let json = #"{"@type":"type.googleapis.com/test.M","a":5}"#
        let any = try Google_Protobuf_Any(jsonString: json, options: JSONDecodingOptions(types: types))
        #expect(any.value == [8, 5])
        var all = MessageRegistry.wellKnownTypes
        all.add(types)
        #expect(try any.jsonString(options: JSONEncodingOptions(types: all)) == json)
        #expect(throws: MessageError.self) { try any.jsonString() }

        let unpacked = try DynamicMessage(unpackingAny: any, with: pool)
        #expect(unpacked.descriptor.fullName == "test.M" && unpacked["a"] == .int32(5))
        #expect(throws: MessageError.self) { try any.unpacked(with: types) }
        let error = #expect(throws: MessageError.self) {
            try DynamicMessage(unpackingAny: any, with: DescriptorPool([Google_Protobuf_Any.self]))
        }
        #expect(error?.code == .unknownMessageType && error?.message.contains("test.M") == true)
    }

    @Test func descriptionsShowTheType() throws {
        let type = MessageDescriptor(Google_Protobuf_Duration.self)
        #expect(DynamicMessage(type).debugDescription == "google.protobuf.Duration {}")
        let message = try DynamicMessage(type, textFormatString: "seconds: 1")
        #expect(message.debugDescription == Google_Protobuf_Duration.with { $0.seconds = 1 }.debugDescription)
        #expect(FieldValue.list([.string("a"), .int32(1)]).description == #"["a", 1]"#)
    }

    @Test func manyThreadsReadLinkedDescriptors() async {
        await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<16 {
                group.addTask {
                    Schemas.types.allSatisfy { type in
                        DescriptorPool([type]).message(named: type.protoMessageName) != nil
                    }
                }
            }
            for await isFound in group { #expect(isFound) }
        }
    }
}
