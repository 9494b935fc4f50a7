public import LifelineDescriptorTypes
public import LifelineMessages

/// Describes a message type.
public struct MessageDescriptor: Hashable, Sendable {
    let storage: DescriptorStorage
    let index: Int

    init(storage: DescriptorStorage, index: Int) {
        (self.storage, self.index) = (storage, index)
    }

    /// Describes a linked message type.
    ///
    /// The generated type of an extension is not a message type: passing one ends the program. See
    /// ``DescriptorPool/extension(named:)``.
    public init<M: Message>(_ type: M.Type) {
        self = LinkedFiles.message(M._table)
    }

    private var message: DescriptorStorage.Message {
        _read { yield storage.messages[index] }
    }

    /// The table that decodes and encodes messages of this type. It lives as long as the storage.
    var table: UnsafePointer<_MessageTable> { storage.messages[index].table.unsafelyUnwrapped }

    /// The name without the package and the enclosing messages.
    public var name: String { message.proto.name }
    /// The name with the package, such as `google.protobuf.Timestamp`.
    public var fullName: String { message.fullName }
    /// The file that declares the message.
    public var file: FileDescriptor { FileDescriptor(storage: storage, index: message.file) }
    /// The message in which it is declared; nil at the top level of a file.
    public var containingType: MessageDescriptor? { storage.message(of: message.scope) }
    /// The options. `Message.value(ofExtension:)` reads custom ones.
    public var options: Google_Protobuf_MessageOptions { message.proto.options }
    /// The comments beside the declaration, if the file has them.
    public var comments: DescriptorComments { file.comments(at: storage.path(ofMessage: index)) }
    /// The message as `descriptor.proto` describes it.
    public var proto: Google_Protobuf_DescriptorProto { message.proto }

    /// Whether this is the type of a map's entries, which protoc makes.
    public var isMapEntry: Bool { message.proto.options.mapEntry }
    /// The fields, in the order of declaration.
    public var fields: [FieldDescriptor] { message.fields.map { FieldDescriptor(storage: storage, index: $0) } }
    /// The oneofs, without those that protoc makes for `optional` fields of proto3.
    public var oneofs: [OneofDescriptor] {
        message.oneofs.filter { !storage.oneofs[$0].isSynthetic }.map { OneofDescriptor(storage: storage, index: $0) }
    }
    /// The messages that are declared in it, and the entries of its maps.
    public var messages: [MessageDescriptor] { message.messages.map { MessageDescriptor(storage: storage, index: $0) } }
    /// The enums that are declared in it.
    public var enums: [EnumDescriptor] { message.enums.map { EnumDescriptor(storage: storage, index: $0) } }
    /// The extensions that are declared in it. They may extend other messages.
    public var extensions: [FieldDescriptor] { message.extensions.map { FieldDescriptor(storage: storage, index: $0) } }

    /// The field with this name in the .proto file.
    public func field(named name: String) -> FieldDescriptor? {
        var name = name
        return name.withUTF8 { table.fieldIndex(named: $0) }.map(field(at:))
    }

    /// The field with this number.
    public func field(number: Int) -> FieldDescriptor? {
        table.fieldIndex(number: number).map(field(at:))
    }

    /// The oneof with this name.
    public func oneof(named name: String) -> OneofDescriptor? { oneofs.first { $0.name == name } }

    /// The field at this index of the table.
    func field(at position: Int) -> FieldDescriptor {
        FieldDescriptor(storage: storage, index: storage.messages[index].fieldsByNumber[position])
    }
}

extension DescriptorStorage {
    /// The message that contains a declaration, if any.
    func message(of scope: Scope) -> MessageDescriptor? {
        guard case .message(let index) = scope else { return nil }
        return MessageDescriptor(storage: self, index: index)
    }
}

/// Describes a oneof.
public struct OneofDescriptor: Hashable, Sendable {
    let storage: DescriptorStorage
    let index: Int

    private var oneof: DescriptorStorage.Oneof { storage.oneofs[index] }

    /// The name in the .proto file.
    public var name: String { oneof.proto.name }
    /// The message that declares the oneof.
    public var containingType: MessageDescriptor { MessageDescriptor(storage: storage, index: oneof.message) }
    /// The fields, of which at most one is set.
    public var fields: [FieldDescriptor] { oneof.fields.map { FieldDescriptor(storage: storage, index: $0) } }
    /// The options. `Message.value(ofExtension:)` reads custom ones.
    public var options: Google_Protobuf_OneofOptions { oneof.proto.options }
    /// The comments beside the declaration, if the file has them.
    public var comments: DescriptorComments {
        containingType.file.comments(at: storage.path(ofMessage: oneof.message) + [8, Int32(oneof.position)])
    }
}
