import Foundation
import Lifeline
import LifelineCore
import LifelineProtos
import Testing

@testable import LifelineTesting

/// The pages of stories that fail.
@Suite(.timeLimit(.minutes(10))) struct StoryPageTests {
    /// The part of a page's data that these tests check.
    private struct Content: Decodable {
        struct Picture: Decodable {
            struct Event: Decodable { let time: Int64, lane: Int, kind: String, text: String }
            struct Band: Decodable { let lane: Int, kind: String }
            let lanes: [String]
            let events: [Event]
            let bands: [Band]
        }
        struct Fault: Decodable { let number: Int, text: String }
        let name: String
        let seed: String
        let failure: String
        let command: String
        let faults: [Fault]
        let picture: Picture
    }

    private let folder = FileManager.default.temporaryDirectory.appending(path: "stories-\(UUID().uuidString)")

    /// Plays a story that fails, and returns the report of its failure.
    private func fail(
        seed: UInt64 = 1,
        name: String = "test()",
        pages: URL? = nil,
        _ story: @escaping @Sendable (World) async throws -> Void
    ) async throws -> SimulationFailure {
        var runner = StoryRunner(story: story)
        runner.pages = pages ?? folder
        let failure = try #require(await runner.play(seed, nil, isTracing: false).failure)
        return await runner.report(failure, seed, nil, name: name)
    }

    /// Returns the page that a failure names, and deletes its file.
    private func html(of failure: SimulationFailure) throws -> String {
        let html = try String(contentsOfFile: #require(failure.page), encoding: .utf8)
        try FileManager.default.removeItem(at: folder)
        return html
    }

    private func json(in html: String) throws -> String {
        let start = try #require(html.firstRange(of: #"<script id="story" type="application/json">"#))
        let rest = html[start.upperBound...]
        return try String(rest[..<#require(rest.firstRange(of: "</script>")).lowerBound])
    }

    @Test func aPageShowsTheFailureAndItsFaults() async throws {
        let failure = try await fail(seed: 18_446_744_073_709_551_615, name: "loses(bytes:)") { world in
            let host = world.host("island")
            world.faults.outages = .seconds(10)
            for _ in 0..<1_000 {
                try await Task.sleep(for: .milliseconds(100))
                try world.expect(host.machine.isLinkUp, "The island was alone.")
            }
        }
        let page = try #require(failure.page)
        #expect(page.hasSuffix("/loses-18446744073709551615.html"))
        #expect(failure.description.contains("To look at it: \(page)"))
        let content = try JSONDecoder().decode(Content.self, from: Data(json(in: html(of: failure)).utf8))
        #expect(content.failure == "The island was alone.")
        #expect(content.seed == "18446744073709551615")
        #expect(content.name == "loses")
        let fault = try #require(content.faults.first)
        #expect(content.faults.count == 1)
        #expect(fault.text.hasPrefix("island has no link for"))
        #expect(
            content.command
                == "LIFELINE_SEED=18446744073709551615 LIFELINE_FAULTS=\(fault.number) swift test --filter loses"
        )
        let picture = content.picture
        #expect(picture.lanes == ["story", "island", "network"])
        #expect(picture.bands.map(\.lane) == [1])
        #expect(picture.bands.map(\.kind) == ["noLink"])
        #expect(picture.events.map(\.text).prefix(2) == ["fault \(fault.number): \(fault.text)", "link down"])
        #expect(picture.events.map(\.kind).suffix(1) == ["failure"])
        #expect(picture.events.last?.text == "fails: The island was alone.")
    }

    @Test func eventsOfConnectionsAreNoted() async throws {
        let failure = try await fail { world in
            let server = world.host("server")
            server.run {
                try await withServer(
                    listeningOn: Endpoint("tcp://server:7000"),
                    receiving: Sample_Room_V1_EchoRequest.self,
                    sending: Sample_Room_V1_EchoReply.self
                ) { connection in
                    for try await _ in connection.messages { try await connection.send(.with { $0.text = "yes" }) }
                } _: {
                    try await $0.waitUntilShutDown()
                }
            }
            world.host("client").run {
                try await withClient(
                    to: Endpoint("tcp://server:7000"),
                    receiving: Sample_Room_V1_EchoReply.self,
                    sending: Sample_Room_V1_EchoRequest.self
                ) { client in
                    try await client.send(.with { $0.text = "no" })
                    for try await _ in client.messages { server.kill() }
                }
            }
            // The client connects again, without success.
            try await Task.sleep(for: .seconds(5))
            throw WorldFailure("so")
        }
        try FileManager.default.removeItem(at: folder)
        let events = failure.trace.map { $0.split(separator: " ").dropFirst(2).joined(separator: " ") }
        #expect(
            events.prefix(13) == [
                "client: connects to server, connection 1",
                "client: connection 1 is open",
                "client: writes 5 bytes to connection 1",
                "server: accepts connection 1",
                "server: reads 5 bytes from connection 1",
                "server: writes 6 bytes to connection 1",
                "client: reads 6 bytes from connection 1",
                "server: killed",
                "server: connection 1 ends: its process was killed",
                "client: reads the end of connection 1",
                "client: connection 1 ends: its program has closed it",
                "client: connects to server, connection 2",
                "client: connection 2 fails: Connection refused",
            ]
        )
        #expect(events.contains("story: fails: so"))
    }

    /// Every text that a program can choose, in every place of the page.
    @Test func textsDoNotBecomeHTML() async throws {
        let markup = "</script><script>alert(1)</script><!-- <b>&amp;\u{202E}desrever\u{2028}\n\u{1B}[31m"
        let failure = try await fail(name: markup) { world in
            world.host(markup).run {
                world.note(markup)
                world.note(String(repeating: "x", count: 1_000_000))
            }
            try await Task.sleep(for: .seconds(1))
            throw WorldFailure(markup)
        }
        #expect(!failure.description.contains("\u{202E}"))
        let html = try html(of: failure)
        let json = try json(in: html)
        #expect(!json.unicodeScalars.contains { "<>&\u{202E}\u{2028}\u{1B}".unicodeScalars.contains($0) })
        // A program's text can have any length, but the page has a limit.
        #expect(json.utf8.count < 20_000)
        let content = try JSONDecoder().decode(Content.self, from: Data(json.utf8))
        let shown = "</script><script>alert(1)</script><!-- <b>&amp;\\u{202e}desrever\\u{2028}\\u{a}\\u{1b}[31m"
        #expect(content.failure == shown)
        #expect(content.picture.lanes[1] == shown)
        #expect(content.picture.events.first?.text == shown)
        #expect(content.command.hasSuffix("--filter '\(shown.prefix { $0 != "(" })'"))
        // Apart from the texts and the nonce, all pages are equal.
        let plain = try await fail(name: "test()") { _ in throw WorldFailure("plain") }
        let plainHTML = try self.html(of: plain)
        let frames = try [html.replacing(json, with: ""), plainHTML.replacing(self.json(in: plainHTML), with: "")].map {
            let nonce = try #require($0.firstMatch(of: /nonce="([0-9a-f]{16,32})"/)?.output.1)
            return $0.replacing(nonce, with: "")
        }
        #expect(frames[0] == frames[1])
        #expect(try unbalancedElement(in: frames[0]) == nil)
    }

    /// Returns the first element whose tags are not balanced, or nil.
    private func unbalancedElement(in html: String) throws -> String? {
        // Removes the contents of scripts and styles, which are not markup.
        let markup = html.replacing(/<(script|style)([^>]*)>.*?<\/(?:script|style)>/.dotMatchesNewlines()) {
            "<\($0.output.1)\($0.output.2)></\($0.output.1)>"
        }
        var open: [Substring] = []
        for tag in markup.matches(of: /<(\/?)([a-z][a-z0-9]*)[^<>]*>/) {
            let name = tag.output.2
            if ["meta", "input"].contains(name) { continue }
            if tag.output.1.isEmpty {
                open.append(name)
            } else if open.popLast() != name {
                return String(name)
            }
        }
        return open.last.map(String.init)
    }

    @Test func aFolderThatCannotBeCreatedIsNamed() async throws {
        let failure = try await fail(pages: URL(filePath: "/dev/null/stories")) { _ in throw WorldFailure("so") }
        #expect(failure.page == nil)
        #expect(failure.description.contains("could not be written to /dev/null/stories: "))
    }

    @Test(arguments: [
        ("callsSurvive", "callsSurvive-7.html"), ("../../etc/passwd", "etc-passwd-7.html"),
        ("`two words`", "two-words-7.html"), ("…", "story-7.html"),
        (String(repeating: "long", count: 100), String(repeating: "long", count: 25) + "-7.html"),
    ])
    func namesOfFilesAreSafe(name: String, file: String) {
        let played = StoryRunner.Played(failure: nil, faults: [], hosts: [], notes: [])
        let failure = WorldFailure("")
        let page = StoryPage(name: name, seed: 7, failure: failure, command: "", remark: nil, played)
        #expect(page.fileName == file)
    }

    @Test func theEnvironmentNamesTheFolder() {
        #expect(StoryPage.folder(["LIFELINE_STORIES": "/tmp/stories"]).path == "/tmp/stories")
        let current = FileManager.default.currentDirectoryPath
        #expect(StoryPage.folder([:]).path == "\(current)/.build/lifeline-stories")
    }
}
