internal import Foundation
internal import SwiftProtobuf

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

extension Workload.Content {
    /// The messages that the contenders parse, encoded.
    func encodedBySwiftProtobuf() throws -> [[UInt8]] {
        // The order of a map's entries would else change from run to run.
        var options = BinaryEncodingOptions()
        options.useDeterministicOrdering = true
        return switch self {
        case .envelopes(let plain): try plain.map { try SwiftBenchmark_Envelope($0).serializedBytes(options: options) }
        case .batches(let plain): try plain.map { try SwiftBenchmark_SyncBatch($0).serializedBytes(options: options) }
        }
    }

    func printedBySwiftProtobuf() throws -> [[UInt8]] {
        var options = JSONEncodingOptions()
        options.useDeterministicOrdering = true
        return switch self {
        case .envelopes(let plain): try plain.map { try SwiftBenchmark_Envelope($0).jsonUTF8Bytes(options: options) }
        case .batches(let plain): try plain.map { try SwiftBenchmark_SyncBatch($0).jsonUTF8Bytes(options: options) }
        }
    }

    /// The encoding of a message in JSON.
    func encoded(json: [UInt8]) throws -> [UInt8] {
        var options = BinaryEncodingOptions()
        options.useDeterministicOrdering = true
        return switch self {
        case .envelopes: try SwiftBenchmark_Envelope(jsonUTF8Bytes: json).serializedBytes(options: options)
        case .batches: try SwiftBenchmark_SyncBatch(jsonUTF8Bytes: json).serializedBytes(options: options)
        }
    }

    /// Whether two encodings of a message say the same. They may say it in different orders.
    func areSameMessage(_ left: [UInt8], _ right: [UInt8]) throws -> Bool {
        switch self {
        case .envelopes:
            try SwiftBenchmark_Envelope(serializedBytes: left) == SwiftBenchmark_Envelope(serializedBytes: right)
        case .batches:
            try SwiftBenchmark_SyncBatch(serializedBytes: left) == SwiftBenchmark_SyncBatch(serializedBytes: right)
        }
    }
}
