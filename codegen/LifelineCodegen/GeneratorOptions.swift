/// The options in `--lifeline_opt=`: the targets, what to generate, and the access level of the Swift.
package struct GeneratorOptions: Equatable {
    /// The version of the interface that the code is for: LIFELINE_INTERFACE_VERSION in lifeline_table.h.
    package static let interfaceVersion = 6

    /// The access level of the generated Swift.
    package enum Visibility: String, CaseIterable {
        case `public` = "Public"
        case package = "Package"
        case `internal` = "Internal"

        /// The keyword and a space, or nothing.
        var modifier: String { self == .internal ? "" : "\(rawValue.lowercased()) " }
    }

    /// How a file's services are treated.
    package enum Services: String, CaseIterable {
        /// They are written beside the messages.
        case withMessages = "true"
        case leftOut = "false"
        /// They are written, and nothing else: the messages are in other modules.
        case only
    }

    /// The library whose API the generated Swift has.
    package enum Compatibility: String, CaseIterable {
        case lifeline = "Lifeline"
        /// Lists are arrays, maps are dictionaries, and bytes are `Data`. The methods of messages have swift-protobuf's
        /// names.
        case swiftProtobuf = "SwiftProtobuf"
    }

    /// The modules that have the code of a .proto file, or of all in a folder, that is generated elsewhere.
    package struct Module: Equatable {
        package let swift: String
        package let c: String
    }

    package private(set) var swiftTarget = ""
    package private(set) var cTarget = ""
    package private(set) var visibility = Visibility.internal
    package private(set) var services = Services.withMessages
    package private(set) var compatibility = Compatibility.lifeline
    /// Whether imports have the access level of `visibility`. Off by default with `Compatibility=SwiftProtobuf`, as in
    /// swift-protobuf: a module cannot mix such imports with plain ones.
    package var usesAccessLevelOnImports: Bool { accessLevelOnImports ?? (compatibility == .lifeline) }
    private var accessLevelOnImports: Bool?
    /// By path of a .proto file or of a folder.
    package private(set) var modules = Self.ownModules

    /// The modules of Lifeline that have types of .proto files.
    private static let ownModules = [
        "google/protobuf": Module(swift: "LifelineWellKnownTypes", c: "CLifelineWellKnownTypes"),
        // In modules of their own, because programs link all types of a module, even unused ones.
        "google/protobuf/compiler": Module(swift: "LifelineDescriptorTypes", c: "CLifelineDescriptorTypes"),
        "google/protobuf/descriptor.proto": Module(swift: "LifelineDescriptorTypes", c: "CLifelineDescriptorTypes"),
    ]

    /// Reads protoc's parameter: `key=value` pairs with commas between them.
    package init(parameter: String) throws {
        var given: [String: String] = [:]
        for pair in parameter.split(separator: ",") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            let (key, value) = (parts[0], parts.count == 2 ? parts[1] : "")
            try set(key, to: value)
            // A parameter may have only one value, and a path only one mapping.
            let subject = key == "ModuleMapping" ? "\(key)=\(value.prefix { $0 != ":" })" : key
            if let other = given.updateValue(value, forKey: subject), other != value {
                throw GeneratorError("--lifeline_opt: \(key) is both \"\(other)\" and \"\(value)\". Give it once.")
            }
        }
        if compatibility == .swiftProtobuf {
            for (path, module) in Self.ownModules where modules[path] == module {
                modules[path] = Module(swift: SwiftContext.compatibility, c: module.c)
            }
        }
        if services == .only {
            // No C is written.
            if !swiftTarget.isEmpty { return }
            throw GeneratorError(
                "--lifeline_opt must name the target of the services, as in "
                    + "--lifeline_opt=Services=only,SwiftTarget=ChatServices,ModuleMapping=chat:ChatProtos:CChatProtos."
            )
        }
        if swiftTarget.isEmpty || cTarget.isEmpty {
            throw GeneratorError(
                "--lifeline_opt must name both targets, as in --lifeline_opt=SwiftTarget=ChatProtos,CTarget=CChatProtos."
            )
        }
        if swiftTarget == cTarget {
            throw GeneratorError(
                "--lifeline_opt: SwiftTarget and CTarget are both \(swiftTarget), but a target of the Swift Package Manager "
                    + "holds either Swift or C. Name two targets."
            )
        }
    }

    private mutating func set(_ key: String, to value: String) throws {
        switch key {
        case "SwiftTarget": swiftTarget = try Self.identifier(value, of: key)
        case "CTarget": cTarget = try Self.identifier(value, of: key)
        case "Visibility":
            guard let visibility = Visibility(rawValue: value) else {
                throw GeneratorError("--lifeline_opt: Visibility is Public, Package or Internal, not \"\(value)\".")
            }
            self.visibility = visibility
        case "Services":
            guard let services = Services(rawValue: value) else {
                throw GeneratorError("--lifeline_opt: Services is true, false or only, not \"\(value)\".")
            }
            self.services = services
        case "Compatibility":
            guard let compatibility = Compatibility(rawValue: value) else {
                throw GeneratorError("--lifeline_opt: Compatibility is Lifeline or SwiftProtobuf, not \"\(value)\".")
            }
            self.compatibility = compatibility
        case "UseAccessLevelOnImports":
            guard let isUsed = Bool(value) else {
                throw GeneratorError("--lifeline_opt: UseAccessLevelOnImports is true or false, not \"\(value)\".")
            }
            accessLevelOnImports = isUsed
        case "ModuleMapping":
            let parts = value.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 3, !parts[0].isEmpty else {
                throw GeneratorError(
                    "--lifeline_opt: ModuleMapping is FILE_OR_FOLDER:SWIFT_MODULE:C_MODULE, not \"\(value)\"."
                )
            }
            let path = parts[0].hasSuffix("/") ? String(parts[0].dropLast()) : parts[0]
            modules[path] = Module(
                swift: try Self.identifier(parts[1], of: key),
                c: try Self.identifier(parts[2], of: key)
            )
        default:
            throw GeneratorError(
                "--lifeline_opt: there is no parameter \"\(key)\". "
                    + "There are SwiftTarget, CTarget, Visibility, Services, Compatibility, UseAccessLevelOnImports and "
                    + "ModuleMapping."
            )
        }
    }

    private static func identifier(_ name: String, of key: String) throws -> String {
        let isIdentifier = name.utf8.enumerated().allSatisfy { index, byte in
            byte == UInt8(ascii: "_") || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
                || (index > 0 && (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte))
        }
        guard !name.isEmpty, isIdentifier else {
            throw GeneratorError("--lifeline_opt: \(key) needs a module's name, and \"\(name)\" is none.")
        }
        return name
    }
}

extension GeneratorOptions {
    /// The module that the Swift of `path` is in: the one that is mapped to its longest prefix, else our own.
    func module(ofFile path: String, isGeneratedHere: Bool) -> Module {
        let own = Module(swift: swiftTarget, c: cTarget)
        return isGeneratedHere ? own : mappedModule(ofFile: path) ?? own
    }

    /// The module that is mapped to the longest prefix of `path`.
    func mappedModule(ofFile path: String) -> Module? {
        var prefix = path[...]
        while true {
            if let module = modules[String(prefix)] { return module }
            guard let slash = prefix.lastIndex(of: "/") else { return nil }
            prefix = prefix[..<slash]
        }
    }

    // MARK: Where files go, relative to protoc's output folder

    /// Headers go into `include`, which the Swift Package Manager makes public.
    func cHeaderPath(for protoPath: String, suffix: String) -> String {
        "\(cTarget)/include/\(protoPath.withoutProtoSuffix)\(suffix)"
    }

    func cSourcePath(for protoPath: String, suffix: String) -> String {
        "\(cTarget)/\(protoPath.withoutProtoSuffix)\(suffix)"
    }

    func cPath(ofProtobufCFile name: String) -> String {
        name.hasSuffix(".h") ? "\(cTarget)/include/\(name)" : "\(cTarget)/\(name)"
    }

    /// The path is in the file's name, since a Swift module may not have two files of one name in different folders.
    func swiftPath(for protoPath: String) -> String {
        let flat = protoPath.withoutProtoSuffix.split(separator: "/").joined(separator: "_")
        return "\(swiftTarget)/\(flat).pb.swift"
    }
}

extension String {
    var withoutProtoSuffix: String { hasSuffix(".proto") ? String(dropLast(6)) : self }
}
