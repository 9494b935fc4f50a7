import Foundation

/// A server of files over HTTP.
enum FileServer {
    /// Serves a folder while `body` runs, and passes it the origin of the pages.
    static func serve(_ folder: URL, _ body: (_ origin: String) async throws -> Void) async throws {
        let program = BackgroundProgram(
            command: [
                "python3", "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", folder.path,
            ],
            readsStandardError: true
        )
        try await program.run(announcing: "Serving HTTP on 127.0.0.1 port ") { line in
            try await body("http://127.0.0.1:\(line.prefix { $0.isNumber })")
        }
    }
}
