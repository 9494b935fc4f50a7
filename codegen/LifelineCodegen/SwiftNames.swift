internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

/// The names of generated Swift types and properties: those that SwiftProtobufNamer gives, so that they read like
/// swift-protobuf's, told apart where two of one scope would be the same.
///
/// As with `CNames`, a file's names depend on that file alone.
struct SwiftNames {
    /// A field's property, and what says whether it is set.
    struct Property {
        let name: String
        let has: String
        let clear: String
        /// The method that lends a string or bytes as a span.
        let withSpan: String

        /// The case of a oneof's enum, where its type is known.
        var dotted: String { ".\(name.withoutBackticks)" }
    }

    /// What generated code needs under its own name, wherever it stands.
    private static let reservedTypes: Set<String> = ["_CValue", "_Fields", SwiftContext.runtime]

    // By full names in the .proto file; those of types are relative to the type around them.
    private var types: [String: String] = [:]
    private var properties: [String: Property] = [:]
    private var oneofTypes: [String: String] = [:]
    private var oneofProperties: [String: String] = [:]

    init(files: [FileDescriptor]) {
        for file in files {
            // Without a module for the well-known types, which the namer would look for in swift-protobuf's.
            let mappings = ProtoFileToModuleMappings(swiftProtobufModuleName: "")
            let namer = SwiftProtobufNamer(currentFile: file, protoFileToModuleMappings: mappings)
            // Nothing nested stands where services name this module.
            var taken = Self.reservedTypes.union([SwiftContext.sessions])
            addTypes(file.messages, file.enums, taken: &taken, namer: namer)
        }
    }

    private mutating func addTypes(
        _ messages: [Descriptor],
        _ enums: [EnumDescriptor],
        taken: inout Set<String>,
        namer: SwiftProtobufNamer
    ) {
        for type in enums {
            types[type.fullName] = Self.unique(namer.relativeName(enum: type), suffix: "Enum", taken: &taken)
        }
        for message in messages where !message.options.mapEntry {
            types[message.fullName] = Self.unique(
                namer.relativeName(message: message),
                suffix: "Message",
                taken: &taken
            )
        }
        for message in messages { addMembers(of: message, namer: namer) }
    }

    private mutating func addMembers(of message: Descriptor, namer: SwiftProtobufNamer) {
        var taken = Self.reservedTypes
        addTypes(message.messages, message.enums, taken: &taken, namer: namer)
        // By number, for a field that is added later has a higher one, and must not rename an older field.
        for field in message.fields.sorted(by: { $0.number < $1.number }) {
            properties[field.fullName] = Self.property(of: field, taken: &taken, namer: namer)
        }
        for oneof in message.oneofs where !oneof.isOfOptionalField {
            let suffix = "_\(oneof.fields[0].number)"
            oneofTypes[oneof.fullName] = Self.unique(namer.relativeName(oneof: oneof), suffix: suffix, taken: &taken)
            oneofProperties[oneof.fullName] = Self.unique(
                namer.messagePropertyName(oneof: oneof).name,
                suffix: suffix,
                taken: &taken
            )
        }
    }

    private static func property(
        of field: FieldDescriptor,
        taken: inout Set<String>,
        namer: SwiftProtobufNamer
    ) -> Property {
        let names = namer.messagePropertyNames(field: field, prefixed: "", includeHasAndClear: true)
        // The name in upper camel case, as in `hasName`.
        let capitalized = names.has.dropFirst("has".count)
        let withSpan = "with\(capitalized)\(field.type == .string ? "UTF8Span" : "Span")"
        let hasSpan = !field.isRepeated && (field.type == .string || field.type == .bytes)
        var property = Property(name: names.name, has: names.has, clear: names.clear, withSpan: withSpan)
        var suffix = "_\(field.number)"
        let members = { (property: Property) in
            let hasPresence = field.hasPresence && field.realContainingOneof == nil
            return [property.name] + (hasPresence ? [property.has, property.clear] : [])
                + (hasSpan ? [property.withSpan] : [])
        }
        while !taken.isDisjoint(with: members(property)) {
            property = Property(
                name: names.name.withoutBackticks + suffix,
                has: names.has + suffix,
                clear: names.clear + suffix,
                withSpan: withSpan + suffix
            )
            suffix += "_"
        }
        taken.formUnion(members(property))
        return property
    }

    private static func unique(_ name: String, suffix: String, taken: inout Set<String>) -> String {
        var name = name
        while taken.contains(name) { name = name.withoutBackticks + suffix }
        taken.insert(name)
        return name
    }
}

// MARK: - Looking names up

extension SwiftNames {
    func relativeName(_ message: Descriptor) -> String { types[message.fullName] ?? message.name }
    func relativeName(_ type: EnumDescriptor) -> String { types[type.fullName] ?? type.name }

    /// The names of the types around `message` and its own, outermost first.
    func path(_ message: Descriptor) -> [String] {
        (message.containingType.map(path) ?? []) + [relativeName(message)]
    }

    /// The names of the messages around `type` and its own, outermost first.
    func path(_ type: EnumDescriptor) -> [String] {
        (type.containingType.map(path) ?? []) + [relativeName(type)]
    }

    func property(_ field: FieldDescriptor) -> Property {
        properties[field.fullName] ?? Property(name: field.name, has: "", clear: "", withSpan: "")
    }

    func type(_ oneof: OneofDescriptor) -> String { oneofTypes[oneof.fullName] ?? oneof.name }
    func property(_ oneof: OneofDescriptor) -> String { oneofProperties[oneof.fullName] ?? oneof.name }
}

extension String {
    var withoutBackticks: String { hasPrefix("`") ? String(dropFirst().dropLast()) : self }
}
