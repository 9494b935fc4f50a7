internal import LifelineMessages
internal import LifelineReflection

/// Makes messages of all types of a pool, and reads back what is written of them.
final class RoundTripCheck {
    private let pool: DescriptorPool
    private let registry: MessageRegistry
    private var typeCount = 0
    private var fieldCount = 0
    private var messageCount = 0
    private(set) var failureCount = 0

    init(pool: DescriptorPool) {
        self.pool = pool
        registry = MessageRegistry(pool)
    }

    var summary: String {
        let serviceCount = pool.files.reduce(0) { $0 + $1.services.count }
        return "\(pool.files.count) files, \(typeCount) message types with \(fieldCount) fields, "
            + "\(serviceCount) services: \(messageCount) messages made, \(failureCount) failures"
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
                    try check(MessageFilling(turn: turn).message(type))
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

/// What was read is not what was written.
private struct Difference: Error, CustomStringConvertible {
    var format: String
    var written: DynamicMessage
    var read: DynamicMessage

    var description: String { "of \(written), this comes back from \(format): \(read)" }
}
