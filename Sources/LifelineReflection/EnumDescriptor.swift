public import LifelineDescriptorTypes

/// Describes an enum.
public struct EnumDescriptor: Hashable, Sendable {
    let storage: DescriptorStorage
    let index: Int

    private var enumeration: DescriptorStorage.Enum { storage.enums[index] }

    /// The name without the package and the enclosing messages.
    public var name: String { enumeration.proto.name }
    /// The name with the package.
    public var fullName: String { enumeration.fullName }
    /// The file that declares the enum.
    public var file: FileDescriptor { FileDescriptor(storage: storage, index: enumeration.file) }
    /// The message in which it is declared; nil at the top level of a file.
    public var containingType: MessageDescriptor? { storage.message(of: enumeration.scope) }
    /// Whether numbers that the enum does not declare become unknown fields, as in proto2.
    public var isClosed: Bool { enumeration.isClosed }
    /// The options. `Message.value(ofExtension:)` reads custom ones.
    public var options: Google_Protobuf_EnumOptions { enumeration.proto.options }
    /// The comments beside the declaration, if the file has them.
    public var comments: DescriptorComments { file.comments(at: storage.path(ofEnum: index)) }
    /// The enum as `descriptor.proto` describes it.
    public var proto: Google_Protobuf_EnumDescriptorProto { enumeration.proto }

    /// The values, in the order of declaration.
    public var values: [EnumValueDescriptor] {
        enumeration.values.map { EnumValueDescriptor(storage: storage, index: $0) }
    }

    /// The value that was declared first. An enum has at least one.
    var firstValue: EnumValueDescriptor {
        EnumValueDescriptor(storage: storage, index: storage.enums[index].values.lowerBound)
    }

    /// The value with this name.
    public func value(named name: String) -> EnumValueDescriptor? { value { $0.name == name } }

    /// The first value that was declared with this number.
    public func value(number: Int) -> EnumValueDescriptor? { value { Int($0.number) == number } }

    private func value(
        where isSought: (Google_Protobuf_EnumValueDescriptorProto) -> Bool
    ) -> EnumValueDescriptor? {
        storage.enums[index].values.first { isSought(storage.values[$0].proto) }
            .map { EnumValueDescriptor(storage: storage, index: $0) }
    }
}

/// Describes a value of an enum.
public struct EnumValueDescriptor: Hashable, Sendable {
    let storage: DescriptorStorage
    let index: Int

    private var value: DescriptorStorage.EnumValue { storage.values[index] }

    /// The name in the .proto file.
    public var name: String { value.proto.name }
    /// The number on the wire.
    public var number: Int { Int(value.proto.number) }
    /// The enum that declares the value.
    public var enumeration: EnumDescriptor { EnumDescriptor(storage: storage, index: value.enumeration) }
    /// The options. `Message.value(ofExtension:)` reads custom ones.
    public var options: Google_Protobuf_EnumValueOptions { value.proto.options }
    /// The comments beside the declaration, if the file has them.
    public var comments: DescriptorComments {
        enumeration.file.comments(at: storage.path(ofEnum: value.enumeration) + [2, Int32(value.position)])
    }
}
