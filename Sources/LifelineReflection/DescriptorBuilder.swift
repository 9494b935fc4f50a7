internal import CLifelineMessages
internal import LifelineDescriptorTypes
internal import LifelineMessages

/// Makes a storage of files: adds their declarations, checks them, and finds the types that they refer to.
///
/// The files may come from a peer. The cost is linear in their size, except for sorting, and for looking up relative
/// names, which has its own limit.
struct DescriptorBuilder {
    let storage = DescriptorStorage()
    let earlier: [DescriptorStorage]
    /// The file of a linked program that is described. protoc has checked it.
    let linkedFile: UnsafePointer<LifelineFile>?
    let limits: DescriptorLimits
    private var (nameByteCount, typeCount, memberCount) = (0, 0, 0)
    /// The remaining budget for looking up relative names, in bytes of names, and for their imports, in files.
    var remainingWork = 256 << 20
    /// The file that is being built, and the first of its declarations.
    var file = 0
    var (firstMessage, firstField) = (0, 0)
    /// The files whose declarations it sees. By storage, because the same file has different indices in different
    /// storages.
    var visibleFiles: Set<FileKey> = []
    /// The packages of these files, and the enclosing ones.
    var visiblePackages: Set<String> = []

    struct FileKey: Hashable {
        let storage: DescriptorStorage
        let index: Int
    }

    init(
        earlier: [DescriptorStorage],
        limits: DescriptorLimits = DescriptorLimits(),
        linkedFile: UnsafePointer<LifelineFile>? = nil
    ) {
        self.earlier = earlier
        self.limits = limits
        self.linkedFile = linkedFile
    }

    /// Builds files, each after its imports.
    mutating func build(_ files: [Google_Protobuf_FileDescriptorProto]) throws(DescriptorError) {
        for file in files {
            try declare(file)
            try link()
        }
        var tables = TableBuilder(storage: storage)
        tables.build()
    }

    // MARK: Errors and limits

    /// An error about a declaration of the file that is being built.
    func error(_ code: DescriptorError.Code, _ name: String, _ problem: String) -> DescriptorError {
        DescriptorError(code: code, message: "\(storage.files[file].proto.name): \(name): \(problem)")
    }

    mutating func countType() throws(DescriptorError) {
        typeCount += 1
        if typeCount > limits.typeCount { throw limitError("types", limits.typeCount, "typeCount") }
    }

    mutating func countMembers(_ count: Int) throws(DescriptorError) {
        memberCount += count
        if memberCount > limits.memberCount { throw limitError("fields and values", limits.memberCount, "memberCount") }
    }

    private mutating func countNameBytes(_ count: Int) throws(DescriptorError) {
        nameByteCount += count
        if nameByteCount > limits.byteCount { throw limitError("bytes of names", limits.byteCount, "byteCount") }
    }

    private func limitError(_ things: String, _ limit: Int, _ option: String) -> DescriptorError {
        DescriptorError(
            code: .limitExceeded,
            message: "The files have more than \(limit) \(things). "
                + "Raise DescriptorLimits.\(option) if that is legitimate."
        )
    }

    // MARK: Names

    /// Records a full name, which must be unique.
    mutating func add(_ symbol: DescriptorStorage.Symbol, named name: String) throws(DescriptorError) {
        try countNameBytes(name.utf8.count)
        // Linked files are checked already, and looking up their names in all others would take long.
        let others = linkedFile == nil ? earlier : []
        let isTaken = storage.symbols.updateValue(symbol, forKey: name) != nil
        if isTaken || others.contains(where: { $0.symbols[name] != nil }) {
            throw error(.duplicateName, name, "something else has this name.")
        }
    }

    mutating func addPackage(_ package: String) throws(DescriptorError) {
        var name = ""
        for part in package.split(separator: ".", omittingEmptySubsequences: false) {
            try checkIdentifier(String(part), of: package)
            name += (name.isEmpty ? "" : ".") + part
            try countNameBytes(name.utf8.count)
            for storage in linkedFile == nil ? [storage] + earlier : [] {
                guard let other = storage.symbols[name] else { continue }
                guard case .package = other else {
                    throw error(.duplicateName, name, "this is a package, but something else has its name.")
                }
            }
            storage.symbols[name] = .package
        }
    }

    func checkIdentifier(_ name: String, of place: String) throws(DescriptorError) {
        let isIdentifier = name.utf8.enumerated().allSatisfy { index, byte in
            byte == UInt8(ascii: "_") || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
                || index > 0 && (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
        }
        if name.isEmpty || !isIdentifier {
            throw error(.invalidName, place, "\(name.textFormatLiteral) is no identifier.")
        }
    }
}
