internal import CLifelineMessages

/// Types of messages and extensions. They are needed where the input has only a name or number: for messages in a
/// `google.protobuf.Any` in JSON and text format, and for extensions in those formats and in encoded messages.
///
///     let types = MessageRegistry([Sample_Chat_V1_ChatMessage.self, Sample_Chat_V1_User.self])
///     let json = try envelope.jsonString(options: JSONEncodingOptions(types: types))
///
/// For each `.proto` file that declares extensions, generated code has a registry of them.
public struct MessageRegistry: Sendable {
    // An object, so that C can have a reference to it. It is never changed after it is shared.
    private final class Storage: Sendable {
        let messages: [String: Entry]
        let extensions: [ExtensionKey: Entry]
        let extensionsByName: [ExtensionName: Entry]

        init(_ entries: some Sequence<Entry>) {
            var messages: [String: Entry] = [:]
            var extensions: [ExtensionKey: Entry] = [:]
            for entry in entries {
                if let key = ExtensionKey(entry.table) {
                    extensions[key] = entry
                } else {
                    messages[entry.name] = entry
                }
            }
            (self.messages, self.extensions) = (messages, extensions)
            var extensionsByName: [ExtensionName: Entry] = [:]
            for (key, entry) in extensions {
                for name in [entry.name, entry.table.extensionTextName] {
                    extensionsByName[ExtensionName(extended: key.extended, name: name)] = entry
                }
            }
            self.extensionsByName = extensionsByName
        }

        var all: [Entry] { Array(messages.values) + extensions.values }
    }

    /// A message or an extension.
    private struct Entry: @unchecked Sendable {
        // @unchecked Sendable, because tables never change.
        let table: UnsafePointer<_MessageTable>
        /// Nil for a type that is known only at run time.
        let type: (any Message.Type)?
        /// Keeps the table of such a type alive.
        let owner: (any AnyObject & Sendable)?

        var name: String { String(cString: table.pointee.full_name) }
    }

    /// The key of an extension in an encoded message.
    private struct ExtensionKey: Hashable, @unchecked Sendable {
        // @unchecked Sendable, because tables never change.
        let extended: UnsafePointer<_MessageTable>
        let number: UInt32

        init(extended: UnsafePointer<_MessageTable>, number: UInt32) {
            (self.extended, self.number) = (extended, number)
        }

        /// Nil if the table is not an extension's.
        init?(_ table: UnsafePointer<_MessageTable>) {
            guard let extended = table.pointee.extended else { return nil }
            self.init(extended: extended, number: table.pointee.fields.pointee.number)
        }
    }

    /// The key of an extension in JSON and text format: its name in brackets.
    private struct ExtensionName: Hashable, @unchecked Sendable {
        // @unchecked Sendable, because tables never change.
        let extended: UnsafePointer<_MessageTable>
        let name: String
    }

    /// Nil if there are no types.
    private var storage: Storage?

    /// A registry without types.
    public init() {}

    /// - Parameter types: messages and extensions; of two messages with one name, and of two extensions of a message
    ///   with one number, the last counts.
    public init(_ types: [any Message.Type]) {
        storage = Storage(types.map { Entry(table: $0._table, type: $0, owner: nil) })
    }

    /// - Parameter tables: the tables of types that are known only at run time, and an object that keeps each alive.
    package init(tables: [(table: UnsafePointer<_MessageTable>, owner: any AnyObject & Sendable)]) {
        storage = Storage(tables.map { Entry(table: $0.table, type: nil, owner: $0.owner) })
    }

    /// The linked type of the message with this full name, such as `google.protobuf.Timestamp`.
    public subscript(name: String) -> (any Message.Type)? {
        // Strings with different bytes may be equal.
        guard let entry = storage?.messages[name], entry.name.utf8.elementsEqual(name.utf8) else { return nil }
        return entry.type
    }

    /// Adds the types of another registry. If both have a name or number, the other's type counts.
    public mutating func add(_ other: MessageRegistry) {
        guard let others = other.storage?.all else { return }
        storage = Storage((storage?.all ?? []) + others)
    }

    /// Calls `body` with the types in C.
    func withCTypes<Result, Failure: Error>(
        _ body: (LifelineTypes) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try withExtendedLifetime(storage) { () throws(Failure) in
            guard let storage else { return try body(LifelineTypes()) }
            let types = LifelineTypes(
                find_message: { context, name, count in
                    MessageRegistry.message(named: UnsafeRawBufferPointer(start: name, count: count), in: context)
                },
                find_extension: { context, extended, number, name, count in
                    let name = name.map { UnsafeRawBufferPointer(start: $0, count: count) }
                    return MessageRegistry.extension(of: extended, number: number, name: name, in: context)
                },
                context: Unmanaged.passUnretained(storage).toOpaque()
            )
            return try body(types)
        }
    }

    private static func storage(_ context: UnsafeMutableRawPointer?) -> Storage? {
        context.map { Unmanaged<Storage>.fromOpaque($0).takeUnretainedValue() }
    }

    private static func message(
        named name: UnsafeRawBufferPointer,
        in context: UnsafeMutableRawPointer?
    ) -> UnsafePointer<_MessageTable>? {
        // Strings with different bytes may be equal.
        guard let entry = storage(context)?.messages[String(decoding: name, as: UTF8.self)],
            name.elementsEqual(entry.name.utf8)
        else { return nil }
        return entry.table
    }

    private static func `extension`(
        of extended: UnsafePointer<_MessageTable>,
        number: UInt32,
        name: UnsafeRawBufferPointer?,
        in context: UnsafeMutableRawPointer?
    ) -> UnsafePointer<_MessageTable>? {
        guard let storage = storage(context) else { return nil }
        guard let name else { return storage.extensions[ExtensionKey(extended: extended, number: number)]?.table }
        let key = ExtensionName(extended: extended, name: String(decoding: name, as: UTF8.self))
        // Strings with different bytes may be equal.
        guard let table = storage.extensionsByName[key]?.table,
            name.elementsEqual(table.extensionTextName.utf8)
                || name.elementsEqual(String(cString: table.pointee.full_name).utf8)
        else { return nil }
        return table
    }
}

extension UnsafePointer<_MessageTable> {
    /// The name of an extension in brackets, in text format.
    fileprivate var extensionTextName: String {
        var count = 0
        let name = lifeline_extension_text_name(self, &count)
        return String(decoding: UnsafeRawBufferPointer(start: name, count: count), as: UTF8.self)
    }
}
