internal import LifelineMessages

extension Contender {
    /// Lifeline without copies for the program: closures borrow strings and bytes where they lie, and the serialized
    /// message too. What is not here is the same as for `lifeline`.
    static func lifelineBorrowed(_ workload: Workload) throws -> Contender {
        switch workload.content {
        case .envelopes(let plain): try lifelineBorrowed(Benchmark_Envelope.self, plain, workload.encoded)
        case .batches(let plain): try lifelineBorrowed(Benchmark_SyncBatch.self, plain, workload.encoded)
        }
    }

    #if BORROWED_READERS
    private typealias Borrowable = BenchmarkMessage & BorrowableMessage
    #else
    private typealias Borrowable = BenchmarkMessage
    #endif

    private static func lifelineBorrowed<Message: LifelineMessages.Message & Borrowable>(
        _: Message.Type,
        _ plain: [Message.Plain],
        _ encoded: [[UInt8]]
    ) throws -> Contender {
        let messages = try encoded.map { try Message(serializedBytes: $0) }
        var contender = Contender(
            name: "lifeline-borrowed",
            passes: [
                .serialize: { try messages.sum { try $0.withSerializedBytes { UInt64($0.count) } } },
                .buildSerialize: { try plain.sum { try Message($0).withSerializedBytes { UInt64($0.count) } } },
            ],
            serialized: { try messages[$0].withSerializedBytes { [UInt8]($0) } },
            built: { try Message(plain[$0]).withSerializedBytes { [UInt8]($0) } }
        )
        #if BORROWED_READERS
        contender.passes[.parseRead3] = { try encoded.sum { try Message(serializedBytes: $0).borrowedThreeFields } }
        contender.passes[.parseReadAll] = { try encoded.sum { try Message(serializedBytes: $0).borrowedAllFields } }
        #endif
        return contender
    }
}
