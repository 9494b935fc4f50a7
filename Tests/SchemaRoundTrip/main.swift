internal import Foundation
internal import LifelineMessages
internal import LifelineReflection

// For each message type of a file of descriptors: sets all of its fields, and checks that the message comes back from
// the binary format, from JSON and from text format. codegen/check-schemas runs it.

guard CommandLine.arguments.count == 2, let set = FileManager.default.contents(atPath: CommandLine.arguments[1]) else {
    print("Usage: SchemaRoundTrip FILE, an encoded google.protobuf.FileDescriptorSet")
    exit(64)
}

do {
    let check = RoundTripCheck(pool: try DescriptorPool(serializedFileSet: set))
    check.run()
    print(check.summary)
    exit(check.failureCount == 0 ? 0 : 1)
} catch {
    print("The schemas are refused: \(error)")
    exit(1)
}
