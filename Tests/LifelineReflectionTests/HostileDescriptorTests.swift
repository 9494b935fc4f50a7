import LifelineDescriptorTypes
import LifelineMessages
import LifelineReflection
import LifelineTestSupport
import LifelineWellKnownTypes
import Testing

/// Files made to be expensive, or to cause a failure.
@Suite struct HostileDescriptorTests {
    private func code(of set: Google_Protobuf_FileDescriptorSet, limits: DescriptorLimits = .init()) -> DescriptorError
        .Code?
    {
        do throws(DescriptorError) {
            _ = try DescriptorPool(set, limits: limits)
            return nil
        } catch {
            return error.code
        }
    }

    private func nested(_ depth: Int) -> Google_Protobuf_FileDescriptorSet {
        var type = Google_Protobuf_DescriptorProto.with { $0.name = "M" }
        for _ in 1..<depth {
            let inner = type
            type = .with {
                $0.name = "M"
                $0.nestedType = [inner]
            }
        }
        return .of(.proto3 { $0.messageType = [type] })
    }

    @Test func depthIsLimited() {
        #expect(code(of: nested(32)) == nil)
        #expect(code(of: nested(33)) == .limitExceeded)
    }

    @Test func bytesBeyondTheDepthOfMessagesAreNoDescriptors() throws {
        var bytes: [UInt8] = []
        for _ in 0..<200 { bytes = [3 << 3 | 2] + varint(bytes.count) + bytes }
        bytes = [4 << 3 | 2] + varint(bytes.count) + bytes
        bytes = [1 << 3 | 2] + varint(bytes.count) + bytes
        let error = #expect(throws: DescriptorError.self) { try DescriptorPool(serializedFileSet: bytes) }
        #expect(error?.code == .malformed)
    }

    private func varint(_ count: Int) -> [UInt8] {
        count < 128 ? [UInt8(count)] : [UInt8(count & 127) | 128] + varint(count >> 7)
    }

    @Test func countsAreLimited() throws {
        let set = Google_Protobuf_FileDescriptorSet.of(
            .proto3("a.proto") { file in
                file.messageType = [
                    .with {
                        $0.name = "M"
                        $0.field = [.init("a", 1), .init("b", 2)]
                    }
                ]
            },
            .proto3("b.proto") { $0.messageType = [.with { $0.name = "N" }] }
        )
        var limits = DescriptorLimits()
        (limits.fileCount, limits.typeCount, limits.memberCount) = (2, 2, 2)
        #expect(code(of: set, limits: limits) == nil)
        for keyPath in [\DescriptorLimits.fileCount, \.typeCount, \.memberCount] {
            var less = limits
            less[keyPath: keyPath] = 1
            #expect(code(of: set, limits: less) == .limitExceeded)
        }
        let bytes = try set.serializedBytes()
        limits.byteCount = bytes.count
        _ = try DescriptorPool(serializedFileSet: bytes, limits: limits)
        limits.byteCount -= 1
        #expect(throws: DescriptorError.self) { try DescriptorPool(serializedFileSet: bytes, limits: limits) }
    }

    /// Each has its own table.
    @Test func extensionsCountAsTypes() {
        let file = Google_Protobuf_FileDescriptorProto.with { file in
            (file.name, file.syntax) = ("a.proto", "proto2")
            file.messageType = [
                .with { type in
                    type.name = "M"
                    type.extensionRange = [.with { ($0.start, $0.end) = (5, 7) }]
                }
            ]
            file.extension = [.init("e", 5), .init("f", 6)]
            for index in file.extension.indices { file.extension[index].extendee = "M" }
        }
        var limits = DescriptorLimits()
        limits.typeCount = 3
        #expect(code(of: .of(file), limits: limits) == nil)
        limits.typeCount = 2
        #expect(code(of: .of(file), limits: limits) == .limitExceeded)
    }

    /// All declarations in a message with a long name have long full names.
    @Test func namesTakeBoundedMemory() {
        let set = Google_Protobuf_FileDescriptorSet.of(
            .proto3 { file in
                file.messageType = [
                    .with { type in
                        type.name = String(repeating: "a", count: 1 << 20)
                        type.nestedType = RepeatedField((0..<100).map { index in .with { $0.name = "M\(index)" } })
                    }
                ]
            }
        )
        #expect(code(of: set) == .limitExceeded)
    }

    /// A name without a dot in front is looked up in each scope around.
    @Test(arguments: [(100, nil), (10_000, DescriptorError.Code.limitExceeded)])
    func lookingUpNamesIsBounded(fieldCount: Int, code: DescriptorError.Code?) {
        let long = String(repeating: "a", count: 1_000)
        var type = Google_Protobuf_DescriptorProto.with {
            $0.name = "M"
            $0.field = RepeatedField((1...Int32(fieldCount)).map { .init("f\($0)", $0, .message, long) })
        }
        for _ in 1..<30 {
            let inner = type
            type = .with {
                $0.name = "M"
                $0.nestedType = [inner]
            }
        }
        #expect(self.code(of: .of(.proto3 { $0.messageType = [type, .with { $0.name = long }] })) == code)
    }

    @Test func longChainsOfImportsNeedNoStack() throws {
        let count = 20_000
        var files = (0..<count).map { index in
            Google_Protobuf_FileDescriptorProto.proto3("\(index).proto", package: "") {
                if index > 0 {
                    $0.dependency = ["\(index - 1).proto"]
                    $0.publicDependency = [0]
                }
            }
        }
        // Each sees all before it: that is quadratic, and has a limit.
        #expect(code(of: .with { $0.file = RepeatedField(files) }) == .limitExceeded)
        for index in files.indices { files[index].publicDependency = [] }
        var pool = try DescriptorPool(.with { $0.file = RepeatedField(files.reversed()) })
        #expect(pool.files.count == count)
        files.append(.proto3("\(count).proto") { $0.dependency = ["0.proto"] })
        #expect(throws: DescriptorError.self) { try pool.add(.with { $0.file = RepeatedField(files) }) }
    }

    @Test func manyFieldsAreBuiltInLinearTime() throws {
        let file = Google_Protobuf_FileDescriptorProto.proto3 { file in
            file.messageType = [
                .with {
                    $0.name = "M"
                    // From the last to the first, so that they have to be sorted.
                    $0.field = RepeatedField((20_001...60_000).reversed().map { .init("f\($0)", $0) })
                    $0.reservedRange = RepeatedField(
                        (1...10_000).reversed().map { start in .with { ($0.start, $0.end) = (start, start + 1) } }
                    )
                }
            ]
        }
        let type = try #require(try DescriptorPool(.of(file)).message(named: "test.M"))
        #expect(type.fields.count == 40_000 && type.field(named: "f20001")?.number == 20_001)
        var message = DynamicMessage(type)
        for number in [20_001, 30_000, 60_000] { message["f\(number)"] = .int32(Int32(number)) }
        let copy = try DynamicMessage(type, serializedBytes: message.serializedBytes())
        #expect(copy == message && copy.presentFields.map(\.number) == [20_001, 30_000, 60_000])
        #expect(try DynamicMessage(type, jsonString: message.jsonString()) == message)
    }

    /// Looking through all values, ranges or names for each field would take minutes.
    @Test func manyDeclarationsAreLookedUpInLinearTime() throws {
        let count: Int32 = 20_000
        let file = Google_Protobuf_FileDescriptorProto.with { file in
            (file.name, file.syntax) = ("test.proto", "proto2")
            file.enumType = [
                .with { enumeration in
                    enumeration.name = "E"
                    enumeration.value = RepeatedField(
                        (0..<count).map { index in .with { ($0.name, $0.number) = ("V\(index)", index) } }
                    )
                }
            ]
            file.messageType = [
                .with { type in
                    type.name = String(repeating: "M", count: 100)
                    type.field = RepeatedField(
                        (20_000..<20_000 + count).map {
                            var field = Google_Protobuf_FieldDescriptorProto("f\($0)", $0, .enum, ".E")
                            field.defaultValue = "V\(count - 1)"
                            return field
                        }
                    )
                },
                .with { type in
                    type.name = "N"
                    type.extensionRange = RepeatedField(
                        (1...count).map { index in
                            .with { ($0.start, $0.end) = (100_000 + 2 * index, 100_000 + 2 * index + 1) }
                        }
                    )
                },
                .with { type in
                    type.name = String(repeating: "L", count: 1 << 20)
                    type.reservedName = RepeatedField((0..<count).map { "r\($0)" })
                },
            ]
            file.extension = RepeatedField(
                (1...count).map {
                    var field = Google_Protobuf_FieldDescriptorProto("e\($0)", 100_000 + 2 * $0)
                    field.extendee = ".N"
                    return field
                }
            )
        }
        let pool = try DescriptorPool(.of(file))
        #expect(pool.extension(named: "e1")?.containingType?.fullName == "N")
        let field = try #require(pool.files.first?.messages.first?.fields.last)
        #expect(field.defaultValue == .enumeration(count - 1))
        var outOfRange = file
        outOfRange.extension[0].number += 1
        #expect(code(of: .of(outOfRange)) == .invalidNumber)
    }

    /// Copies of a large file without its comments are small, but equal.
    @Test func filesAreRepeatedInLinearTime() throws {
        let small = Google_Protobuf_FileDescriptorProto.proto3 { _ in }
        var large = small
        large.sourceCodeInfo.location = RepeatedField(
            (0..<20_000).map { index in
                .with {
                    $0.path = [4, Int32(index)]
                    $0.leadingComments = "comment"
                }
            }
        )
        var set = Google_Protobuf_FileDescriptorSet.of(large)
        for _ in 1..<20_000 { set.file.append(small) }
        var pool = try DescriptorPool(set)
        try pool.add(set)
        #expect(pool.files.count == 1)
    }

    @Test func memoryFollowsTheLimitOfBytes() {
        // Each message without a name takes two bytes, and in memory some hundred.
        let file = (0..<500_000).flatMap { _ in [4 << 3 | 2, 0] as [UInt8] }
        let bytes = [1 << 3 | 2] + varint(file.count) + file
        var limits = DescriptorLimits()
        for (byteCount, code) in [(64 << 20, DescriptorError.Code.invalidName), (bytes.count, .limitExceeded)] {
            limits.byteCount = byteCount
            let error = #expect(throws: DescriptorError.self) {
                try DescriptorPool(serializedFileSet: bytes, limits: limits)
            }
            #expect(error?.code == code)
        }
    }

    @Test func recursiveTypesAreBuilt() throws {
        let file = Google_Protobuf_FileDescriptorProto.proto3 { file in
            file.messageType = [
                .with {
                    $0.name = "A"
                    $0.field = [.init("b", 1, .message, ".test.B")]
                },
                .with {
                    $0.name = "B"
                    $0.field = [.init("a", 1, .message, ".test.A"), .init("bs", 2, .message, "B", isRepeated: true)]
                },
            ]
        }
        let type = try #require(try DescriptorPool(.of(file)).message(named: "test.A"))
        let message = try DynamicMessage(type, jsonString: #"{"b": {"a": {"b": {"bs": [{}, {"a": {}}]}}}}"#)
        #expect(try DynamicMessage(type, serializedBytes: message.serializedBytes()) == message)
    }

    /// A message that only has the name of a well-known one is printed as any other.
    @Test(
        arguments: [
            "Any", "Timestamp", "Duration", "FieldMask", "Struct", "ListValue", "Value", "BoolValue", "StringValue",
        ]
    )
    func namesOfWellKnownTypesAreNotTrusted(name: String) throws {
        for type in [Google_Protobuf_FieldDescriptorProto.TypeEnum.int32, .string, .bytes, .double] {
            for isRepeated in [false, true] {
                let file = Google_Protobuf_FileDescriptorProto.proto3(package: "google.protobuf") { file in
                    file.messageType = [
                        .with {
                            $0.name = name
                            $0.field = [.init("a", 1, type, isRepeated: isRepeated), .init("b", 3, type)]
                        }
                    ]
                }
                let type = try #require(
                    try DescriptorPool(.of(file)).message(named: "google.protobuf.\(name)")
                )
                let json = type.field(number: 1)?.type == .bytes ? #"{"b":"AA=="}"# : #"{"b":"1"}"#
                let message = try DynamicMessage(type, jsonString: json)
                #expect(message.presentFields.map(\.number) == [3])
                #expect(try DynamicMessage(type, jsonString: message.jsonString()) == message)
            }
        }
    }

    @Test(arguments: [(0, true), (35, false)]) func nullNeedsItsNumber(number: Int32, isValue: Bool) throws {
        let file = Google_Protobuf_FileDescriptorProto.with { file in
            (file.name, file.package, file.syntax) = ("test.proto", "google.protobuf", "proto2")
            file.enumType = [
                .with { enumeration in
                    enumeration.name = "NullValue"
                    enumeration.value = [.with { ($0.name, $0.number) = ("NULL_VALUE", number) }]
                }
            ]
            file.messageType = [
                .with { type in
                    type.name = "Value"
                    type.oneofDecl = [.with { $0.name = "kind" }]
                    type.field = [
                        .init("a", 1, .enum, "NullValue"), .init("b", 2, .double), .init("c", 3, .string),
                        .init("d", 4, .bool), .init("e", 5, .message, "Value"), .init("f", 6, .message, "Value"),
                    ]
                    for index in type.field.indices { type.field[index].oneofIndex = 0 }
                }
            ]
        }
        let type = try #require(try DescriptorPool(.of(file)).message(named: "google.protobuf.Value"))
        let message = try? DynamicMessage(type, jsonString: "null")
        #expect((message != nil) == isValue)
    }

    /// Texts that Unicode calls equal are different keys. With equal hashes, a map of them would take the square of
    /// their number.
    @Test func keysThatUnicodeCallsEqualHaveDifferentHashes() {
        let letters = ["\u{e9}", "e\u{301}"]
        let keys = (0..<1 << 16).map { bits in
            FieldValue.string((0..<16).map { letters[bits >> $0 & 1] }.joined())
        }
        #expect(Set(keys).count == keys.count)
        #expect(Set(keys.map(\.hashValue)).count > keys.count / 2)
    }

    /// A message with each of many extensions, in orders that make adding one expensive.
    @Test(arguments: [nil, 7] as [UInt64?]) func manyExtensions(seed: UInt64?) throws {
        let count = 10_000
        let pool = try DescriptorPool(
            .of(
                .proto3 { file in
                    file.messageType = [
                        .with { type in
                            type.name = "M"
                            type.extensionRange = [.with { ($0.start, $0.end) = (20_000, 1_000_000) }]
                        }
                    ]
                    file.extension = RepeatedField(
                        (0..<count).map { index in
                            var field = Google_Protobuf_FieldDescriptorProto("e\(index)", 20_000 + Int32(index))
                            field.extendee = "M"
                            return field
                        }
                    )
                }
            )
        )
        let type = try #require(pool.message(named: "test.M"))
        var order = Array((0..<count).reversed())
        if let seed {
            var random = SeededGenerator(seed: seed)
            order.shuffle(using: &random)
        }
        let types = MessageRegistry(pool)
        let members = order.map { "\"[test.e\($0)]\":\($0 % 100)" }
        let options = JSONDecodingOptions(types: types)
        let json = "{\(members.joined(separator: ","))}"
        let message = try DynamicMessage(type, jsonString: json, options: options)
        #expect(message.presentExtensions(of: pool).map(\.number) == Array(20_000..<20_000 + count))
        #expect(message[try #require(pool.extension(named: "test.e777"))] == .int32(77))
        try message.checkExtensions(types)

        let fields = order.flatMap { varint((20_000 + $0) << 3) + [UInt8($0 % 100)] }
        let decoded = try DynamicMessage(type, serializedBytes: fields)
        #expect(decoded.presentExtensions(of: pool).count == count)
        let sorted = (0..<count).map { "\"[test.e\($0)]\":\($0 % 100)" }
        #expect(
            try decoded.jsonString(options: JSONEncodingOptions(types: types)) == "{\(sorted.joined(separator: ","))}"
        )
        let twice = "{\((members + [members[count / 3]]).joined(separator: ","))}"
        let error = #expect(throws: MessageError.self) {
            _ = try DynamicMessage(type, jsonString: twice, options: options)
        }
        #expect(error?.code == .duplicateField)

        let text = order.map { "[test.e\($0)]: \($0 % 100)" }.joined(separator: " ")
        let textOptions = TextFormatDecodingOptions(types: types)
        #expect(try DynamicMessage(type, textFormatString: text, options: textOptions) == message)
    }

    /// For any damage, a pool is made or an error thrown, and messages of the resulting types can be used.
    @Test(arguments: 0..<8) func damagedFilesAreNoDanger(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let files = Schemas.linked.files.map(\.proto)
        for _ in 0..<250 {
            var set = Google_Protobuf_FileDescriptorSet()
            set.file = [files[Int.random(in: files.indices, using: &random)]]
            set.file[0].dependency = []
            var bytes = try set.serializedBytes()
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            guard let pool = try? DescriptorPool(serializedFileSet: bytes) else { continue }
            for type in pool.files.flatMap(\.messages) {
                let input = random.bytes(Int.random(in: 0...40, using: &random))
                guard let message = try? DynamicMessage(type, serializedBytes: input, partial: true) else { continue }
                for field in type.fields { _ = message[field] }
                for field in pool.extensions(of: type) where message.has(field) { _ = message[field] }
                #expect(
                    message.presentExtensions(of: pool).map(\.number)
                        == pool.extensions(of: type).filter(message.has).map(\.number).sorted()
                )
                _ = try? message.jsonString()
                _ = message.debugDescription
                #expect(
                    try DynamicMessage(type, serializedBytes: message.serializedBytes(partial: true), partial: true)
                        == message
                )
            }
        }
    }
}
