import LifelineDescriptorTypes
import LifelineMessages
import LifelineProtos
import LifelineReflection
import LifelineTestSupport
import LifelineWellKnownTypes
import TestProtos

/// The schemas that are linked into the tests.
enum Schemas {
    /// One type of each file.
    static let types: [any Message.Type] = [
        Google_Protobuf_Any.self, Google_Protobuf_Api.self, Google_Protobuf_Compiler_Version.self,
        Google_Protobuf_DoubleValue.self, Google_Protobuf_Duration.self, Google_Protobuf_Empty.self,
        Google_Protobuf_FieldMask.self, Google_Protobuf_FileDescriptorSet.self, Google_Protobuf_SourceContext.self,
        Google_Protobuf_Struct.self, Google_Protobuf_Timestamp.self, Google_Protobuf_Type.self,
        Lifeline_Session_V1_Frame.self, PreMessage.self, Sample_Chat_V1_User.self, Sample_Room_V1_EchoRequest.self,
        Test_Comments_Commented.self, Test_Comments_Deprecated.self, Test_Empty_Nothing.self,
        Test_Imports_Left_Item.self, Test_Imports_Options_Marked.self, Test_Imports_Right_Item.self,
        Test_Imports_Schema.self, Test_Imports_Tree.self,
        Test_Imports_User.self, Test_Names_Cases_Cases.self, Test_Names_CWords.self,
        Test_Names_OpenCases_Holder.self,
        Test_Names_Presence.self, Test_Names_Types.self, Test_Paths_Dashed.self, Test_Proto2_Defaults.self,
        Test_Proto2_Enums.self, Test_Proto2_Groups.self, Test_Proto2_Marker.self, Test_Scalars_Many_ManyFields.self,
        Test_Editions_BestEffort.self, Test_Editions_Edition2024_Shown.self, Test_Editions_Presence.self,
        Test_Editions_OfFileMessage.self,
        Test_Extending_Weight.self, Test_Scalars_Proto2_Point.self, Test_Scalars_Proto3_Point.self, Unpackaged.self,
    ]

    static let linked = DescriptorPool(types)

    /// The files of the linked schemas, from which a pool makes tables.
    static func set() -> Google_Protobuf_FileDescriptorSet {
        .with { $0.file = RepeatedField(linked.files.map(\.proto)) }
    }

    /// All messages of the linked schemas, but for the entries of maps.
    static var messages: [MessageDescriptor] {
        func nested(_ message: MessageDescriptor) -> [MessageDescriptor] {
            [message] + message.messages.flatMap(nested)
        }
        return linked.files.flatMap(\.messages).flatMap(nested)
    }

    /// A message with random fields set.
    static func random(
        _ type: MessageDescriptor,
        depth: Int = 3,
        using random: inout SeededGenerator
    ) throws -> DynamicMessage {
        var message = DynamicMessage(type)
        for field in type.fields where depth > 0 || field.type != .message {
            guard field.isRequired || Int.random(in: 0..<3, using: &random) == 0 else { continue }
            if let key = field.mapKey, let value = field.mapValue {
                for _ in 0..<Int.random(in: 0...3, using: &random) {
                    try message.setValue(
                        of: field,
                        forKey: Self.value(of: key, depth: depth, using: &random),
                        to: Self.value(of: value, depth: depth, using: &random)
                    )
                }
            } else if field.isRepeated {
                for _ in 0..<Int.random(in: 0...3, using: &random) {
                    try message.append(Self.value(of: field, depth: depth, using: &random), to: field)
                }
            } else {
                try message.set(field, to: Self.value(of: field, depth: depth, using: &random))
            }
        }
        return message
    }

    /// A random value of a field, or of an element.
    static func value(
        of field: FieldDescriptor,
        depth: Int,
        using random: inout SeededGenerator
    ) throws -> FieldValue {
        let small = Bool.random(using: &random)
        switch field.type {
        case .double: return .double(small ? 0.5 : Double(random.next()))
        case .float: return .float(small ? -1.5 : Float(random.next() % 1_000))
        case .int64, .sint64, .sfixed64: return .int64(small ? -1 : Int64(bitPattern: random.next()))
        case .uint64, .fixed64: return .uint64(small ? 1 : random.next())
        case .int32, .sint32, .sfixed32: return .int32(small ? 1 : Int32(truncatingIfNeeded: random.next()))
        case .uint32, .fixed32: return .uint32(small ? 1 : UInt32(truncatingIfNeeded: random.next()))
        case .bool: return .bool(small)
        case .string: return .string(small ? "" : "text \(random.next() % 100) é")
        case .bytes: return .bytes(random.bytes(Int.random(in: 0...5, using: &random)))
        case .enumeration: return .enumeration(Int32(field.enumType?.values.randomElement(using: &random)?.number ?? 0))
        case .message:
            guard let type = field.messageType else { return .bool(false) }
            return .message(try Self.random(type, depth: depth - 1, using: &random))
        }
    }
}

/// Makes files for tests of errors in them.
extension Google_Protobuf_FileDescriptorProto {
    static func proto3(
        _ name: String = "test.proto",
        package: String = "test",
        _ populate: (inout Self) -> Void
    ) -> Self {
        .with {
            ($0.name, $0.package, $0.syntax) = (name, package, "proto3")
            populate(&$0)
        }
    }
}

extension Google_Protobuf_FieldDescriptorProto {
    init(
        _ name: String,
        _ number: Int32,
        _ type: TypeEnum = .int32,
        _ typeName: String = "",
        isRepeated: Bool = false
    ) {
        self.init()
        (self.name, self.number, self.type, label) = (name, number, type, isRepeated ? .repeated : .optional)
        if !typeName.isEmpty { self.typeName = typeName }
    }
}

extension Google_Protobuf_FileDescriptorSet {
    static func of(_ files: Google_Protobuf_FileDescriptorProto...) -> Self {
        .with { $0.file = RepeatedField(files) }
    }
}
