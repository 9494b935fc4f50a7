import Foundation
import LifelineTestSupport
import Testing

/// A program in another language, with the commands in Peers/README.md.
enum Peer: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case python, java, cpp, netty

    /// The peers that also read and write files. Netty's codec is only for sockets.
    static let withFiles: [Peer] = [.python, .java, .cpp]

    var testDescription: String { rawValue }

    var program: URL { Checkout.folder.appending(path: ".build-peers/bin/\(rawValue)-peer") }

    /// Runs a command to its end, and returns its standard output. A failure is an issue of the test.
    @discardableResult
    func run(_ arguments: [String], input: Data = Data()) async throws -> Data {
        try await Program(program, arguments).run(input: input)
    }
}

/// The corpora that Peers/build made.
enum Corpus: String, CaseIterable, Sendable {
    case empty, small, large
    case everyField = "every-field"
    /// A message with every field, and times that JSON can represent.
    case printable

    /// How many messages it has.
    var count: Int {
        switch self {
        case .empty, .large: 3
        case .small: 100
        case .everyField, .printable: 14
        }
    }

    /// The stream as Python wrote it.
    var reference: Data {
        get throws {
            try Data(contentsOf: Checkout.folder.appending(path: ".build-peers/corpus/\(rawValue).delimited"))
        }
    }
}

enum Checkout {
    static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
}
