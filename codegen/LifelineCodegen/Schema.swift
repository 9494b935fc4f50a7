internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

/// The files of a request, and the names that C and Swift give to what is in them.
struct Schema {
    let descriptors: DescriptorSet
    let names: CNames
    let swiftNames: SwiftNames
    /// Full names of the messages that have a proto2 `required` field, or below which one can stand.
    private let messagesThatReachRequired: Set<String>
    /// Likewise of a `string` that may hold anything: proto2's.
    private let messagesThatReachUncheckedText: Set<String>

    init(_ descriptors: DescriptorSet) {
        self.descriptors = descriptors
        let messages = descriptors.files.flatMap(\.allMessages)
        messagesThatReachRequired = Self.messages(among: messages, thatReach: \.isRequired)
        messagesThatReachUncheckedText = Self.messages(among: messages) {
            $0.type == .string && !$0.requiresUTF8Validation
        }
        names = CNames(files: descriptors.files)
        swiftNames = SwiftNames(files: descriptors.files)
    }

    func reachesRequiredField(_ message: Descriptor) -> Bool { messagesThatReachRequired.contains(message.fullName) }

    func reachesUncheckedText(_ message: Descriptor) -> Bool {
        messagesThatReachUncheckedText.contains(message.fullName)
    }

    /// From the messages with such a field to those that hold them, and so on: each message is looked at once.
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
