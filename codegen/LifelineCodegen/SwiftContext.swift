internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

/// What all generators of Swift need to know: names, options, and how to spell types.
struct SwiftContext {
    static let runtime = "LifelineMessages"

    let namer: SwiftProtobufNamer
    let names: CNames
    let options: GeneratorOptions
    /// Names of generated types that stand in scopes where the standard library's would be looked for.
    private let shadowingNames: Set<String>
    private let generatedFiles: Set<String>

    init(file: FileDescriptor, schema: Schema, options: GeneratorOptions, generating files: [String]) {
        // Without a module for the well-known types, which the namer would look for in swift-protobuf's.
        let mappings = ProtoFileToModuleMappings(swiftProtobufModuleName: "")
        namer = SwiftProtobufNamer(currentFile: file, protoFileToModuleMappings: mappings)
        names = schema.names
        self.options = options
        generatedFiles = Set(files)
        var shadowing: Set<String> = []
        for message in schema.descriptors.files.flatMap(\.allMessages) {
            shadowing.insert(namer.relativeName(message: message))
            shadowing.formUnion(message.enums.map(namer.relativeName))
        }
        shadowing.formUnion(schema.descriptors.files.flatMap(\.enums).map(namer.relativeName))
        shadowingNames = shadowing
    }

    func isGeneratedHere(_ file: FileDescriptor) -> Bool { generatedFiles.contains(file.name) }

    // MARK: Modifiers

    /// "public " and the like, for types and members.
    var modifier: String { options.visibility.modifier }

    /// In front of members whose bodies other modules may inline.
    var inlinableModifier: String { options.visibility == .public ? "@inlinable public " : modifier }

    var frozenModifier: String { options.visibility == .public ? "@frozen public " : modifier }

    var importModifier: String { options.visibility.rawValue.lowercased() }

    // MARK: Types

    /// A type of the runtime's: qualified, for a message may have its name.
    func runtime(_ name: String) -> String { "\(Self.runtime).\(name)" }

    /// A type of the standard library's: qualified where a generated type has its name.
    func standard(_ name: String) -> String { shadowingNames.contains(name) ? "Swift.\(name)" : name }

    /// The Swift type of a field's value, or of one element of a repeated field.
    func elementType(of field: FieldDescriptor) -> String {
        switch field.type {
        case .double: standard("Double")
        case .float: standard("Float")
        case .int64, .sint64, .sfixed64: standard("Int64")
        case .uint64, .fixed64: standard("UInt64")
        case .int32, .sint32, .sfixed32: standard("Int32")
        case .uint32, .fixed32: standard("UInt32")
        case .bool: standard("Bool")
        case .string: standard("String")
        case .bytes: "[\(standard("UInt8"))]"
        case .enum: namer.fullName(enum: field.enumType)
        case .message, .group: namer.fullName(message: field.messageType)
        }
    }
}
