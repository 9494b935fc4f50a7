internal import LifelineMessages

extension Contender {
    /// Lifeline without keeping messages: a closure reads each, and the next one reuses its memory. Everything else is
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
        // With a pointer, each use is as fast as that of a local variable. Swift checks each use of a variable that
        // closures share.
        let decoder = UnsafeMutablePointer<ScopedDecoder>.allocate(capacity: 1)
        decoder.initialize(to: ScopedDecoder())
        // The first messages determine how much memory is needed.
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
