internal import LifelineDescriptorTypes
internal import LifelineMessages
internal import LifelineReflection

extension FileDescriptor {
    /// The encoded `FileDescriptorProto`, without imports that are not linked into the program. Only options need
    /// those. Extensions of messages in such imports, mostly custom options, are also left out.
    var completeInItself: [UInt8] {
        var proto = proto
        removeMissingImports(from: &proto)
        if !extensions.isEmpty { proto.extension = .init(linked(extensions)) }
        for (index, message) in messages.enumerated() {
            message.removeMissingExtensions(from: &proto.messageType[index])
        }
        do {
            return try proto.serializedBytes()
        } catch {
            // The file was decoded, and only shrinks.
            preconditionFailure("A file cannot be encoded. \(error)")
        }
    }

    /// Files refer to their public and weak imports by index.
    private func removeMissingImports(from proto: inout Google_Protobuf_FileDescriptorProto) {
        let linked = Set(dependencies.map(\.name))
        let kept = proto.dependency.enumerated().filter { linked.contains($0.element) }
        let indices = Dictionary(
            uniqueKeysWithValues: kept.enumerated().map { (Int32($0.element.offset), Int32($0.offset)) }
        )
        proto.publicDependency = .init(proto.publicDependency.compactMap { indices[$0] })
        proto.weakDependency = .init(proto.weakDependency.compactMap { indices[$0] })
        proto.dependency = .init(kept.map(\.element))
        proto.optionDependency = []
    }
}

extension MessageDescriptor {
    /// - Parameter proto: the descriptor of this message.
    fileprivate func removeMissingExtensions(from proto: inout Google_Protobuf_DescriptorProto) {
        if !extensions.isEmpty { proto.extension = .init(linked(extensions)) }
        for (index, message) in messages.enumerated() {
            message.removeMissingExtensions(from: &proto.nestedType[index])
        }
    }
}

/// The extensions whose messages are linked.
private func linked(_ extensions: [FieldDescriptor]) -> [Google_Protobuf_FieldDescriptorProto] {
    extensions.filter { $0.containingType != nil }.map(\.proto)
}
