internal import Foundation
internal import SwiftProtobuf

// `run` copies this file, and those of builders and readers, for Lifeline with swift-protobuf's API.
extension Contender {
    /// Apple's library.
    static func swiftProtobuf(_ workload: Workload) throws -> Contender {
        switch workload.content {
        case .envelopes(let plain):
            try swiftProtobuf(SwiftBenchmark_Envelope.self, plain, workload.encoded, workload.json)
        case .batches(let plain):
            try swiftProtobuf(SwiftBenchmark_SyncBatch.self, plain, workload.encoded, workload.json)
        }
    }

    private static func swiftProtobuf<Message: SwiftProtobuf.Message & BenchmarkMessage>(
        _: Message.Type,
        _ plain: [Message.Plain],
        _ encoded: [[UInt8]],
        _ jsonTexts: [[UInt8]]
    ) throws -> Contender {
        let messages = try encoded.map { try Message(serializedBytes: $0) }
        let (inputs, parsed, contents) = (Inputs(encoded), Inputs(messages), Inputs(plain))
        let json = Inputs(jsonTexts)
        let kept = KeptMessages<Message>(capacity: encoded.count)
        return Contender(
            name: "swift-protobuf",
            passes: [
                .parse: { try inputs.sum { try Message(serializedBytes: $0).number } },
                .parseRead3: { try inputs.sum { try Message(serializedBytes: $0).threeFields } },
                .parseReadAll: { try inputs.sum { try Message(serializedBytes: $0).allFields } },
                .serialize: { try parsed.sum { UInt64((try $0.serializedBytes() as [UInt8]).count) } },
                .buildSerialize: { try contents.sum { UInt64((try Message($0).serializedBytes() as [UInt8]).count) } },
                .jsonParse: { try json.sum { try Message(jsonUTF8Bytes: $0).number } },
                .jsonPrint: { try parsed.sum { UInt64((try $0.jsonUTF8Bytes() as [UInt8]).count) } },
            ],
            serialized: { try messages[$0].serializedBytes() },
            built: { try Message(plain[$0]).serializedBytes() },
            printed: { try messages[$0].jsonUTF8Bytes() },
            parsedJSON: { try Message(jsonUTF8Bytes: jsonTexts[$0]).serializedBytes() },
            memory: Memory(
                keep: { for bytes in encoded { kept.append(try Message(serializedBytes: bytes)) } },
                release: { kept.release() },
                handleSize: MemoryLayout<Message>.stride
            )
        )
    }
}
