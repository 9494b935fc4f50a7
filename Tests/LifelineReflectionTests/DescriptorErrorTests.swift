import LifelineDescriptorTypes
import LifelineMessages
import LifelineReflection
import Testing

private typealias File = Google_Protobuf_FileDescriptorProto
private typealias Field = Google_Protobuf_FieldDescriptorProto
private typealias Type = Google_Protobuf_DescriptorProto
private typealias EnumType = Google_Protobuf_EnumDescriptorProto

/// Invalid files are refused, with the position of the error.
@Suite struct DescriptorErrorTests {
    struct Case: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let code: DescriptorError.Code
        let place: String
        let files: [Google_Protobuf_FileDescriptorProto]

        fileprivate init(
            _ name: String,
            _ code: DescriptorError.Code,
            _ place: String = "test.proto",
            files: [File]
        ) {
            (testDescription, self.code, self.place, self.files) = (name, code, place, files)
        }

        fileprivate init(
            _ name: String,
            _ code: DescriptorError.Code,
            _ place: String = "test.proto",
            _ populate: (inout File) -> Void
        ) {
            self.init(name, code, place, files: [.proto3 { populate(&$0) }])
        }

        /// A file with a message M of these fields.
        fileprivate init(
            _ name: String,
            _ code: DescriptorError.Code,
            fields: [Field],
            _ populate: (inout Type) -> Void = { _ in }
        ) {
            self.init(name, code, "test.proto: test.M") { file in
                file.messageType = [
                    .with {
                        $0.name = "M"
                        $0.field = RepeatedField(fields)
                        populate(&$0)
                    }
                ]
            }
        }

        /// A file with an enum E of these values.
        fileprivate init(
            _ name: String,
            _ code: DescriptorError.Code,
            values: [(String, Int32)],
            _ populate: (inout EnumType) -> Void = { _ in }
        ) {
            self.init(name, code, "test.proto: test.") { file in
                file.enumType = [
                    .with {
                        $0.name = "E"
                        $0.value = RepeatedField(
                            values.map { name, number in .with { ($0.name, $0.number) = (name, number) } }
                        )
                        populate(&$0)
                    }
                ]
            }
        }
    }

    private static func importing(_ name: String, _ imports: String...) -> File {
        .proto3(name) { $0.dependency = RepeatedField(imports) }
    }

    private static func named(_ name: String) -> Type { .with { $0.name = name } }

    static let imports: [Case] = [
        Case(
            "missing import",
            .missingImport,
            "a.proto: there is no \"b.proto\"",
            files: [importing("a.proto", "b.proto")]
        ),
        Case("import of itself", .cyclicImport, "a.proto", files: [importing("a.proto", "a.proto")]),
        Case(
            "circle of imports",
            .cyclicImport,
            files: [
                importing("a.proto", "b.proto"), importing("b.proto", "test.proto"), importing("test.proto", "a.proto"),
            ]
        ),
        Case("two files", .duplicateFile, files: [.proto3 { _ in }, .proto3 { $0.messageType = [named("M")] }]),
        Case("public import", .malformed) { $0.publicDependency = [0] },
        Case("syntax", .unsupportedEdition) { $0.syntax = "proto4" },
        Case(
            "type that is not imported",
            .unknownType,
            "b.proto: test.B.a: test.A is declared in test.proto, which the file does not import",
            files: [
                .proto3 { $0.messageType = [named("A")] },
                .proto3("b.proto") {
                    $0.messageType = [
                        .with {
                            $0.name = "B"
                            $0.field = [.init("a", 1, .message, ".test.A")]
                        }
                    ]
                },
            ]
        ),
    ]

    static let names: [Case] = [
        Case("two messages", .duplicateName, "test.M") { $0.messageType = [named("M"), named("M")] },
        Case("a message and an enum", .duplicateName, "test.M") {
            $0.messageType = [named("M")]
            $0.service = [.with { $0.name = "M" }]
        },
        Case(
            "a message and a package",
            .duplicateName,
            "test",
            files: [
                .proto3 { _ in }, .proto3("b.proto", package: "") { $0.messageType = [named("test")] },
            ]
        ),
        Case(
            "a package and a message",
            .duplicateName,
            "test",
            files: [
                .proto3("a.proto", package: "") { $0.messageType = [named("test")] }, .proto3 { _ in },
            ]
        ),
        Case("values in the scope of their enum", .duplicateName, "test.M") {
            $0.messageType = [named("M")]
            $0.enumType = [
                .with { enumeration in
                    enumeration.name = "E"
                    enumeration.value = [.with { $0.name = "M" }]
                }
            ]
        },
        Case("two fields", .duplicateName, fields: [.init("a", 1), .init("a", 2)]),
        Case("a field and a oneof", .duplicateName, fields: [.init("a", 1)]) { type in
            type.oneofDecl = [.with { $0.name = "a" }]
        },
        Case("no name", .invalidName) { $0.messageType = [named("")] },
        Case("a name with a dot", .invalidName) { $0.messageType = [named("a.b")] },
        Case("a name with a digit in front", .invalidName) { $0.messageType = [named("1a")] },
        Case("a name with other letters", .invalidName, fields: [.init("é", 1)]),
        Case("an empty part of a package", .invalidName, files: [.proto3(package: "a..b") { _ in }]),
        Case("a reserved name", .duplicateName, fields: [.init("a", 1)]) { $0.reservedName = ["a"] },
        Case("one name in JSON", .duplicateName, fields: [.init("foo_bar", 1), .init("fooBar", 2)]),
        Case(
            "a given name in JSON",
            .duplicateName,
            fields: [.init("a", 1), .init("b", 2).with { $0.jsonName = "a" }]
        ),
        Case("brackets in JSON", .invalidName, fields: [.init("a", 1).with { $0.jsonName = "[test.e]" }]),
        Case("a reserved name of a value", .duplicateName, values: [("A", 0)]) { type in type.reservedName = ["A"] },
    ]

    static let numbers: [Case] = [
        Case("0", .invalidNumber, fields: [.init("a", 0)]),
        Case("negative", .invalidNumber, fields: [.init("a", -1)]),
        Case("too large", .invalidNumber, fields: [.init("a", 536_870_912)]),
        Case("of the implementation", .invalidNumber, fields: [.init("a", 19_000)]),
        Case("twice", .duplicateNumber, fields: [.init("a", 1), .init("b", 2), .init("c", 1)]),
        Case("reserved", .overlappingRanges, fields: [.init("a", 5)]) {
            $0.reservedRange = [range(1, 3), range(5, 6)]
        },
        Case("of extensions", .overlappingRanges, fields: [.init("a", 5)]) { type in
            type.extensionRange = [.with { ($0.start, $0.end) = (2, 536_870_912) }]
        },
        Case("two ranges", .overlappingRanges, fields: []) { $0.reservedRange = [range(1, 5), range(4, 9)] },
        Case("an empty range", .invalidNumber, fields: []) { $0.reservedRange = [range(4, 4)] },
        Case("a range backwards", .invalidNumber, fields: []) { $0.reservedRange = [range(.max, .min)] },
        Case("a range too far", .invalidNumber, fields: []) { $0.reservedRange = [range(1, .max)] },
        Case("two values", .duplicateNumber, values: [("A", 0), ("B", 1), ("C", 1)]),
        Case("a reserved value", .overlappingRanges, values: [("A", 0)]) { type in
            type.reservedRange = [.with { ($0.start, $0.end) = (.min, 0) }]
        },
        Case("ranges of an enum", .overlappingRanges, values: [("A", 0)]) { type in
            type.reservedRange = [.with { ($0.start, $0.end) = (1, 3) }, .with { ($0.start, $0.end) = (3, 3) }]
        },
        Case("range of an enum backwards", .invalidNumber, values: [("A", 0)]) { type in
            type.reservedRange = [.with { ($0.start, $0.end) = (.max, .min) }]
        },
        Case("a value in a range to the end", .overlappingRanges, values: [("A", 0), ("B", .max)]) { type in
            type.reservedRange = [.with { ($0.start, $0.end) = (1, .max) }]
        },
    ]

    private static func range(_ start: Int32, _ end: Int32) -> Google_Protobuf_DescriptorProto.ReservedRange {
        .with { ($0.start, $0.end) = (start, end) }
    }

    private static func extendSet(_ file: inout File, _ field: Field) {
        file.messageType = [
            .with { type in
                type.name = "M"
                type.options.messageSetWireFormat = true
                type.extensionRange = [.with { ($0.start, $0.end) = (4, .max) }]
            }
        ]
        file.extension = [field.with { $0.extendee = ".test.M" }]
    }

    static let fields: [Case] = [
        Case("unknown type", .unknownType, fields: [.init("a", 1, .message, ".test.N")]),
        Case("no type", .invalidField, fields: [Field("a", 1).with { $0.clearType() }]),
        Case("field of a message set", .invalidField, fields: [.init("a", 1)]) {
            $0.options.messageSetWireFormat = true
        },
        Case("no type name", .unknownType, fields: [.init("a", 1, .message)]),
        Case("a package as a type", .unknownType, fields: [.init("a", 1, .message, ".test")]),
        Case("a message as an enum", .unknownType, fields: [.init("a", 1, .enum, ".test.M")]),
        Case("a type of a number", .invalidField, fields: [.init("a", 1, .int32, ".test.M")]),
        Case(
            "packed text",
            .invalidField,
            fields: [.init("a", 1, .string, isRepeated: true).with { $0.options.packed = true }]
        ),
        Case("packed number", .invalidField, fields: [.init("a", 1).with { $0.options.packed = true }]),
        Case("oneof that is not there", .invalidField, fields: [.init("a", 1).with { $0.oneofIndex = 0 }]),
        Case("negative oneof", .invalidField, fields: [.init("a", 1).with { $0.oneofIndex = -1 }]),
        Case("repeated in a oneof", .invalidField, fields: [.init("a", 1, isRepeated: true).with { $0.oneofIndex = 0 }])
        {
            type in type.oneofDecl = [.with { $0.name = "o" }]
        },
        Case("empty oneof", .invalidField, fields: []) { type in type.oneofDecl = [.with { $0.name = "o" }] },
        Case("optional without a oneof", .invalidField, fields: [.init("a", 1).with { $0.proto3Optional = true }]),
        Case(
            "optional with others",
            .invalidField,
            fields: [
                .init("a", 1).with { ($0.proto3Optional, $0.oneofIndex) = (true, 0) },
                .init("b", 2).with { $0.oneofIndex = 0 },
            ]
        ) { type in type.oneofDecl = [.with { $0.name = "_a" }] },
        Case("extension out of range", .invalidNumber) {
            $0.messageType = [named("M")]
            $0.extension = [.init("e", 5).with { $0.extendee = ".test.M" }]
        },
        Case("extension of nothing", .unknownType) { $0.extension = [.init("e", 5).with { $0.extendee = "N" }] },
        Case("two extensions", .duplicateNumber) {
            $0.messageType = [
                .with { type in
                    type.name = "M"
                    type.extensionRange = [.with { ($0.start, $0.end) = (5, 6) }]
                }
            ]
            $0.extension = [.init("e", 5).with { $0.extendee = "M" }, .init("f", 5).with { $0.extendee = "M" }]
        },
        Case("extension of a message set by a number", .invalidField) { extendSet(&$0, .init("e", 5)) },
        Case("extension of a message set by many messages", .invalidField) {
            extendSet(&$0, .init("e", 5, .message, ".test.M", isRepeated: true))
        },
        Case("extension of a message set by an enum, whose type is not said", .invalidField) {
            extendSet(&$0, Field("e", 5, .enum, ".test.E").with { $0.clearType() })
            $0.enumType = [.with { ($0.name, $0.value) = ("E", [.with { $0.name = "A" }]) }]
        },
        Case("extension of a message set by a group", .invalidField) {
            extendSet(&$0, .init("e", 5, .group, ".test.M"))
        },
        Case("empty enum", .invalidEnum, values: []),
        Case("open enum without 0", .invalidEnum, values: [("A", 1), ("B", 0)]),
        Case("method of nothing", .unknownType, "test.proto: test.S.Call") {
            $0.service = [
                .with { service in
                    service.name = "S"
                    service.method = [.with { ($0.name, $0.inputType, $0.outputType) = ("Call", ".test.M", ".test.M") }]
                }
            ]
        },
    ]

    static let maps: [Case] = [
        map("key of a message", key: .init("key", 1, .message, ".test.M")),
        map("key of a float", key: .init("key", 1, .float)),
        map("key of bytes", key: .init("key", 1, .bytes)),
        map("key of another number", key: .init("key", 3)),
        map("value of another name", value: .init("wert", 2)),
        map("repeated value", value: .init("value", 2, isRepeated: true)),
        map("entry of another name", entry: "BEntry"),
        map("singular map", isRepeated: false),
        Case(
            "entry of another message",
            .invalidField,
            fields: [.init("a", 1, .message, ".test.N.AEntry", isRepeated: true)]
        ) {
            type in type.nestedType = []
        }.adding {
            $0.messageType.append(
                .with {
                    $0.name = "N"
                    $0.nestedType = [entry("AEntry", .init("key", 1), .init("value", 2))]
                }
            )
        },
    ]

    private static func entry(_ name: String, _ key: Field, _ value: Field) -> Type {
        .with {
            $0.name = name
            $0.field = [key, value]
            $0.options.mapEntry = true
        }
    }

    private static func map(
        _ name: String,
        entry entryName: String = "AEntry",
        key: Field = .init("key", 1),
        value: Field = .init("value", 2),
        isRepeated: Bool = true
    ) -> Case {
        Case(
            name,
            .invalidField,
            fields: [.init("a", 1, .message, ".test.M.\(entryName)", isRepeated: isRepeated)]
        ) { $0.nestedType = [entry(entryName, key, value)] }
    }

    private static func defaultCase(_ type: Field.TypeEnum, _ text: String, typeName: String = "") -> Case {
        Case("\(type) \(text)", .invalidDefault, "test.proto: M.a") { file in
            (file.syntax, file.package) = ("proto2", "")
            file.enumType = [
                .with { enumeration in
                    enumeration.name = "E"
                    enumeration.value = [.with { $0.name = "A" }]
                }
            ]
            file.messageType = [
                .with { message in
                    message.name = "M"
                    message.field = [.init("a", 1, type, typeName).with { $0.defaultValue = text }]
                }
            ]
        }
    }

    static let defaults: [Case] = [
        defaultCase(.int32, "2147483648"), defaultCase(.uint32, "-1"), defaultCase(.int64, ""),
        defaultCase(.uint64, "x"),
        defaultCase(.bool, "1"), defaultCase(.float, "0x1p3"), defaultCase(.double, "Infinity"),
        defaultCase(.bytes, "\\"), defaultCase(.bytes, "\\q"), defaultCase(.bytes, "\\x"), defaultCase(.bytes, "\\777"),
        defaultCase(.enum, "B", typeName: ".E"), defaultCase(.message, "", typeName: ".M"),
        Case("of a field without presence", .invalidDefault, fields: [.init("a", 1).with { $0.defaultValue = "1" }]),
    ]

    @Test(arguments: imports + names + numbers + fields + maps + defaults)
    func invalidDescriptorsAreRefused(test: Case) throws {
        let error = #expect(throws: DescriptorError.self) {
            try DescriptorPool(.with { $0.file = RepeatedField(test.files) })
        }
        #expect(error?.code == test.code, "\(error?.message ?? "")")
        #expect(error?.message.contains(test.place) == true, "\(error?.message ?? "")")
    }

    @Test func rangesOfEnumsReachToTheEnd() throws {
        let file = File.proto3 { file in
            file.enumType = [
                .with { enumeration in
                    enumeration.name = "E"
                    enumeration.value = [.with { $0.name = "A" }]
                    enumeration.reservedRange = [
                        .with { ($0.start, $0.end) = (40, .max) }, .with { ($0.start, $0.end) = (.min, -1) },
                    ]
                }
            ]
        }
        #expect(try DescriptorPool(.of(file)).enumeration(named: "test.E") != nil)
    }

    @Test func extensionsMayHaveReservedNames() throws {
        let file = File.with { file in
            (file.name, file.syntax) = ("test.proto", "proto2")
            file.messageType = [
                .with { type in
                    type.name = "M"
                    type.reservedName = ["foo"]
                    type.extensionRange = [.with { ($0.start, $0.end) = (100, 101) }]
                    type.extension = [Field("foo", 100).with { $0.extendee = ".M" }]
                }
            ]
        }
        #expect(try DescriptorPool(.of(file)).extension(named: "M.foo")?.number == 100)
    }

    @Test func defaultsAreRead() throws {
        let file = File.with { file in
            (file.name, file.syntax) = ("test.proto", "proto2")
            let defaults: [(Field.TypeEnum, String)] = [
                (.int32, "-2147483648"), (.uint64, "18446744073709551615"), (.float, "-inf"), (.double, "1e+300"),
                (.double, "nan"), (.float, "-nan"), (.string, "\\n \""), (.bytes, "\\000\\377\\x41\\n\\\\\\'"),
                (.bool, "true"),
            ]
            file.messageType = [
                .with { message in
                    message.name = "M"
                    message.field = RepeatedField(
                        defaults.enumerated().map { index, field in
                            .init("f\(index)", Int32(index + 1), field.0).with { $0.defaultValue = field.1 }
                        }
                    )
                }
            ]
        }
        let type = try #require(try DescriptorPool(.of(file)).message(named: "M"))
        let values = type.fields.compactMap(\.defaultValue)
        #expect(values.count == 9 && values[4].doubleValue?.isNaN == true && values[5].doubleValue?.isNaN == true)
        #expect(values[0] == .int32(.min) && values[1] == .uint64(.max) && values[2] == .float(-.infinity))
        #expect(values[3] == .double(1e300) && values[6] == .string("\\n \"") && values[8] == .bool(true))
        #expect(values[7] == .bytes([0, 0xFF, 0x41, 0x0A, 0x5C, 0x27]))
    }
}

extension Field {
    fileprivate func with(_ change: (inout Field) -> Void) -> Field {
        var field = self
        change(&field)
        return field
    }
}

extension DescriptorErrorTests.Case {
    /// The same with a change to its one file.
    fileprivate func adding(_ change: (inout File) -> Void) -> Self {
        var file = files[0]
        change(&file)
        return Self(testDescription, code, place, files: [file])
    }
}
