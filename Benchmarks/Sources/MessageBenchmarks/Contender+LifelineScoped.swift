internal import LifelineMessages

extension Contender {
    /// Lifeline where no message is kept: a closure reads each, and the next one has its memory. What is not here is the
    /// same as for `lifeline`.
    static func lifelineScoped(_ workload: Workload) throws -> Contender {
        switch workload.content {
        case .envelopes: try lifelineScoped(Benchmark_Envelope.self, workload.encoded)
        case .batches: try lifelineScoped(Benchmark_SyncBatch.self, workload.encoded)
        }
    }

    private static func lifelineScoped<Message: LifelineMessages.Message & BenchmarkMessage>(
        _: Message.Type,
        _ encoded: [[UInt8]]
    ) throws -> Contender {
        let inputs = Inputs(encoded)
        var decoder = ScopedDecoder()
        // By inout, so that one access to the variable is checked in a pass, and not one for each message.
        func sum(_ decoder: inout ScopedDecoder, _ read: (Message) -> UInt64) throws -> UInt64 {
            try inputs.sum { try decoder.withMessage(serializedBytes: $0, read) }
        }
        let serialized = { index in
            try decoder.withMessage(Message.self, serializedBytes: encoded[index]) { try $0.serializedBytes() }
        }
        return Contender(
            name: "lifeline-scoped",
            passes: [
                .parse: { try sum(&decoder) { $0.number } },
                .parseRead3: { try sum(&decoder) { $0.threeFields } },
                .parseReadAll: { try sum(&decoder) { $0.allFields } },
            ],
            serialized: serialized,
            built: serialized
        )
    }
}
