import Foundation
import Glibc
import Lifeline
import Synchronization

/// Chromium without a window (scripts/install-dependencies), which Lifeline's own WebSocket client drives, by the
/// DevTools protocol: https://chromedevtools.github.io/devtools-protocol/.
final class Browser: Sendable {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private typealias DevTools = Connection<WebSocketMessage, WebSocketMessage>

    private struct State {
        var lastID = 0
        var replies: [Int: AsyncThrowingStream<Data, any Error>.Continuation] = [:]
        var requestedURLs: [String] = []
        var problems: [String] = []
    }

    private let devTools: DevTools
    private let state = Mutex(State())

    private init(_ devTools: DevTools) {
        self.devTools = devTools
    }

    /// The requests of pages to servers.
    var requestedURLs: [String] { state.withLock { $0.requestedURLs } }

    /// Uncaught errors of pages' scripts, and actions that their policies have blocked.
    var problems: [String] { state.withLock { $0.problems } }

    /// Runs a browser with a fresh profile while `body` runs.
    static func run(_ body: (Browser) async throws -> Void) async throws {
        let profile = FileManager.default.temporaryDirectory.appending(path: "browser-\(UUID().uuidString)")
        // Processes of an ended browser may still write to it, so one attempt is not always enough.
        defer {
            for _ in 0..<100 where FileManager.default.fileExists(atPath: profile.path) {
                try? FileManager.default.removeItem(at: profile)
            }
        }
        var configuration = ConnectionConfiguration()
        // Screenshots come as messages.
        configuration.maximumFrameLength = 64 << 20
        let program = BackgroundProgram(command: command(profile: profile.path), readsStandardError: true)
        try await program.run(announcing: "DevTools listening on ") { endpoint in
            try await withConnection(
                to: Endpoint(endpoint),
                configuration: configuration,
                receiving: WebSocketMessage.self,
                sending: WebSocketMessage.self
            ) { connection in
                let browser = Browser(connection)
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask { await browser.receive() }
                    try await body(browser)
                    group.cancelAll()
                }
            }
        }
    }

    private static func command(profile: String) -> [String] {
        var command = [
            "chromium", "--headless", "--remote-debugging-port=0", "--user-data-dir=\(profile)", "--no-first-run",
            "--disable-gpu", "--mute-audio",
            // Containers have little of /dev/shm.
            "--disable-dev-shm-usage",
            // Several pages at once, none of them in the foreground.
            "--disable-background-timer-throttling", "--disable-renderer-backgrounding",
            "--disable-backgrounding-occluded-windows",
            // It makes no requests by itself.
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        ]
        // Chromium refuses to run as root with its sandbox, and scripts/test runs as root. It only opens our own page.
        if geteuid() == 0 { command.append("--no-sandbox") }
        return command
    }

    // MARK: Pages

    /// Opens a page, and waits until it has loaded.
    func open(_ url: String) async throws -> BrowserPage {
        let target: Target = try await call("Target.createTarget", ["url": "about:blank"])
        let attached: Attached = try await call(
            "Target.attachToTarget",
            AttachParameters(targetId: target.targetId, flatten: true)
        )
        let page = BrowserPage(browser: self, session: attached.sessionId)
        for domain in ["Page", "Runtime", "Network", "Log"] { try await page.call("\(domain).enable") }
        try await page.call("Page.navigate", ["url": url])
        try await page.wait(until: "location.href !== 'about:blank' && document.readyState === 'complete'")
        return page
    }

    private struct Target: Decodable { let targetId: String }
    private struct Attached: Decodable { let sessionId: String }
    private struct AttachParameters: Encodable { let targetId: String, flatten: Bool }

    // MARK: The protocol

    private struct Command<Parameters: Encodable>: Encodable {
        let id: Int
        let method: String
        let params: Parameters
        let sessionId: String?
    }

    private struct Reply<Result: Decodable>: Decodable { let result: Result }

    /// The kind of an incoming message.
    private struct Incoming: Decodable {
        struct Problem: Decodable { let message: String }
        let id: Int?
        let error: Problem?
        let method: String?
    }

    func call<Result: Decodable>(
        _ method: String,
        _ parameters: some Encodable,
        session: String? = nil
    ) async throws -> Result {
        let (reply, continuation) = AsyncThrowingStream.makeStream(of: Data.self)
        let id = state.withLock { state in
            state.lastID += 1
            state.replies[state.lastID] = continuation
            return state.lastID
        }
        let command = Command(id: id, method: method, params: parameters, sessionId: session)
        try await devTools.send(.text(String(decoding: JSONEncoder().encode(command), as: UTF8.self)))
        for try await data in reply { return try JSONDecoder().decode(Reply<Result>.self, from: data).result }
        throw Failure(description: "The browser ended before it answered \(method).")
    }

    /// Hands out the replies until the connection ends.
    private func receive() async {
        do {
            for try await case .text(let text) in devTools.messages { try take(Data(text.utf8)) }
        } catch {
            // Waiting tasks get an error.
        }
        for continuation in state.withLock({ Array($0.replies.values) }) { continuation.finish() }
    }

    private func take(_ data: Data) throws {
        let incoming = try JSONDecoder().decode(Incoming.self, from: data)
        if let id = incoming.id {
            let continuation = state.withLock { $0.replies.removeValue(forKey: id) }
            if let error = incoming.error {
                continuation?.finish(throwing: Failure(description: error.message))
            } else {
                continuation?.yield(data)
                continuation?.finish()
            }
        } else if let method = incoming.method {
            try notice(method, data)
        }
    }

    private struct Event<Parameters: Decodable>: Decodable { let params: Parameters }
    private struct Request: Decodable {
        struct Details: Decodable { let url: String }
        let request: Details
    }
    private struct LogEntry: Decodable {
        struct Entry: Decodable { let source: String, text: String }
        let entry: Entry
    }

    private func notice(_ method: String, _ data: Data) throws {
        switch method {
        case "Network.requestWillBeSent":
            let url = try JSONDecoder().decode(Event<Request>.self, from: data).params.request.url
            state.withLock { $0.requestedURLs.append(url) }
        case "Runtime.exceptionThrown":
            state.withLock { $0.problems.append(String(decoding: data, as: UTF8.self)) }
        case "Log.entryAdded":
            // The network log also has WebSockets that cannot be opened.
            let entry = try JSONDecoder().decode(Event<LogEntry>.self, from: data).params.entry
            if ["security", "javascript", "violation"].contains(entry.source) {
                state.withLock { $0.problems.append(entry.text) }
            }
        default: break
        }
    }
}
