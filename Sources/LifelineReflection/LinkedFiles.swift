internal import CLifelineMessages
internal import LifelineDescriptorTypes
internal import LifelineMessages
internal import Synchronization

/// The files of the program's own messages. Each is built at its first use, and kept.
enum LinkedFiles {
    /// A file or a table.
    private struct Constant<Pointee>: Hashable, @unchecked Sendable {
        // @unchecked Sendable, because constants never change.
        let pointer: UnsafePointer<Pointee>
    }

    private struct State {
        var storages: [Constant<LifelineFile>: DescriptorStorage] = [:]
        var indices: [Constant<_MessageTable>: Int] = [:]
    }

    private static let state = Mutex(State())

    /// The descriptor of a linked message.
    static func message(_ table: UnsafePointer<_MessageTable>) -> MessageDescriptor {
        if table.pointee.extended != nil {
            let name = String(cString: table.pointee.full_name)
            preconditionFailure("\(name) is an extension, not a message. See DescriptorPool.extension(named:)")
        }
        let (file, table) = (file(of: table), Constant(pointer: table))
        return state.withLock { state in
            let storage = storage(of: file, &state)
            guard let index = state.indices[table] else { preconditionFailure("A message is not in its own file") }
            return MessageDescriptor(storage: storage, index: index)
        }
    }

    /// The storages of a linked message's file and of all its imports, imports first.
    static func storages(behind table: UnsafePointer<_MessageTable>) -> [DescriptorStorage] {
        let file = file(of: table)
        return state.withLock { state in
            filesInOrder(from: file).map { storage(of: $0, &state) }
        }
    }

    private static func file(of table: UnsafePointer<_MessageTable>) -> Constant<LifelineFile> {
        guard let file = table.pointee.file else { preconditionFailure("A message's table has no file") }
        return Constant(pointer: file)
    }

    private static func storage(of file: Constant<LifelineFile>, _ state: inout State) -> DescriptorStorage {
        if let storage = state.storages[file] { return storage }
        for file in filesInOrder(from: file) where state.storages[file] == nil { build(file, &state) }
        guard let storage = state.storages[file] else { preconditionFailure("A file was not built") }
        return storage
    }

    private static func build(_ file: Constant<LifelineFile>, _ state: inout State) {
        let earlier = filesInOrder(from: file).dropLast().compactMap { state.storages[$0] }
        let bytes = UnsafeRawBufferPointer(start: file.pointer.pointee.bytes, count: Int(file.pointer.pointee.count))
        var builder = DescriptorBuilder(earlier: Array(earlier), linkedFile: file.pointer)
        do {
            try builder.build([try Google_Protobuf_FileDescriptorProto(serializedBytes: bytes)])
        } catch {
            // protoc checked it when the code was generated.
            preconditionFailure("Generated code has a descriptor that makes no sense. \(error)")
        }
        state.storages[file] = builder.storage
        for index in 0..<Int(file.pointer.pointee.message_count) {
            state.indices[Constant(pointer: file.pointer.pointee.messages.unsafelyUnwrapped[index])] = index
        }
    }

    /// A file and all its imports, each after its own imports.
    private static func filesInOrder(from file: Constant<LifelineFile>) -> [Constant<LifelineFile>] {
        var order: [Constant<LifelineFile>] = []
        var seen: Set<Constant<LifelineFile>> = [file]
        func visit(_ file: Constant<LifelineFile>) {
            let imports = UnsafeBufferPointer(
                start: file.pointer.pointee.dependencies,
                count: Int(file.pointer.pointee.dependency_count)
            )
            for next in imports.compactMap({ $0.map(Constant.init) }) where seen.insert(next).inserted { visit(next) }
            order.append(file)
        }
        visit(file)
        return order
    }
}
