internal import CLifelineMessages
public import LifelineDescriptorTypes
internal import LifelineMessages

/// Describes a field of a message, or an extension.
public struct FieldDescriptor: Hashable, Sendable {
    let storage: DescriptorStorage
    let index: Int

    // Accesses to messages read their properties from the storage directly, because this copies the whole field.
    private var field: DescriptorStorage.Field {
        _read { yield storage.fields[index] }
    }

    /// The name in the .proto file.
    public var name: String { field.proto.name }
    /// The name with that of the message, or of the scope in which an extension is declared.
    public var fullName: String { storage.fullName(ofField: index) }
    /// The name in JSON. For extensions, JSON uses the ``fullName`` in brackets instead.
    public var jsonName: String { field.jsonName }
    /// The number on the wire.
    public var number: Int { Int(field.proto.number) }
    /// The file that declares the field.
    public var file: FileDescriptor { FileDescriptor(storage: storage, index: field.file) }
    /// The options. `Message.value(ofExtension:)` reads custom ones.
    public var options: Google_Protobuf_FieldOptions { field.proto.options }
    /// The comments beside the declaration, if the file has them.
    public var comments: DescriptorComments { file.comments(at: storage.path(ofField: index)) }
    /// The field as `descriptor.proto` describes it.
    public var proto: Google_Protobuf_FieldDescriptorProto { field.proto }

    // MARK: Where it is

    /// The message that has the field, or that an extension extends; nil if it is not linked.
    public var containingType: MessageDescriptor? { field.containingType?.message(from: storage) }
    /// Whether it is an extension.
    public var isExtension: Bool { storage.fields[index].isExtension }
    /// The message in which an extension is declared; nil at the top level of a file, and for fields.
    public var extensionScope: MessageDescriptor? { field.isExtension ? storage.message(of: field.scope) : nil }
    /// The oneof in which it was declared, if any.
    public var containingOneof: OneofDescriptor? {
        guard let oneof = field.oneof, !storage.oneofs[oneof].isSynthetic else { return nil }
        return OneofDescriptor(storage: storage, index: oneof)
    }

    // MARK: Its value

    /// The type of the value, or of each element of a repeated field. A map's is `message`.
    public var type: FieldType { storage.fields[index].type }
    /// Whether it is a repeated field or a map.
    public var isRepeated: Bool { storage.fields[index].isRepeated }
    /// Whether it is a map.
    public var isMap: Bool { storage.fields[index].isMap }
    /// Whether it must be set for a message to be complete.
    public var isRequired: Bool { field.isRequired }
    /// Whether elements are encoded together, with one tag.
    public var isPacked: Bool { field.isPacked }
    /// Whether messages are encoded between two tags, like groups of proto2.
    public var isDelimited: Bool { field.isGroup(in: storage) }
    /// Whether a string has to be UTF-8.
    public var validatesUTF8: Bool { field.type == .string && field.features.validatesUTF8 }
    /// Whether messages tell if the field is set, even if it is set to its default.
    public var hasPresence: Bool { field.hasPresence }

    /// The type of the messages; nil for other fields. For a map, this is the type of the entries.
    public var messageType: MessageDescriptor? {
        guard field.type == .message else { return nil }
        if let place = field.typePlace { return place.message(from: storage) }
        // Its file is imported through one that is not linked.
        return tableEntry?.pointee.message.map(LinkedFiles.message)
    }
    /// The type of the enum; nil for other fields, and if the enum is not linked.
    public var enumType: EnumDescriptor? {
        field.type == .enumeration ? field.typePlace?.enumeration(from: storage) : nil
    }
    /// The key of a map's entries; nil for other fields.
    public var mapKey: FieldDescriptor? { field.isMap ? messageType?.field(at: 0) : nil }
    /// The value of a map's entries; nil for other fields.
    public var mapValue: FieldDescriptor? { field.isMap ? messageType?.field(at: 1) : nil }

    /// The value of a field that is not set; nil for repeated fields and messages.
    public var defaultValue: FieldValue? {
        if field.isRepeated { return nil }
        if let value = field.defaultValue { return value }
        if field.type == .enumeration { return .enumeration(Int32(enumType?.firstValue.number ?? 0)) }
        return FieldValue(zeroOf: field.type)
    }

    /// The field's index in the table of its message.
    var tableIndex: Int { storage.fields[index].tableIndex }
    /// Describes a message with an extension as its only field. Nil for other fields, if the extended message or the
    /// extension's type is not linked, and if the number is too large for a field.
    var extensionTable: UnsafePointer<_MessageTable>? { storage.fields[index].extensionTable }
    /// The field's entry in the table of its message, or an extension's in its own.
    var tableEntry: UnsafePointer<LifelineField>? {
        if isExtension { return extensionTable?.pointee.fields }
        return containingType.map { $0.table.pointee.fields + tableIndex }
    }
}
