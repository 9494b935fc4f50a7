internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

/// The files of a request, and the names of their contents in C and Swift.
struct Schema {
    let descriptors: DescriptorSet
    let names: CNames
    let swiftNames: SwiftNames
    /// The full names of the messages that have a proto2 `required` field, or can contain one at any depth.
    private let messagesThatReachRequired: Set<String>
    /// The same for a `string` whose text is not checked, as in proto2.
    private let messagesThatReachUncheckedText: Set<String>
    /// By their full names, which are also those of the messages that stand for them: see ``ExtensionMessages``.
    private let extensions: [String: FieldDescriptor]

    /// - Parameters:
    ///   - descriptors: All files of the request.
    ///   - module: The Swift module that a file's types are in.
    init(
        _ descriptors: DescriptorSet,
        compatibility: GeneratorOptions.Compatibility = .lifeline,
        module: (FileDescriptor) -> String
    ) {
        self.descriptors = descriptors
        let messages = descriptors.files.flatMap(\.allMessages)
        messagesThatReachRequired = Self.messages(among: messages, thatReach: \.isRequired)
        messagesThatReachUncheckedText = Self.messages(among: messages) {
            $0.type == .string && !$0.requiresUTF8Validation
        }
        extensions = Dictionary(
            descriptors.files.flatMap(\.allExtensions).map { ($0.fullName, $0) },
            uniquingKeysWith: { first, _ in first }
        )
        names = CNames(files: descriptors.files)
        swiftNames = SwiftNames(
            files: descriptors.files,
            extensions: extensions,
            isConverted: compatibility == .swiftProtobuf,
            module: module
        )
    }

    func reachesRequiredField(_ message: Descriptor) -> Bool { messagesThatReachRequired.contains(message.fullName) }

    func reachesUncheckedText(_ message: Descriptor) -> Bool {
        messagesThatReachUncheckedText.contains(message.fullName)
    }

    /// The extension that `message` stands for; nil for one of the .proto file's.
    func extensionOf(_ message: Descriptor) -> FieldDescriptor? { extensions[message.fullName] }

    /// The message that stands for an extension.
    func message(of field: FieldDescriptor) -> Descriptor? { descriptors.descriptor(named: field.fullName) }

    /// The other files that declare a message which an extension of `file` extends.
    static func filesOfExtendedMessages(in file: FileDescriptor) -> [FileDescriptor] {
        let files = file.allExtensions.compactMap { $0.containingType.file }.filter { $0 !== file }
        return Dictionary(files.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first }).values
            .sorted { $0.name < $1.name }
    }

    /// From the messages with such a field to those that contain them, and so on. Looks at each message once.
    private static func messages(
        among messages: [Descriptor],
        thatReach isSought: (FieldDescriptor) -> Bool
    ) -> Set<String> {
        var holders: [String: [String]] = [:]
        for message in messages {
            for field in message.fields where field.isMessage {
                holders[field.messageType.fullName, default: []].append(message.fullName)
            }
        }
        var pending = messages.filter { $0.fields.contains(where: isSought) }.map(\.fullName)
        var found = Set(pending)
        while let name = pending.popLast() {
            for holder in holders[name, default: []] where found.insert(holder).inserted { pending.append(holder) }
        }
        return found
    }
}
