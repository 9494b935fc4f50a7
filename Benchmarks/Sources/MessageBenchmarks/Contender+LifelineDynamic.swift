internal import LifelineDescriptorTypes
internal import LifelineMessages
internal import LifelineReflection

extension Contender {
    /// Lifeline's messages with a descriptor that was read at run time.
    static func lifelineDynamic(_ workload: Workload) throws -> Contender {
        let (linked, name) =
            switch workload.content {
            case .envelopes: (DescriptorPool([Benchmark_Envelope.self]), Benchmark_Envelope.protoMessageName)
            case .batches: (DescriptorPool([Benchmark_SyncBatch.self]), Benchmark_SyncBatch.protoMessageName)
            }
        let pool = try DescriptorPool(.with { $0.file = RepeatedField(linked.files.map(\.proto)) })
        guard let type = pool.message(named: name), let field = type.fields.first else { throw UsageError() }
        let messages = try workload.encoded.map { try DynamicMessage(type, serializedBytes: $0) }
        let (inputs, parsed, json) = (Inputs(workload.encoded), Inputs(messages), Inputs(workload.json))
        return Contender(
            name: "lifeline-dynamic",
            passes: [
                .parse: { try inputs.sum { try DynamicMessage(type, serializedBytes: $0).has(field) ? 1 : 0 } },
                .serialize: { try parsed.sum { UInt64(try $0.serializedBytes().count) } },
                .jsonParse: { try json.sum { try DynamicMessage(type, jsonUTF8Bytes: $0).has(field) ? 1 : 0 } },
                .jsonPrint: { try parsed.sum { UInt64(try $0.jsonUTF8Bytes().count) } },
            ],
            serialized: { try messages[$0].serializedBytes() },
            // Building field by field is not measured.
            built: { try messages[$0].serializedBytes() },
            printed: { try messages[$0].jsonUTF8Bytes() },
            parsedJSON: { try DynamicMessage(type, jsonUTF8Bytes: workload.json[$0]).serializedBytes() }
        )
    }
}
