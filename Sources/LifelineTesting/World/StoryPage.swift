internal import Foundation
internal import LifelineCore

/// A story as an HTML page in one file, which needs no network.
///
/// Its data is JSON. Its script makes texts and drawings of the data, and never HTML.
struct StoryPage: Sendable {
    /// The name of the test.
    private let name: String
    private let seed: UInt64
    private let data: Content

    private struct Content: Encodable {
        struct Fault: Encodable { let number: Int, time: Int64, text: String }
        let name: String
        /// A string, because JavaScript's numbers cannot hold all seeds.
        let seed: String
        let failure: String
        let command: String
        let remark: String?
        let faults: [Fault]
        let picture: StoryPicture
    }

    init(
        name: String,
        seed: UInt64,
        failure: WorldFailure,
        command: String,
        remark: String?,
        _ played: StoryRunner.Played
    ) {
        (self.name, self.seed) = (name, seed)
        data = Content(
            name: name.escaped(),
            seed: "\(seed)",
            failure: failure.description.escaped(limit: 10_000),
            command: command.escaped(limit: 100_000),
            remark: remark,
            faults: played.faults.map {
                Content.Fault(number: $0.number, time: $0.time.saturatedNanoseconds, text: $0.text.escaped())
            },
            picture: StoryPicture(played.notes, hosts: played.hosts)
        )
    }

    /// Returns the folder that the environment names, by default one in the build folder.
    static func folder(_ environment: [String: String] = ProcessInfo.processInfo.environment) -> URL {
        URL(filePath: environment["LIFELINE_STORIES"] ?? ".build/lifeline-stories", directoryHint: .isDirectory)
    }

    /// The name of the test, without characters that are unsafe in the name of a file, and the seed.
    var fileName: String {
        let words = name.split { !($0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_")) }
        // Names of files have up to 255 bytes.
        let safe = words.joined(separator: "-").prefix(100)
        return "\(safe.isEmpty ? "story" : safe)-\(seed).html"
    }

    /// Writes the page into a folder, which is created if necessary. Returns the path of the file.
    func write(to folder: URL) throws -> String {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let file = folder.appending(path: fileName)
        try Data(html().utf8).write(to: file, options: .atomic)
        return file.absoluteURL.path
    }

    func html() throws -> String {
        // Allows only the page's own script and style, and no requests.
        let nonce = (0..<4).map { _ in String(UInt32.random(in: 0...(.max)), radix: 16) }.joined()
        return """
            <!DOCTYPE html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'nonce-\(nonce)'; \
            style-src 'nonce-\(nonce)'; base-uri 'none'; form-action 'none'">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <title>A story that failed</title>
            <style nonce="\(nonce)">
            \(StoryPage.style)
            </style>
            </head>
            <body>
            \(StoryPage.body)
            <script id="story" type="application/json">\(try json())</script>
            <script nonce="\(nonce)">
            "use strict";
            \(StoryPage.drawing)
            \(StoryPage.controls)
            </script>
            </body>
            </html>

            """
    }

    /// Returns the data without characters of HTML markup. JSON has those only in strings, where it can escape them.
    private func json() throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(data), as: UTF8.self)
            .replacing("<", with: "\\u003c")
            .replacing(">", with: "\\u003e")
            .replacing("&", with: "\\u0026")
    }
}
