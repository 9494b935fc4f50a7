/// Messages of one kind for all contenders.
struct Workload {
    let name: String
    let content: Content
    /// Each message of `content`, encoded.
    let encoded: [[UInt8]]
    /// Each message as JSON.
    let json: [[UInt8]]

    enum Content {
        case envelopes([PlainEnvelope])
        case batches([PlainBatch])
    }

    init(name: String, content: Content) throws {
        self.name = name
        self.content = content
        encoded = try content.encodedBySwiftProtobuf()
        json = try content.printedBySwiftProtobuf()
    }

    /// The average size of a message, in bytes.
    var averageSize: Int { encoded.reduce(0) { $0 + $1.count } / encoded.count }
}

extension Workload {
    /// From one short frame to one large message. The inputs are the same in every run.
    static func all() throws -> [Workload] {
        var generator = WorkloadGenerator()
        return [
            // The shortest useful message: the minimum cost of a call.
            try Workload(name: "ack", content: .envelopes([generator.ack(1)])),
            // A message with every field set.
            try Workload(name: "chat", content: .envelopes([generator.chat(1, varied: false)])),
            // A conversation, so that branch predictors cannot learn a single message.
            try Workload(name: "mix", content: .envelopes(generator.mix(count: 256))),
            // Many messages, and 64 KiB of bytes, in one.
            try Workload(name: "batch", content: .batches([generator.batch(itemCount: 80, snapshotSize: 65_536)])),
        ]
    }
}
