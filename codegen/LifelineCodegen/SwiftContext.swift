internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

/// The state that all generators of Swift share: names, options, and the spelling of types.
struct SwiftContext {
    static let runtime = "LifelineMessages"
    /// The module with the sessions that services are called over.
    static let sessions = "Lifeline"
    /// The module that code for `Compatibility=SwiftProtobuf` needs.
    static let compatibility = "LifelineSwiftProtobufCompatibility"
    /// The module that declares `Data`.
    static let foundation = "FoundationEssentials"

    private let schema: Schema
    var names: CNames { schema.names }
    var swiftNames: SwiftNames { schema.swiftNames }
    let options: GeneratorOptions
    /// For the cases of enums.
    private let namer: SwiftProtobufNamer
    /// Names of generated types that would be found in place of the standard library's.
    private let shadowingNames: Set<String>
    /// Names of this file's nested types, which Swift finds before those of other scopes.
    private let nestedNames: Set<String>
    private let generatedFiles: Set<String>

    init(file: FileDescriptor, schema: Schema, options: GeneratorOptions, generating files: [String]) {
        let mappings = ProtoFileToModuleMappings(swiftProtobufModuleName: "")
        namer = SwiftProtobufNamer(currentFile: file, protoFileToModuleMappings: mappings)
        self.schema = schema
        self.options = options
        generatedFiles = options.services == .only ? [] : Set(files)
        // Properties of extensions are in the messages that they extend.
        nestedNames = file.allExtensions.reduce(into: Self.typeNames(of: file, in: schema.swiftNames).nested) {
            names,
            field in
            names.formUnion(Self.typeNames(of: field.containingType.file, in: schema.swiftNames).nested)
        }
        shadowingNames = schema.descriptors.files.reduce(into: []) { shadowing, file in
            let (topLevel, nested) = Self.typeNames(of: file, in: schema.swiftNames)
            shadowing.formUnion(topLevel.union(nested))
        }
    }

    private static func typeNames(
        of file: FileDescriptor,
        in names: SwiftNames
    ) -> (topLevel: Set<String>, nested: Set<String>) {
        let topLevel = Set(file.messages.map(names.relativeName) + file.enums.map(names.relativeName))
        var nested: Set<String> = []
        for message in file.allMessages where !message.options.mapEntry {
            if message.containingType != nil { nested.insert(names.relativeName(message)) }
            nested.formUnion(message.enums.map(names.relativeName))
        }
        return (topLevel, nested)
    }

    func isGeneratedHere(_ file: FileDescriptor) -> Bool { generatedFiles.contains(file.name) }

    // MARK: Modifiers

    /// "public " and the like, for types and members.
    var modifier: String { options.visibility.modifier }

    /// For accessors and methods that are too large for the optimizer to inline into other modules by itself. Other
    /// members do not have it, because each one with it makes the module compile more slowly.
    var inlinable: String { options.visibility == .public ? "@inlinable " : "" }

    var importModifier: String { "\(options.visibility.rawValue.lowercased()) " }

    // MARK: Types

    /// A type of the runtime, qualified because a message may have its name.
    func runtime(_ name: String) -> String { "\(Self.runtime).\(name)" }

    /// A type of the standard library, qualified if a generated type has its name.
    func standard(_ name: String) -> String { shadowingNames.contains(name) ? "Swift.\(name)" : name }

    var isForSwiftProtobuf: Bool { options.compatibility == .swiftProtobuf }

    /// The protocols that messages and enums conform to.
    var messageProtocol: String {
        isForSwiftProtobuf ? "\(Self.compatibility).SwiftProtobufMessage" : runtime("Message")
    }
    var enumProtocol: String {
        isForSwiftProtobuf ? "\(Self.compatibility).SwiftProtobufEnum" : runtime("ProtobufEnum")
    }

    /// How accessors reach the C struct. For swift-protobuf, `_message` would first store changed lists.
    var message: String { isForSwiftProtobuf ? "_content.message" : "_message" }
    /// The same, for changes after which a submessage may be absent.
    var presence: String { isForSwiftProtobuf ? "_content.presence" : "_message" }
    /// The C struct, for such changes.
    var mutableFields: String {
        isForSwiftProtobuf ? "\(presence).mutableFields(as: Self._table)" : "_mutableFields()"
    }

    // No generated type is named `Data`: swift-protobuf's names, which are used here, leave that to Foundation.
    private var bytes: String { isForSwiftProtobuf ? "Data" : "[\(standard("UInt8"))]" }

    /// An expression for the bytes in `literal`, an array literal.
    func bytes(_ literal: String) -> String { isForSwiftProtobuf ? "\(bytes)(\(literal))" : literal }

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
        case .bytes: bytes
        case .enum: qualified(swiftNames.path(field.enumType), from: field.enumType.file)
        case .message, .group: type(of: field.messageType)
        }
    }

    /// The Swift type of an extension's value.
    func valueType(of field: FieldDescriptor) -> String {
        let element = elementType(of: field)
        if !field.isRepeated { return element }
        return isForSwiftProtobuf ? "[\(element)]" : listType(of: field)
    }

    func listType(of field: FieldDescriptor) -> String {
        "\(runtime("RepeatedField"))<\(elementType(of: field))>"
    }

    /// The extension that `message` stands for; nil for one of the .proto file's.
    func extensionOf(_ message: Descriptor) -> FieldDescriptor? { schema.extensionOf(message) }

    /// The Swift type of the message that an extension extends.
    func extendedType(of field: FieldDescriptor) -> String { type(of: field.containingType) }

    func type(of message: Descriptor) -> String { qualified(swiftNames.path(message), from: message.file) }

    /// The Swift type of a method's messages, which is not nested in another type. One from another module, without a
    /// prefix, may have the name of one of Lifeline's types.
    func messageType(_ message: Descriptor) -> String {
        let module = options.module(ofFile: message.file.name, isGeneratedHere: isGeneratedHere(message.file)).swift
        let name = swiftNames.path(message).joined(separator: ".")
        let isAmbiguous = module != options.swiftTarget && namer.typePrefix(forFile: message.file).isEmpty
        return isAmbiguous ? "\(module).\(name)" : name
    }

    /// A generated type's full name. It has the module if a nested type would be found in place of its first part.
    private func qualified(_ path: [String], from file: FileDescriptor) -> String {
        let name = path.joined(separator: ".")
        guard nestedNames.contains(path[0]) else { return name }
        return options.module(ofFile: file.name, isGeneratedHere: isGeneratedHere(file)).swift + "." + name
    }

    // MARK: Cases of enums

    func caseName(_ value: EnumValueDescriptor) -> String { namer.relativeName(enumValue: value) }
    func dottedCaseName(_ value: EnumValueDescriptor) -> String { namer.dottedRelativeName(enumValue: value) }
}
