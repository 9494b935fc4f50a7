import Foundation
import LifelineTestSupport
import Testing

/// Runs the commands of the examples' READMEs, word by word, and compares what they print. Only the port is another one,
/// and what is built already is not built again.
@Suite(.timeLimit(.minutes(3))) struct ReadmeTests {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Examples")

    #if Store
    static let examples = ["telemetry", "thermostat"]
    #else
    static let examples = ["thermostat"]
    #endif

    @Test(arguments: examples) func commandsPrintWhatTheReadmeShows(example: String) async throws {
        let port = "\(try TestPort.next())"
        let readme = try String(
            contentsOf: ReadmeTests.folder.appending(path: "\(example)/README.md"),
            encoding: .utf8
        ).replacing("7000", with: port)
        let blocks = readme.matches(of: /(?s)```(sh|text)\n(.*?)```/).map { (language: $0.output.1, text: $0.output.2) }
        let commands = blocks.filter { $0.language == "sh" }.map { String($0.text) }.joined()
        let expected = blocks.filter { $0.language == "text" }.flatMap { $0.text.split(separator: "\n") }
        #expect(commands.contains("--to tcp://127.0.0.1:\(port)") && expected.count > 3)
        let programs = URL(filePath: try Program.product(example, []).path).deletingLastPathComponent().path
        let script = """
            set -e
            cd '\(ReadmeTests.folder.deletingLastPathComponent().path)'
            mktemp() { command mktemp -d -p "$files"; }
            swift() { [ "$1" = build ] && [ -x "\(programs)/${@: -1}" ]; }
            files=$(command mktemp -d)
            trap 'kill -9 $(jobs -p) 2>/dev/null || true; wait; rm -r "$files"' EXIT
            \(commands)
            """
        let outcome = try await Program(URL(filePath: "/bin/bash"), ["-c", script]).outcome()
        #expect(outcome.status == 0, "\(outcome.errorText)")
        let printed = String(decoding: outcome.output, as: UTF8.self).split(separator: "\n")
        #expect(printed.count == expected.count, "\(printed)")
        for (line, shown) in zip(printed, expected) {
            // "…" stands for what is different each time.
            let parts = shown.split(separator: "…", omittingEmptySubsequences: false).map(NSRegularExpression.escaped)
            #expect(line.range(of: "^" + parts.joined(separator: ".*") + "$", options: .regularExpression) != nil)
        }
    }
}

extension NSRegularExpression {
    fileprivate static func escaped(_ text: Substring) -> String { escapedPattern(for: String(text)) }
}
