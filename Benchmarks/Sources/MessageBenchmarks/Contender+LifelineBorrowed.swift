internal import LifelineMessages

extension Contender {
    /// Lifeline without copies for the program: closures borrow strings, bytes and the serialized message in place, and
    /// elements are built in place. Everything else is the same as for `lifeline`.
    static func lifelineBorrowed(_ workload: Workload) throws -> Contender {
        switch workload.content {
        case .envelopes(let plain): try lifelineBorrowed(Benchmark_Envelope.self, plain, workload.encoded)
        case .batches(let plain): try lifelineBorrowed(Benchmark_SyncBatch.self, plain, workload.encoded)
        }
    }

    private static func lifelineBorrowed<Message: LifelineMessages.Message & BorrowingMessage>(
        _: Message.Type,
        _ plain: [Message.Plain],
        _ encoded: [[UInt8]]
    ) throws -> Contender {
        let messages = try encoded.map { try Message(serializedBytes: $0) }
        let (inputs, parsed, contents) = (Inputs(encoded), Inputs(messages), Inputs(plain))
        return Contender(
            name: "lifeline-borrowed",
            passes: [
                .parseRead3: { try inputs.sum { try Message(serializedBytes: $0).borrowedThreeFields } },
                .parseReadAll: { try inputs.sum { try Message(serializedBytes: $0).borrowedAllFields } },
                .serialize: { try parsed.sum { try $0.withSerializedBytes { UInt64($0.count) } } },
                .buildSerialize: {
                    try contents.sum { try Message(inPlace: $0).withSerializedBytes { UInt64($0.count) } }
                },
            ],
            serialized: { try messages[$0].withSerializedBytes { [UInt8]($0) } },
            built: { try Message(inPlace: plain[$0]).withSerializedBytes { [UInt8]($0) } }
        )
    }
}

/// A message type that is read and built without copies.
protocol BorrowingMessage {
    associatedtype Plain
    init(inPlace plain: Plain)

    /// As in `BenchmarkMessage`.
    var borrowedThreeFields: UInt64 { get }
    var borrowedAllFields: UInt64 { get }
}
