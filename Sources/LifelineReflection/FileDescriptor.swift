public import LifelineDescriptorTypes

// A descriptor is a reference to the storage with the declaration, and costs nothing to copy. Two are equal if they
// describe the same declaration of the same pool.

/// Describes a .proto file.
public struct FileDescriptor: Hashable, Sendable {
    let storage: DescriptorStorage
    let index: Int

    private var file: DescriptorStorage.File { storage.files[index] }

    /// The path by which other files import it, such as `google/protobuf/timestamp.proto`.
    public var name: String { file.proto.name }
    /// The package; empty without one.
    public var package: String { file.proto.package }
    /// The edition; `proto2` and `proto3` for files of those syntaxes.
    public var edition: Google_Protobuf_Edition { file.edition }
    /// The options. `Message.value(ofExtension:)` reads custom ones.
    public var options: Google_Protobuf_FileOptions { file.proto.options }
    /// The file as it was added. Linked files have no comments.
    public var proto: Google_Protobuf_FileDescriptorProto { file.proto }

    /// The imported files, without those that are not linked.
    public var dependencies: [FileDescriptor] {
        file.dependencies.compactMap { place in
            place.map { FileDescriptor(storage: $0.storage ?? storage, index: $0.index) }
        }
    }
    /// The messages at its top level.
    public var messages: [MessageDescriptor] { file.messages.map { MessageDescriptor(storage: storage, index: $0) } }
    /// The enums at its top level.
    public var enums: [EnumDescriptor] { file.enums.map { EnumDescriptor(storage: storage, index: $0) } }
    /// The services that the file declares.
    public var services: [ServiceDescriptor] {
        file.services.map { ServiceDescriptor(storage: storage, index: $0) }
    }
    /// The extensions that are declared at its top level.
    public var extensions: [FieldDescriptor] {
        file.extensions.map { FieldDescriptor(storage: storage, index: $0) }
    }

    func comments(at path: [Int32]) -> DescriptorComments {
        guard let location = file.locations[path] else { return DescriptorComments() }
        return DescriptorComments(
            leading: location.leadingComments,
            trailing: location.trailingComments,
            detached: Array(location.leadingDetachedComments)
        )
    }
}

/// The comments of a declaration, without comment signs. Empty if the file had none, like linked files and sets without
/// `--include_source_info`.
public struct DescriptorComments: Hashable, Sendable {
    /// Directly before the declaration.
    public var leading = ""
    /// Directly after the declaration.
    public var trailing = ""
    /// Before the leading comment, each with an empty line after it.
    public var detached: [String] = []
}
