internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

/// The names of generated Swift types and properties. SwiftProtobufNamer chooses them, so that they are like
/// swift-protobuf's. Equal names in a scope are made different.
///
/// A file's names depend only on that file, unless types of several files would have the same name: ``tellApart(_:)``.
struct SwiftNames {
    /// The names for a field: its property, and those for its presence.
    struct Property {
        let name: String
        let has: String
        let clear: String
        /// The method that lends a string or bytes as a span.
        let withSpan: String
        /// If the property is an array or dictionary that is converted from the field: the name of the unconverted
        /// property.
        let withField: String

        /// The case of a oneof's enum, where its type is known.
        var dotted: String { ".\(name.withoutBackticks)" }
    }

    /// The type that contains the extensions which a message declares.
    static let extensionScope = "Extensions"
    /// Names that generated code needs everywhere.
    private static let reservedTypes: Set<String> = ["_CValue", "_Extended", "_Fields", "_Value", SwiftContext.runtime]

    private let isConverted: Bool
    // By full names in the .proto file. The names of types are relative to the type around them.
    private var types: [String: String] = [:]
    private var properties: [String: Property] = [:]
    private var oneofTypes: [String: String] = [:]
    private var oneofProperties: [String: String] = [:]
    /// The full names of the messages that stand for the extensions declared in a message.
    private var nestedExtensions: Set<String> = []
    /// By the names of files.
    private var registries: [String: String] = [:]

    /// - Parameters:
    ///   - files: all files of the request.
    ///   - extensions: by their full names, which are those of the messages that stand for them.
    ///   - isConverted: whether lists and maps have properties that are arrays and dictionaries.
    ///   - module: the Swift module with a file's types.
    init(
        files: [FileDescriptor],
        extensions: [String: FieldDescriptor],
        isConverted: Bool = false,
        module: (FileDescriptor) -> String
    ) {
        self.isConverted = isConverted
        for file in files {
            // Without a module for the well-known types: the namer would otherwise use swift-protobuf's.
            let mappings = ProtoFileToModuleMappings(swiftProtobufModuleName: "")
            let namer = SwiftProtobufNamer(currentFile: file, protoFileToModuleMappings: mappings)
            // Services name this module only where nothing is nested.
            var taken = Self.reservedTypes.union([SwiftContext.sessions])
            addTypes(file.messages, file.enums, extensions, taken: &taken, namer: namer)
            if !file.allExtensions.isEmpty { registries[file.name] = Self.registry(of: file, namer: namer) }
        }
        for files in Dictionary(grouping: files, by: module).values { tellApart(files) }
        for files in Dictionary(grouping: files, by: module).values { tellApartRegistries(of: files) }
        addProperties(of: files.flatMap(\.allExtensions))
    }

    /// Files with the same name in different folders may share a package.
    private mutating func tellApartRegistries(of files: [FileDescriptor]) {
        let all = files.flatMap(\.messages).map(\.fullName) + files.flatMap(\.enums).map(\.fullName)
        var taken = Set(all.compactMap { types[$0] })
        for file in files.sorted(by: { $0.name < $1.name }) {
            guard let name = registries[file.name] else { continue }
            registries[file.name] = Self.unique(name, suffix: "_", taken: &taken)
        }
    }

    /// Renames types of one module to which different files give the same name, such as `B_Foo` of the package `a` and
    /// `Foo` of `a.b`. The one whose package has the most parts keeps its name. Unlike the names in C, people read
    /// these, so they do not all get a hash.
    private mutating func tellApart(_ files: [FileDescriptor]) {
        let all =
            files.flatMap(\.enums).map { (fullName: $0.fullName, suffix: "Enum") }
            + files.flatMap(\.messages).map { (fullName: $0.fullName, suffix: "Message") }
        let typesOfName = Dictionary(grouping: all) { types[$0.fullName] ?? "" }
        var taken = Set(typesOfName.keys)
        for (name, clashing) in typesOfName.sorted(by: { $0.key < $1.key }) {
            let ordered = clashing.sorted {
                let parts = ($0.fullName.count { $0 == "." }, $1.fullName.count { $0 == "." })
                return parts.0 != parts.1 ? parts.0 > parts.1 : $0.fullName < $1.fullName
            }
            for type in ordered.dropFirst() {
                types[type.fullName] = Self.unique(name, suffix: type.suffix, taken: &taken)
            }
        }
    }

    private mutating func addTypes(
        _ messages: [Descriptor],
        _ enums: [EnumDescriptor],
        _ extensions: [String: FieldDescriptor],
        taken: inout Set<String>,
        namer: SwiftProtobufNamer
    ) {
        for type in enums {
            types[type.fullName] = Self.unique(namer.relativeName(enum: type), suffix: "Enum", taken: &taken)
        }
        for message in messages where !message.options.mapEntry {
            let field = extensions[message.fullName]
            let name = field.map(namer.relativeName(extensionField:)) ?? namer.relativeName(message: message)
            let suffix = field == nil ? "Message" : "Extension"
            types[message.fullName] = Self.unique(name, suffix: suffix, taken: &taken)
            if field?.extensionScope != nil { nestedExtensions.insert(message.fullName) }
        }
        for message in messages { addMembers(of: message, extensions, namer: namer) }
    }

    private mutating func addMembers(
        of message: Descriptor,
        _ extensions: [String: FieldDescriptor],
        namer: SwiftProtobufNamer
    ) {
        var taken = Self.reservedTypes
        if !message.extensions.isEmpty { taken.insert(Self.extensionScope) }
        addTypes(message.messages, message.enums, extensions, taken: &taken, namer: namer)
        // By number: a field that is added later has a higher number, and must not rename an older field.
        for field in message.fields.sorted(by: { $0.number < $1.number }) {
            properties[field.fullName] = property(of: field, taken: &taken, namer: namer)
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

    /// The property of an extension may be in a type of another file, beside properties from files that this one does
    /// not know. So its name begins with the name of the package, or of the message around it.
    private mutating func addProperties(of extensions: [FieldDescriptor]) {
        var takenOfMessage: [String: Set<String>] = [:]
        for field in extensions.sorted(by: { ($0.number, $0.fullName) < ($1.number, $1.fullName) }) {
            let mappings = ProtoFileToModuleMappings(swiftProtobufModuleName: "")
            let namer = SwiftProtobufNamer(currentFile: field.file, protoFileToModuleMappings: mappings)
            let names = namer.messagePropertyNames(extensionField: field)
            let message: Descriptor = field.containingType
            let taken = takenOfMessage[message.fullName] ?? members(of: message)
            var property = Property(name: names.value, has: names.has, clear: names.clear, withSpan: "", withField: "")
            var suffix = "_\(field.number)"
            while !taken.isDisjoint(with: [property.name, property.has, property.clear]) {
                property = Property(
                    name: names.value.withoutBackticks + suffix,
                    has: names.has + suffix,
                    clear: names.clear + suffix,
                    withSpan: "",
                    withField: ""
                )
                suffix += "_"
            }
            properties[field.fullName] = property
            takenOfMessage[message.fullName] = taken.union([property.name, property.has, property.clear])
        }
    }

    /// The names of the members for its fields and oneofs.
    private func members(of message: Descriptor) -> Set<String> {
        let ofFields = message.fields.flatMap { (field: FieldDescriptor) in
            let names = property(field)
            return [names.name, names.has, names.clear]
        }
        return Set(ofFields + message.oneofs.map { (oneof: OneofDescriptor) in property(oneof) })
    }

    private static func registry(of file: FileDescriptor, namer: SwiftProtobufNamer) -> String {
        let base = file.name.withoutProtoSuffix.split(separator: "/").last.map(String.init) ?? ""
        return namer.typePrefix(forFile: file) + NamingUtils.toUpperCamelCase(base) + "_Extensions"
    }

    private func property(
        of field: FieldDescriptor,
        taken: inout Set<String>,
        namer: SwiftProtobufNamer
    ) -> Property {
        let names = namer.messagePropertyNames(field: field, prefixed: "", includeHasAndClear: true)
        // The name in upper camel case, as in `hasName`.
        let capitalized = names.has.dropFirst("has".count)
        let withSpan = "with\(capitalized)\(field.type == .string ? "UTF8Span" : "Span")"
        let hasSpan = !field.isRepeated && (field.type == .string || field.type == .bytes)
        let withField = "\(names.name.withoutBackticks)Field"
        var property = Property(
            name: names.name,
            has: names.has,
            clear: names.clear,
            withSpan: withSpan,
            withField: withField
        )
        var suffix = "_\(field.number)"
        let members = { (property: Property) in
            let hasPresence = field.hasPresence && field.realContainingOneof == nil
            return [property.name] + (hasPresence ? [property.has, property.clear] : [])
                + (hasSpan ? [property.withSpan] : []) + (isConverted && field.isRepeated ? [property.withField] : [])
        }
        while !taken.isDisjoint(with: members(property)) {
            property = Property(
                name: names.name.withoutBackticks + suffix,
                has: names.has + suffix,
                clear: names.clear + suffix,
                withSpan: withSpan + suffix,
                withField: withField + suffix
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
        let scope = nestedExtensions.contains(message.fullName) ? [Self.extensionScope] : []
        return (message.containingType.map(path) ?? []) + scope + [relativeName(message)]
    }

    /// The names of the messages around `type` and its own, outermost first.
    func path(_ type: EnumDescriptor) -> [String] {
        (type.containingType.map(path) ?? []) + [relativeName(type)]
    }

    func property(_ field: FieldDescriptor) -> Property {
        properties[field.fullName] ?? Property(name: field.name, has: "", clear: "", withSpan: "", withField: "")
    }

    /// The registry of the extensions that a file declares.
    func registry(of file: FileDescriptor) -> String { registries[file.name] ?? "" }

    func type(_ oneof: OneofDescriptor) -> String { oneofTypes[oneof.fullName] ?? oneof.name }
    func property(_ oneof: OneofDescriptor) -> String { oneofProperties[oneof.fullName] ?? oneof.name }
}

extension String {
    var withoutBackticks: String { hasPrefix("`") ? String(dropFirst().dropLast()) : self }
}
