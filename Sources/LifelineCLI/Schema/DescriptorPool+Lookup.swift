internal import LifelineReflection

extension DescriptorPool {
    /// Finds a message type by its full name, or by the end of it if only one type has that.
    ///
    /// - Throws: `CommandFailure`, which names similar types.
    func messageType(named name: String) throws(CommandFailure) -> MessageDescriptor {
        let name = name.hasPrefix(".") ? String(name.dropFirst()) : name
        if let type = message(named: name) { return type }
        let matches = types.filter { $0.fullName.hasSuffix(".\(name)") }
        if matches.count == 1 { return matches[0] }
        if matches.count > 1 {
            throw CommandFailure(
                status: .usage,
                message: "--type \(name) may be \(list(matches.map(\.fullName))). Give the full name."
            )
        }
        let last = name.split(separator: ".").last.map { $0.lowercased() } ?? ""
        let similar = ownTypes.filter { $0.lowercased().contains(last) }
        throw CommandFailure(
            status: .usage,
            message: "There is no message type \(name). The schema has \(list(similar.isEmpty ? ownTypes : similar))."
        )
    }
}

extension DescriptorPool {
    /// The error for a schema without `--type`.
    func missingType() -> CommandFailure {
        CommandFailure(status: .usage, message: "--type is missing. The schema has \(list(ownTypes)).")
    }

    fileprivate var types: [MessageDescriptor] { files.flatMap(\.messages).flatMap(\.withNested) }

    /// The names of all types but the well-known ones, which are seldom meant.
    fileprivate var ownTypes: [String] {
        types.map(\.fullName).filter { !$0.hasPrefix("google.protobuf.") }
    }
}

extension MessageDescriptor {
    /// This type, and those that are declared in it.
    var withNested: [MessageDescriptor] {
        [self] + messages.filter { !$0.isMapEntry }.flatMap(\.withNested)
    }
}

/// Some names in words: the first ten, and how many more there are.
///
/// - Parameter conjunction: what stands before the last one.
func list(_ names: [String], _ conjunction: String = "and") -> String {
    if names.isEmpty { return "none" }
    let shown = names.prefix(10)
    if names.count > shown.count { return shown.joined(separator: ", ") + " and \(names.count - shown.count) more" }
    if shown.count == 1 { return shown[0] }
    return shown.dropLast().joined(separator: ", ") + " \(conjunction) " + shown[shown.count - 1]
}
