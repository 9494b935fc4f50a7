internal import CLifelineMessages
internal import LifelineDescriptorTypes
internal import LifelineMessages

/// The files that were added to a pool together, with all their declarations. Descriptors are a reference to a storage
/// and an index in it.
///
/// Declarations refer to each other by index, so there are no reference cycles. All files that are added together are
/// in one storage, so that freeing a long chain of imports needs no recursion.
final class DescriptorStorage: @unchecked Sendable {
    // @unchecked Sendable, because nothing changes after `DescriptorBuilder` is done.

    var files: [File] = []
    // Each access to a message's field reads these two. Checking that they do not change takes a fifth of its time.
    /// Each directly followed by those nested in it.
    @exclusivity(unchecked) var messages: [Message] = []
    /// Those of one message are together, in the order of declaration. So are the extensions of one scope.
    @exclusivity(unchecked) var fields: [Field] = []
    var oneofs: [Oneof] = []
    var enums: [Enum] = []
    var values: [EnumValue] = []
    var services: [Service] = []
    var methods: [Method] = []
    /// By full name.
    var symbols: [String: Symbol] = [:]
    var extensions: [ExtensionKey: Int] = [:]
    var filesByPath: [String: Int] = [:]
    /// The memory of the tables of messages whose types are not linked.
    var tables: TableMemory?

    /// The place of a declaration: in this storage, or in an earlier one.
    struct Place {
        /// Nil for this one.
        var storage: DescriptorStorage?
        var index: Int
    }

    /// A declaration that has a full name.
    enum Symbol {
        case package
        case message(Int)
        case field(Int)
        case oneof(Int)
        case enumeration(Int)
        case value(Int)
        case service(Int)
        case method(Int)
    }

    /// The scope of a declaration: a file or a message.
    enum Scope {
        case file(Int)
        case message(Int)
    }

    struct ExtensionKey: Hashable {
        /// The full name of the message that is extended.
        let message: String
        let number: Int32
    }

    struct File {
        let proto: Google_Protobuf_FileDescriptorProto
        let edition: Google_Protobuf_Edition
        let features: Features
        /// Nil for a file that is imported but not linked.
        var dependencies: [Place?] = []
        var messages: [Int] = []
        var enums: [Int] = []
        var extensions = 0..<0
        var services = 0..<0
        /// Positions and comments, by the path of a declaration.
        var locations: [[Int32]: Google_Protobuf_SourceCodeInfo.Location] = [:]
    }

    struct Message {
        let proto: Google_Protobuf_DescriptorProto
        let fullName: String
        let file: Int
        let scope: Scope
        /// The index among those of its scope.
        let position: Int
        let features: Features
        var messages: [Int] = []
        var enums: [Int] = []
        var fields = 0..<0
        var extensions = 0..<0
        var oneofs = 0..<0
        /// The fields by number, as in the table.
        var fieldsByNumber: [Int] = []
        /// Ascending.
        var extensionRanges: [ClosedRange<Int32>] = []
        /// Set when the tables are made.
        var table: UnsafePointer<_MessageTable>?
    }

    struct Field {
        let proto: Google_Protobuf_FieldDescriptorProto
        let file: Int
        let scope: Scope
        let position: Int
        let isExtension: Bool
        let features: Features
        var jsonName: String
        /// The message that has the field, or which an extension extends; nil for one that is not linked.
        var containingType: Place?
        var type: FieldType
        /// The message or enum.
        var typePlace: Place?
        var isMap = false
        /// In the storage, even of an `optional` field of proto3.
        var oneof: Int?
        var defaultValue: FieldValue?
        /// The index among the fields by number.
        var tableIndex = 0
        /// For an extension: describes a message with this one field. Set when the tables are made. Nil if the extended
        /// message, or the extension's type, is not linked, or if the number is too large for a field.
        var extensionTable: UnsafePointer<_MessageTable>?

        /// Beside `proto`, because it is read often.
        let isRepeated: Bool

        /// Whether messages tell if the field is set, even if it is set to its default.
        var hasPresence: Bool {
            if isRepeated { return false }
            return type == .message || oneof != nil || isExtension || features.presence != .implicit
        }
    }

    struct Oneof {
        let proto: Google_Protobuf_OneofDescriptorProto
        let message: Int
        let position: Int
        var fields: [Int] = []
        /// Whether protoc made it for an `optional` field of proto3.
        var isSynthetic = false
    }

    struct Enum {
        let proto: Google_Protobuf_EnumDescriptorProto
        let fullName: String
        let file: Int
        let scope: Scope
        let position: Int
        let isClosed: Bool
        var values = 0..<0
    }

    struct EnumValue {
        let proto: Google_Protobuf_EnumValueDescriptorProto
        let enumeration: Int
        let position: Int
    }

    struct Service {
        let proto: Google_Protobuf_ServiceDescriptorProto
        let fullName: String
        let file: Int
        let position: Int
        var methods = 0..<0
    }

    struct Method {
        let proto: Google_Protobuf_MethodDescriptorProto
        let service: Int
        let position: Int
        /// Nil if the file is not linked.
        var input: Place?
        var output: Place?
    }

    /// Whether one of a message's ranges of extensions has a number.
    func hasExtensionRange(ofMessage index: Int, with number: Int32) -> Bool {
        let ranges = messages[index].extensionRanges
        let first = ranges.indices.partitioningIndex { ranges[$0].upperBound >= number }
        return first < ranges.endIndex && ranges[first].contains(number)
    }

    /// The full name of a scope, followed by a dot; empty for a file without a package.
    func prefix(of scope: Scope) -> String {
        let name =
            switch scope {
            case .file(let index): files[index].proto.package
            case .message(let index): messages[index].fullName
            }
        return name.isEmpty ? "" : name + "."
    }

    func fullName(ofField index: Int) -> String { prefix(of: fields[index].scope) + fields[index].proto.name }

    // MARK: Paths, as SourceCodeInfo counts: field numbers of descriptor.proto and indices.

    func path(ofMessage index: Int) -> [Int32] {
        path(of: messages[index].scope, atTopLevel: 4, inMessage: 3, at: messages[index].position)
    }

    func path(ofField index: Int) -> [Int32] {
        let field = fields[index]
        return path(of: field.scope, atTopLevel: 7, inMessage: field.isExtension ? 6 : 2, at: field.position)
    }

    func path(ofEnum index: Int) -> [Int32] {
        path(of: enums[index].scope, atTopLevel: 5, inMessage: 4, at: enums[index].position)
    }

    private func path(of scope: Scope, atTopLevel outer: Int32, inMessage inner: Int32, at position: Int) -> [Int32] {
        switch scope {
        case .file: [outer, Int32(position)]
        case .message(let message): path(ofMessage: message) + [inner, Int32(position)]
        }
    }
}

/// By identity.
extension DescriptorStorage: Hashable {
    static func == (left: DescriptorStorage, right: DescriptorStorage) -> Bool { left === right }

    func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(self))
    }
}

extension DescriptorStorage.Place {
    /// The message at this place, as seen from `storage`.
    func message(from storage: DescriptorStorage) -> MessageDescriptor {
        MessageDescriptor(storage: self.storage ?? storage, index: index)
    }

    func enumeration(from storage: DescriptorStorage) -> EnumDescriptor {
        EnumDescriptor(storage: self.storage ?? storage, index: index)
    }
}

/// The type of a field, as in `FieldDescriptorProto`. Fields of a group are of the type `message`: see
/// ``FieldDescriptor/isDelimited``.
public enum FieldType: Int, Hashable, Sendable, CaseIterable {
    /// The type `double` of .proto files.
    case double = 1
    /// The type `float` of .proto files.
    case float = 2
    /// The type `int64` of .proto files.
    case int64 = 3
    /// The type `uint64` of .proto files.
    case uint64 = 4
    /// The type `int32` of .proto files.
    case int32 = 5
    /// The type `fixed64` of .proto files.
    case fixed64 = 6
    /// The type `fixed32` of .proto files.
    case fixed32 = 7
    /// The type `bool` of .proto files.
    case bool = 8
    /// The type `string` of .proto files.
    case string = 9
    /// A message or a map.
    case message = 11
    /// The type `bytes` of .proto files.
    case bytes = 12
    /// The type `uint32` of .proto files.
    case uint32 = 13
    /// An enum.
    case enumeration = 14
    /// The type `sfixed32` of .proto files.
    case sfixed32 = 15
    /// The type `sfixed64` of .proto files.
    case sfixed64 = 16
    /// The type `sint32` of .proto files.
    case sint32 = 17
    /// The type `sint64` of .proto files.
    case sint64 = 18

    /// Whether values can be packed: all but strings, bytes and messages.
    var isPackable: Bool { self != .string && self != .bytes && self != .message }

    /// Whether it can be the type of a map's keys.
    var isKey: Bool { isPackable && self != .double && self != .float && self != .enumeration || self == .string }
}
