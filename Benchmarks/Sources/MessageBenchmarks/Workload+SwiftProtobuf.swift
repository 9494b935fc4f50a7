internal import Foundation
internal import SwiftProtobuf

extension Workload.Content {
    /// The messages that the contenders parse, encoded.
    func encodedBySwiftProtobuf() throws -> [[UInt8]] {
        // Otherwise the order of a map's entries would change from run to run.
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

    /// Whether two encodings have the same content, perhaps in a different order.
    func areSameMessage(_ left: [UInt8], _ right: [UInt8]) throws -> Bool {
        switch self {
        case .envelopes:
            try SwiftBenchmark_Envelope(serializedBytes: left) == SwiftBenchmark_Envelope(serializedBytes: right)
        case .batches:
            try SwiftBenchmark_SyncBatch(serializedBytes: left) == SwiftBenchmark_SyncBatch(serializedBytes: right)
        }
    }
}
