internal import LifelineMessages

extension Contender {
    /// Lifeline where no message is kept: a closure reads each, and the next one has its memory. What is not here is
    /// the same as for `lifeline`.
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
        // Through a pointer, each use is as fast as that of a local variable: of one that closures share, Swift checks
        // each use.
        let decoder = UnsafeMutablePointer<ScopedDecoder>.allocate(capacity: 1)
        decoder.initialize(to: ScopedDecoder())
        // The first messages show how much memory is needed.
        for bytes in encoded + encoded { _ = try decoder.pointee.withMessage(serializedBytes: bytes, \Message.number) }
        let serialized = { index in
            try decoder.pointee.withMessage(Message.self, serializedBytes: encoded[index]) { try $0.serializedBytes() }
        }
        return Contender(
            name: "lifeline-scoped",
            passes: [
                .parse: {
                    try inputs.sum {
                        try decoder.pointee.withMessage(Message.self, serializedBytes: $0) { $0.number }
                    }
                },
                .parseRead3: {
                    try inputs.sum {
                        try decoder.pointee.withMessage(Message.self, serializedBytes: $0) { $0.threeFields }
                    }
                },
                .parseReadAll: {
                    try inputs.sum {
                        try decoder.pointee.withMessage(Message.self, serializedBytes: $0) { $0.allFields }
                    }
                },
            ],
            serialized: serialized,
            built: serialized
        )
    }
}
