public import LifelineDescriptorTypes
public import LifelineMessages

/// Descriptors of messages, enums, services and extensions, by their full names.
///
/// A pool is made from a `FileDescriptorSet`, as `protoc --include_imports --descriptor_set_out` writes, or from types
/// that are linked into the program:
///
///     let pool = try DescriptorPool(serializedFileSet: bytes)
///     let type = pool.message(named: "sample.chat.v1.ChatMessage")
///
/// It is a value: adding files to a copy does not change the original. Descriptors keep the memory that they use alive.
public struct DescriptorPool: Sendable {
    /// The files that were added together, in order.
    private var storages: [DescriptorStorage] = []

    /// A pool without files.
    public init() {}

    /// A pool with the files of a set. Throws as ``add(_:limits:)`` does.
    public init(
        _ set: Google_Protobuf_FileDescriptorSet,
        limits: DescriptorLimits = DescriptorLimits()
    ) throws(DescriptorError) {
        try add(set, limits: limits)
    }

    /// A pool with the files of an encoded `google.protobuf.FileDescriptorSet`. Throws as ``add(_:limits:)`` does.
    public init(
        serializedFileSet bytes: some Sequence<UInt8>,
        limits: DescriptorLimits = DescriptorLimits()
    ) throws(DescriptorError) {
        try add(serializedFileSet: bytes, limits: limits)
    }

    /// A pool with the files that declare these linked types, and all their linked imports.
    ///
    /// Files that are imported only for options are not linked. Extensions of messages that are not linked have no
    /// ``FieldDescriptor/containingType``.
    public init(_ types: [any Message.Type]) {
        for type in types { add(LinkedFiles.storages(behind: type._table)) }
    }

    private mutating func add(_ linked: [DescriptorStorage]) {
        for storage in linked where !storages.contains(where: { $0 === storage }) { storages.append(storage) }
    }

    /// Adds the files of a set. They may be in any order, and may import files of the pool. Files that the pool already
    /// has are skipped.
    ///
    /// - Throws: ``DescriptorError``, which names the file and the wrong declaration. The pool is then unchanged.
    public mutating func add(
        _ set: Google_Protobuf_FileDescriptorSet,
        limits: DescriptorLimits = DescriptorLimits()
    ) throws(DescriptorError) {
        guard set.file.count <= limits.fileCount else {
            throw DescriptorError(
                code: .limitExceeded,
                message: "The set has \(set.file.count) files, more than \(limits.fileCount). "
                    + "Raise DescriptorLimits.fileCount if that is legitimate."
            )
        }
        var order = ImportOrder()
        // Each file can occur many times, but is normalized only once.
        var normalized: [String: Google_Protobuf_FileDescriptorProto] = [:]
        for file in set.file {
            if let other = self.file(named: file.name)?.proto ?? order.file(named: file.name) {
                let other = normalized[file.name] ?? other.normalized
                normalized[file.name] = other
                guard file.normalized == other else {
                    throw DescriptorError(
                        code: .duplicateFile,
                        message: "\(file.name): there is another file with this name, and with another content."
                    )
                }
            } else {
                order.add(file)
            }
        }
        var builder = DescriptorBuilder(earlier: storages, limits: limits)
        try builder.build(try order.sorted())
        if !builder.storage.files.isEmpty { storages.append(builder.storage) }
    }

    /// Adds the files of an encoded `google.protobuf.FileDescriptorSet`. See ``add(_:limits:)``.
    public mutating func add(
        serializedFileSet bytes: some Sequence<UInt8>,
        limits: DescriptorLimits = DescriptorLimits()
    ) throws(DescriptorError) {
        let bytes = Array(bytes)
        guard bytes.count <= limits.byteCount else {
            throw DescriptorError(
                code: .limitExceeded,
                message: "The set has \(bytes.count) bytes, more than \(limits.byteCount). "
                    + "Raise DescriptorLimits.byteCount if that is legitimate."
            )
        }
        let set: Google_Protobuf_FileDescriptorSet
        do {
            set = try Google_Protobuf_FileDescriptorSet(
                serializedBytes: bytes,
                options: DecodingOptions(memoryLimit: limits.memoryLimit)
            )
        } catch {
            if error.code == .memoryLimitExceeded {
                throw DescriptorError(
                    code: .limitExceeded,
                    message: "The set takes too much memory. Raise DescriptorLimits.byteCount if that is legitimate."
                )
            }
            throw DescriptorError(code: .malformed, message: "The bytes are no FileDescriptorSet. \(error.message)")
        }
        try add(set, limits: limits)
    }
}

// MARK: - Looking up

extension DescriptorPool {
    /// The files. A file comes after its imports.
    public var files: [FileDescriptor] {
        storages.flatMap { storage in storage.files.indices.map { FileDescriptor(storage: storage, index: $0) } }
    }

    /// All messages, except the entries of maps. Each comes before those that are declared in it.
    var messages: [MessageDescriptor] {
        storages.flatMap { storage in
            storage.messages.indices.map { MessageDescriptor(storage: storage, index: $0) }.filter { !$0.isMapEntry }
        }
    }

    /// The file with this path, by which others import it.
    public func file(named path: String) -> FileDescriptor? {
        for storage in storages.reversed() {
            if let index = storage.filesByPath[path] { return FileDescriptor(storage: storage, index: index) }
        }
        return nil
    }

    /// The message with this full name, such as `google.protobuf.Timestamp`.
    public func message(named name: String) -> MessageDescriptor? {
        guard case (.message(let index), let storage)? = symbol(named: name) else { return nil }
        return MessageDescriptor(storage: storage, index: index)
    }

    /// The enum with this full name.
    public func enumeration(named name: String) -> EnumDescriptor? {
        guard case (.enumeration(let index), let storage)? = symbol(named: name) else { return nil }
        return EnumDescriptor(storage: storage, index: index)
    }

    /// The service with this full name.
    public func service(named name: String) -> ServiceDescriptor? {
        guard case (.service(let index), let storage)? = symbol(named: name) else { return nil }
        return ServiceDescriptor(storage: storage, index: index)
    }

    /// The extension with this full name: the name of its scope, and its own.
    public func `extension`(named name: String) -> FieldDescriptor? {
        guard case (.field(let index), let storage)? = symbol(named: name), storage.fields[index].isExtension else {
            return nil
        }
        return FieldDescriptor(storage: storage, index: index)
    }

    /// The extension of a message with this number. It belongs to this message, and not to one of another pool with the
    /// same name: only this one can be read and set.
    public func `extension`(of message: MessageDescriptor, number: Int) -> FieldDescriptor? {
        guard let number = Int32(exactly: number) else { return nil }
        let key = DescriptorStorage.ExtensionKey(message: message.fullName, number: number)
        for storage in storages {
            guard let index = storage.extensions[key] else { continue }
            let field = FieldDescriptor(storage: storage, index: index)
            if field.containingType?.table == message.table { return field }
        }
        return nil
    }

    /// All extensions of a message. See ``extension(of:number:)``.
    public func extensions(of message: MessageDescriptor) -> [FieldDescriptor] {
        extensions.filter { $0.containingType?.table == message.table }
    }

    /// All extensions of all messages.
    var extensions: [FieldDescriptor] {
        storages.flatMap { storage in
            storage.fields.indices.lazy.filter { storage.fields[$0].isExtension }
                .map { FieldDescriptor(storage: storage, index: $0) }
        }
    }

    private func symbol(named name: String) -> (DescriptorStorage.Symbol, DescriptorStorage)? {
        for storage in storages.reversed() {
            if let symbol = storage.symbols[name] { return (symbol, storage) }
        }
        return nil
    }
}

// MARK: - Files

/// Sorts files so that each comes after its imports.
private struct ImportOrder {
    private var files: [Google_Protobuf_FileDescriptorProto] = []
    private var indices: [String: Int] = [:]

    mutating func add(_ file: Google_Protobuf_FileDescriptorProto) {
        indices[file.name] = files.count
        files.append(file)
    }

    func file(named name: String) -> Google_Protobuf_FileDescriptorProto? { indices[name].map { files[$0] } }

    /// The files in order. Imports that are not among them are skipped.
    func sorted() throws(DescriptorError) -> [Google_Protobuf_FileDescriptorProto] {
        enum State { case new, begun, done }
        var states = [State](repeating: .new, count: files.count)
        var sorted: [Google_Protobuf_FileDescriptorProto] = []
        for first in files.indices where states[first] == .new {
            // The files on the path, with the number of imports visited. This is a loop, because chains can be long.
            var path = [(file: first, visited: 0)]
            states[first] = .begun
            while let (file, visited) = path.last {
                guard visited < files[file].dependency.count else {
                    states[file] = .done
                    sorted.append(files[file])
                    path.removeLast()
                    continue
                }
                path[path.count - 1].visited += 1
                guard let next = indices[files[file].dependency[visited]] else { continue }
                switch states[next] {
                case .new:
                    states[next] = .begun
                    path.append((next, 0))
                case .begun:
                    throw DescriptorError(
                        code: .cyclicImport,
                        message: "\(files[next].name): the file imports itself, by way of \(files[file].name)."
                    )
                case .done: break
                }
            }
        }
        return sorted
    }
}

extension Google_Protobuf_FileDescriptorProto {
    /// Removes the parts that may differ between two copies of a file: comments, and names in JSON that follow from the
    /// other names.
    fileprivate var normalized: Google_Protobuf_FileDescriptorProto {
        var file = self
        file.clearSourceCodeInfo()
        for index in file.messageType.indices { file.messageType[index].removeImpliedNames() }
        for index in file.extension.indices { file.extension[index].removeImpliedName() }
        return file
    }
}

extension Google_Protobuf_DescriptorProto {
    fileprivate mutating func removeImpliedNames() {
        for index in field.indices { field[index].removeImpliedName() }
        for index in `extension`.indices { `extension`[index].removeImpliedName() }
        for index in nestedType.indices { nestedType[index].removeImpliedNames() }
    }
}

extension Google_Protobuf_FieldDescriptorProto {
    fileprivate mutating func removeImpliedName() {
        if hasJsonName, jsonName == name.camelCased { clearJsonName() }
    }
}
