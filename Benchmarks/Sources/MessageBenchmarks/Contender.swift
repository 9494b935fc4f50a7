internal import CContender
internal import CppContender

/// What is timed.
enum Case: String, CaseIterable {
    case parse
    case parseRead3 = "parse-read-3"
    case parseReadAll = "parse-read-all"
    case serialize
    case buildSerialize = "build-serialize"
    case jsonParse = "json-parse"
    case jsonPrint = "json-print"
}

/// A library, ready to be measured on one workload.
struct Contender {
    /// Goes through all messages of the workload once. It returns a sum that is the same each time, so that no compiler
    /// can leave anything out; the sums of what is read are the same for all contenders.
    typealias Pass = () throws -> UInt64

    let name: String
    var passes: [Case: Pass]

    /// What `serialize` and `buildSerialize` make of the message at an index.
    var serialized: (Int) throws -> [UInt8]
    var built: (Int) throws -> [UInt8]
    /// What `jsonPrint` makes of it, and the encoding of what `jsonParse` does. Nil where there is no JSON.
    var printed: ((Int) throws -> [UInt8])?
    var parsedJSON: ((Int) throws -> [UInt8])?

    /// Nil where it is the same as for another contender.
    var memory: Memory?

    /// Parses all messages and keeps them until `release`.
    struct Memory {
        var keep: () throws -> Void
        var release: () -> Void
        /// Bytes of what a program keeps of a message itself. `keep` puts them where there is room already.
        var handleSize: Int
    }
}

extension Contender {
    /// In the order in which they are shown.
    static let names = [
        "lifeline", "lifeline-borrowed", "lifeline-scoped", "lifeline-dynamic", "lifeline-compatible", "swift-protobuf",
        "libprotobuf-c", "libprotobuf",
    ]

    /// All of them. The first one is what the others are compared with.
    static func all(on workload: Workload) throws -> [Contender] {
        [
            try .lifeline(workload),
            try .lifelineBorrowed(workload),
            try .lifelineScoped(workload),
            try .lifelineDynamic(workload),
            try .lifelineCompatible(workload),
            try .swiftProtobuf(workload),
            .native("libprotobuf-c", c_contender().pointee, workload),
            .native("libprotobuf", cpp_contender().pointee, workload),
        ]
    }
}

/// A type of messages of one of the Swift libraries.
protocol BenchmarkMessage {
    associatedtype Plain

    /// Builds the message field by field.
    init(_ plain: Plain)

    /// A number in the message itself: read after parsing, so that no compiler can leave that out.
    var number: UInt64 { get }

    /// Sums of the fields that `Case.parseRead3` and `Case.parseReadAll` read.
    var threeFields: UInt64 { get }
    var allFields: UInt64 { get }
}

/// Messages that are kept, in an array that has its room before anything is measured.
final class KeptMessages<Message> {
    private var messages: [Message] = []

    init(capacity: Int) { messages.reserveCapacity(capacity) }

    func append(_ message: Message) { messages.append(message) }
    func release() { messages.removeAll(keepingCapacity: true) }
}

// What is read of a string or of bytes: its length and its first byte, so that it has to be there.

@inline(__always) func read(_ text: String) -> UInt64 {
    UInt64(text.utf8.count) &+ UInt64(text.utf8.first ?? 0)
}

@inline(__always) func read(_ bytes: some Collection<UInt8>) -> UInt64 {
    UInt64(bytes.count) &+ UInt64(bytes.first ?? 0)
}
