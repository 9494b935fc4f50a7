internal import CContender
internal import CppContender

/// The timed operations.
enum Case: String, CaseIterable {
    case parse
    case parseRead3 = "parse-read-3"
    case parseReadAll = "parse-read-all"
    case serialize
    case buildSerialize = "build-serialize"
    case jsonParse = "json-parse"
    case jsonPrint = "json-print"
}

/// A library that is prepared for one workload.
struct Contender {
    /// Processes all messages of the workload once. Returns a sum that is the same each time, so that no compiler can
    /// omit work. The sums of read values are the same for all contenders.
    typealias Pass = () throws -> UInt64

    let name: String
    var passes: [Case: Pass]

    /// The results of `serialize` and `buildSerialize` for the message at an index.
    var serialized: (Int) throws -> [UInt8]
    var built: (Int) throws -> [UInt8]
    /// The result of `jsonPrint`, and the encoding of the result of `jsonParse`. Nil without JSON.
    var printed: ((Int) throws -> [UInt8])?
    var parsedJSON: ((Int) throws -> [UInt8])?

    /// Nil if it is the same as for another contender.
    var memory: Memory?

    /// Parses all messages and keeps them until `release`.
    struct Memory {
        var keep: () throws -> Void
        var release: () -> Void
        /// The bytes that a program keeps for a message outside of the heap. `keep` puts them into existing room.
        var handleSize: Int
    }
}

extension Contender {
    /// In the order in which they are shown.
    static let names = [
        "lifeline", "lifeline-borrowed", "lifeline-scoped", "lifeline-dynamic", "lifeline-compatible", "swift-protobuf",
        "libprotobuf-c", "libprotobuf",
    ]

    /// All contenders. The first one is the reference for the others.
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

/// A message type of one of the Swift libraries.
protocol BenchmarkMessage {
    associatedtype Plain

    /// Builds the message field by field.
    init(_ plain: Plain)

    /// A number in the message, read after parsing, so that no compiler can omit the parsing.
    var number: UInt64 { get }

    /// Sums of the fields that `Case.parseRead3` and `Case.parseReadAll` read.
    var threeFields: UInt64 { get }
    var allFields: UInt64 { get }
}

/// Kept messages, in an array that has its capacity before measuring.
final class KeptMessages<Message> {
    private var messages: [Message] = []

    init(capacity: Int) { messages.reserveCapacity(capacity) }

    func append(_ message: Message) { messages.append(message) }
    func release() { messages.removeAll(keepingCapacity: true) }
}

// The values that are read from a string or bytes: the length and the first byte, so that it has to exist.

@inline(__always) func read(_ text: String) -> UInt64 {
    UInt64(text.utf8.count) &+ UInt64(text.utf8.first ?? 0)
}

@inline(__always) func read(_ bytes: some Collection<UInt8>) -> UInt64 {
    UInt64(bytes.count) &+ UInt64(bytes.first ?? 0)
}
