internal import LifelineMessages
internal import LifelineReflection

/// Fills a message of each type of a pool, writes it in each format, and checks that it reads back equal.
final class RoundTripCheck {
    private let pool: DescriptorPool
    private let registry: MessageRegistry
    /// By the full names of the messages that have them.
    private let extensions: [String: [FieldDescriptor]]
    private var typeCount = 0
    private var fieldCount = 0
    private var extensionCount: Int { extensions.values.reduce(0) { $0 + $1.count } }
    private var messageCount = 0
    private(set) var failureCount = 0

    init(pool: DescriptorPool) {
        self.pool = pool
        registry = MessageRegistry(pool)
        func declared(in type: MessageDescriptor) -> [FieldDescriptor] {
            type.extensions + type.messages.flatMap(declared)
        }
        let all = pool.files.flatMap { $0.extensions + $0.messages.flatMap(declared) }
        extensions = Dictionary(grouping: all) { $0.containingType?.fullName ?? "" }
    }

    var summary: String {
        let serviceCount = pool.files.reduce(0) { $0 + $1.services.count }
        return "\(pool.files.count) files, \(typeCount) message types with \(fieldCount) fields, "
            + "\(extensionCount) extensions, \(serviceCount) services: \(messageCount) messages made, \(failureCount) failures"
    }

    func run() {
        for file in pool.files { check(file.messages) }
    }

    private func check(_ types: [MessageDescriptor]) {
        for type in types where !type.isMapEntry {
            typeCount += 1
            fieldCount += type.fields.count
            // Each member of a oneof has its turn.
            let turnCount = type.oneofs.map(\.fields.count).max() ?? 1
            for turn in 0..<turnCount {
                messageCount += 1
                do {
                    let filling = MessageFilling(turn: turn)
                    var message = try filling.message(type)
                    for field in extensions[type.fullName, default: []] {
                        try message.set(field, to: filling.value(of: field))
                    }
                    try check(message)
                } catch {
                    failureCount += 1
                    print("\(type.fullName), turn \(turn): \(error)")
                }
            }
            check(type.messages)
        }
    }

    private func check(_ message: DynamicMessage) throws {
        let type = message.descriptor
        var (writing, reading) = (JSONEncodingOptions(), JSONDecodingOptions())
        (writing.types, reading.types) = (registry, registry)
        var (printing, parsing) = (TextFormatEncodingOptions(), TextFormatDecodingOptions())
        (printing.types, parsing.types) = (registry, registry)

        try expect(message, from: "binary", DynamicMessage(type, serializedBytes: message.serializedBytes()))
        let json = try message.jsonString(options: writing)
        try expect(message, from: "JSON", DynamicMessage(type, jsonString: json, options: reading))
        let text = message.textFormatString(options: printing)
        try expect(message, from: "text", DynamicMessage(type, textFormatString: text, options: parsing))
    }

    private func expect(_ message: DynamicMessage, from format: String, _ read: DynamicMessage) throws {
        guard read == message else { throw Difference(format: format, written: message, read: read) }
    }
}

/// The read message differs from the written one.
private struct Difference: Error, CustomStringConvertible {
    var format: String
    var written: DynamicMessage
    var read: DynamicMessage

    var description: String { "of \(written), this comes back from \(format): \(read)" }
}
