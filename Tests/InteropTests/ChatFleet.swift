import Foundation
import LifelineTestSupport
import Testing

/// Examples/chat-fleet, as scripts/demo-fleet runs it.
struct ChatFleet: Sendable {
    struct Server: Sendable {
        let process: Int32
        let port: String
    }

    /// The addresses that the demo prints, each with another server first.
    let pages: [String]
    let servers: [Server]

    /// Runs the demo while `body` runs.
    static func run(_ body: (ChatFleet) async throws -> Void) async throws {
        let server = try Program.product("ChatFleetServer", []).path
        let script = Checkout.folder.appending(path: "scripts/demo-fleet").path
        let demo = BackgroundProgram(command: ["env", "CHAT_FLEET_SERVER=\(server)", script])
        try await demo.run(upTo: "Interrupt this") { lines in try await body(ChatFleet(lines)) }
    }

    private init(_ lines: [String]) throws {
        pages = lines.map { $0.trimmingCharacters(in: .whitespaces) }.filter { $0.hasPrefix("http://") }
        let ports = try #require(pages.first?.split(separator: "=").last).split(separator: ",").map(String.init)
        let processes = try #require(lines.first { $0.hasPrefix("Processes: ") }).split(separator: " ").dropFirst()
        servers = zip(processes.compactMap { Int32($0) }, ports).map(Server.init)
        try #require(pages.count == 3 && servers.count == 3, "\(lines)")
    }

    /// Ends a server like a crash.
    func kill(_ index: Int) { Foundation.kill(servers[index].process, SIGKILL) }

    /// Ends a server like an upgrade.
    func terminate(_ index: Int) { Foundation.kill(servers[index].process, SIGTERM) }
}

extension BrowserPage {
    /// Joins with the name in the page's address.
    func joinFleet() async throws {
        try await run("document.querySelector('#joining button').click()")
        try await wait(until: "document.getElementById('state').dataset.state === 'open'")
    }

    /// Sends a number of messages, one every few milliseconds, like a fast typist.
    func chatter(_ name: String, _ numbers: Range<Int>) async throws {
        try await run(
            """
            for (let number = \(numbers.lowerBound); number < \(numbers.upperBound); number += 1) {
              document.getElementById("text").value = `\(name) ${number}`;
              document.getElementById("composer").requestSubmit();
              await new Promise((resolve) => setTimeout(resolve, 5));
            }
            """
        )
    }

    /// Waits until the page shows a number of messages, and has sent all of its own.
    func waitUntilShowing(_ count: Int) async throws {
        try await wait(
            until: """
                document.querySelectorAll("#log .message").length >= \(count)
                  && document.getElementById("unsent").childElementCount === 0
                """
        )
    }

    /// The messages and the notices on the page, in order.
    func shown() async throws -> [String] {
        try await evaluate(
            "[...document.querySelectorAll('#log :is(.text, .notice)')].map((entry) => entry.textContent)"
        )
    }

    /// The port of the server that the page is connected to.
    func port() async throws -> String {
        try await evaluate("new URL(document.getElementById('state').dataset.server).port")
    }
}
