internal import LifelineReflection

extension DescriptorPool {
    /// Finds a message type by its full name, or by the end of that name if only one type matches.
    ///
    /// - Throws: `CommandFailure`, which names similar types.
    func messageType(named name: String) throws(CommandFailure) -> MessageDescriptor {
        try find("message type", named: name, among: types) { $0.fullName }
    }

    /// The error for a schema without `--type`.
    func missingType() -> CommandFailure {
        let ownTypes = types.map(\.fullName).filter { !$0.hasPrefix("google.protobuf.") }
        return CommandFailure(status: .usage, message: "--type is missing. There is \(list(ownTypes)).")
    }

    private var types: [MessageDescriptor] { files.flatMap(\.messages).flatMap(\.withNested) }
}

extension MessageDescriptor {
    /// This type, and the types that are declared in it.
    var withNested: [MessageDescriptor] {
        [self] + messages.filter { !$0.isMapEntry }.flatMap(\.withNested)
    }
}
