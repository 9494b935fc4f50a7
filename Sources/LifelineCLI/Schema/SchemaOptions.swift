internal import ArgumentParser
internal import LifelineReflection

/// The options for the files that declare message types.
struct SchemaOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A .proto file with the types. Needs protoc. May be given several times.",
            valueName: "file"
        ),
        completion: .file(extensions: ["proto"])
    )
    var proto: [String] = []

    @Option(
        name: [.customShort("I"), .customLong("proto-path")],
        help: ArgumentHelp(
            "A folder that the imports of .proto files are relative to. May be given several times. Default: the working "
                + "folder. The folder of each file is always searched, too.",
            valueName: "folder"
        ),
        completion: .directory
    )
    var protoPath: [String] = []

    @Option(
        help: ArgumentHelp(
            "A file with the types that `protoc --include_imports --descriptor_set_out=FILE` has written. May be given "
                + "several times.",
            valueName: "file"
        ),
        completion: .file()
    )
    var descriptorSet: [String] = []

    func validate() throws {
        if !protoPath.isEmpty, proto.isEmpty {
            throw ValidationError("-I goes with --proto, which names the .proto files to read.")
        }
    }

    /// Whether no files are named.
    var isEmpty: Bool { proto.isEmpty && descriptorSet.isEmpty }

    /// The error for a type without a schema.
    static func missing() -> CommandFailure {
        CommandFailure(
            status: .usage,
            message: "--type needs the schema that declares the type. Give --proto FILE or --descriptor-set FILE."
        )
    }

    /// Reads the files, and returns the types that they and their imports declare; nil if none are named.
    ///
    /// - Throws: `CommandFailure`.
    func load() throws(CommandFailure) -> DescriptorPool? {
        if isEmpty { return nil }
        var pool = DescriptorPool()
        for path in descriptorSet {
            let file = try InputFile(path: path)
            let bytes = try file.readToEnd(limit: DescriptorLimits().byteCount)
            try pool.add(serializedFileSet: bytes, from: path)
        }
        if !proto.isEmpty {
            let set = try compiledDescriptorSet(ofProtoFiles: proto, importedFrom: protoPath)
            try pool.add(serializedFileSet: set, from: proto.joined(separator: ", "))
        }
        return pool
    }
}

extension DescriptorPool {
    /// - Parameter source: the source of the set, for errors.
    fileprivate mutating func add(serializedFileSet bytes: [UInt8], from source: String) throws(CommandFailure) {
        do throws(DescriptorError) {
            try add(serializedFileSet: bytes)
        } catch {
            let advice =
                switch error.code {
                case .malformed: " Is it a file that protoc --descriptor_set_out has written?"
                case .missingImport: " Give protoc --include_imports when it writes a descriptor set."
                default: ""
                }
            throw CommandFailure(
                status: .badData,
                message: "Cannot use the types of \(source). \(error.message)\(advice)"
            )
        }
    }
}
