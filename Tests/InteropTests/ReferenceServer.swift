import Foundation
import Lifeline

/// A server of an older framing, in Python, written from the framing's description: Peers/older_framings.
enum ReferenceServer: String, Sendable {
    case fixedHeader = "fixed_header_server"
    case headLine = "head_line_server"

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Runs the server while `body` runs.
    func run(_ arguments: [String] = [], _ body: (Endpoint) async throws -> Void) async throws {
        let script = Checkout.folder.appending(path: "Tests/InteropTests/Peers/older_framings/\(rawValue).py")
        let program = BackgroundProgram(
            command: ["/usr/bin/python3", "-B", script.path] + arguments,
            readsStandardError: true
        )
        try await program.run { line in
            guard let port = UInt16(line) else { throw Failure(description: "\(script.path) did not print its port.") }
            try await body(.tcp(host: "127.0.0.1", port: port))
        }
    }
}
