import Foundation
import Lifeline
import LifelineTestSupport

/// Examples/web-chat, run as in its README, on free ports.
enum WebChat {
    /// The endpoints of the room's server.
    struct Endpoints: Sendable {
        let webSocket: String
        let plain: String

        static let free = Endpoints(webSocket: "ws://127.0.0.1:0/chat", plain: "tcp://127.0.0.1:0")
    }

    /// Serves the page's files while `body` runs, with the page's origin.
    static func servePage(_ body: (_ origin: String) async throws -> Void) async throws {
        try await FileServer.serve(Checkout.folder.appending(path: "Examples/web-chat/page"), body)
    }

    /// Runs the room's server while `body` runs.
    static func serveRoom(
        on endpoints: Endpoints = .free,
        to origin: String,
        _ body: (Endpoints) async throws -> Void
    ) async throws {
        let program = BackgroundProgram(
            command: [
                try Program.product("WebChatServer", []).path, "--web-socket", endpoints.webSocket,
                "--plain", endpoints.plain, "--origin", origin,
            ]
        )
        try await program.run(announcing: "listening on ") { line in
            let words = line.split(separator: " ").map(String.init)
            try await body(Endpoints(webSocket: words[0], plain: words[2]))
        }
    }

    /// Joins over TCP, like any program, and reads the room's greeting.
    static func joinPlainly(
        _ endpoints: Endpoints,
        _ body: (Connection<ChatMessage, ChatMessage>) async throws -> Void
    ) async throws {
        try await withConnection(
            to: Endpoint(endpoints.plain),
            receiving: ChatMessage.self,
            sending: ChatMessage.self
        ) { connection in
            for try await _ in connection.messages { break }
            try await body(connection)
        }
    }
}

extension BrowserPage {
    /// Joins like a user, and waits until the room has the page.
    func join(as name: String) async throws {
        try await type(name, into: "#name")
        try await pressEnter()
        try await waitUntilConnected()
    }

    func waitUntilConnected() async throws {
        try await wait(
            until: """
                document.getElementById("state").dataset.state === "open"
                  && document.getElementById("log").lastElementChild?.textContent.startsWith("You are in the room")
                """
        )
    }

    func say(_ text: String) async throws {
        try await type(text, into: "#text")
        try await pressEnter()
        try await wait(until: "document.getElementById('text').value === ''")
    }

    /// Waits until the last message has this sender and this text.
    func waitUntilHearing(_ text: String, from sender: String) async throws {
        try await wait(
            until: """
                (() => {
                  const last = [...document.querySelectorAll(".message")].at(-1);
                  return last?.querySelector(".text").textContent === \(literal(text))
                    && last.querySelector(".sender").textContent === \(literal(sender));
                })()
                """
        )
    }
}
