import Foundation
import Lifeline
import LifelineProtos
import LifelineTestSupport
import LifelineWellKnownTypes
import Logging
import Testing

/// The browser example, in Chromium.
@Suite(.timeLimit(.minutes(2)), .serialized) struct WebChatInteropTests {
    @Test func pagesAndAPlainClientTalkAndComeBack() async throws {
        try await WebChat.servePage { origin in
            try await Browser.run { browser in
                var pages: [BrowserPage] = []
                let endpoints = WebChat.Endpoints(
                    webSocket: "ws://127.0.0.1:\(try TestPort.next())/chat",
                    plain: try TestPort.nextEndpoint()
                )
                try await WebChat.serveRoom(on: endpoints, to: origin) { room in
                    for name in ["Ada", "Grace"] {
                        let page = try await browser.open("\(origin)/?server=\(room.webSocket)")
                        if name == "Grace" { try await takeScreenshots(of: page) }
                        try await page.join(as: name)
                        pages.append(page)
                    }
                    try await talk(pages[0], pages[1], in: room)
                }
                try await comeBack(pages[0], pages[1], to: endpoints, from: origin)
                try await takeScreenshots(of: pages[1])
                #expect(browser.problems == [])
                #expect(browser.requestedURLs.filter { !$0.hasPrefix(origin + "/") } == [])
            }
        }
    }

    private func talk(_ ada: BrowserPage, _ grace: BrowserPage, in room: WebChat.Endpoints) async throws {
        try await WebChat.joinPlainly(room) { program in
            var heard = program.messages.makeAsyncIterator()
            try await ada.say("Hello, Grace! Grüezi 😀")
            try await grace.waitUntilHearing("Hello, Grace! Grüezi 😀", from: "Ada")
            let fromAda = try #require(try await heard.next())
            #expect(fromAda.text == "Hello, Grace! Grüezi 😀")
            #expect(fromAda.from == "Ada")
            #expect(fromAda.kind == .text)
            #expect(fromAda.id == String(fromAda.nonce, radix: 16))
            #expect(abs(fromAda.sentAt.seconds - Int64(Date().timeIntervalSince1970)) < 60)

            try await grace.say("Hello, Ada. Who else is here?")
            try await ada.waitUntilHearing("Hello, Ada. Who else is here?", from: "Grace")
            #expect(try await heard.next()?.from == "Grace")

            // Text that looks like HTML stays text; only the room sends as the system; a time beyond all dates is not
            // shown.
            let markup = "<img src=x onerror=\"document.title='injected'\"><b>bold</b>"
            try await program.send(
                .with {
                    $0.from = "<i>Robot</i>"
                    $0.text = markup
                    $0.kind = .system
                    $0.sentAt.seconds = .max
                    $0.location.latitude = 47.4
                    $0.headers["unknown"] = "to the page"
                }
            )
            for page in [ada, grace] {
                try await page.waitUntilHearing(markup, from: "<i>Robot</i>")
                #expect(try await page.evaluate("document.title") == "Lifeline chat")
                #expect(try await page.evaluate("document.querySelectorAll('#log :is(img, b, i)').length") == 0)
            }
        }
        let send = [
            "send", "--no-proxy", "--to", room.plain,
            "--data", #"{"text": "Sent from a terminal", "from": "lifeline send", "kind": "KIND_TEXT"}"#,
        ]
        _ = try await Program.product("lifeline", send + chatSchema).run()
        for page in [ada, grace] { try await page.waitUntilHearing("Sent from a terminal", from: "lifeline send") }
    }

    private func comeBack(
        _ ada: BrowserPage,
        _ grace: BrowserPage,
        to endpoints: WebChat.Endpoints,
        from origin: String
    ) async throws {
        for page in [ada, grace] {
            try await page.wait(until: "document.getElementById('state').dataset.state === 'waiting'")
            #expect(try await page.evaluate("document.querySelector('#composer button').disabled"))
        }
        try await WebChat.serveRoom(on: endpoints, to: origin) { _ in
            for page in [ada, grace] { try await page.waitUntilConnected() }
            try await ada.say("The server was away for a moment, and here we are again: nobody had to reload the page.")
            try await grace.waitUntilHearing(
                "The server was away for a moment, and here we are again: nobody had to reload the page.",
                from: "Ada"
            )
            try await grace.say("So I see!")
            try await ada.waitUntilHearing("So I see!", from: "Grace")
            try await takeScreenshots(of: grace)
        }
    }

    private func takeScreenshots(of page: BrowserPage) async throws {
        let state: String = try await page.evaluate("document.getElementById('state').dataset.state")
        try await page.takeScreenshots(of: "web-chat", named: state)
    }

    @Test func aPageGivesUpAfterFourAttemptsAndTriesAgainWhenTold() async throws {
        let port = try TestPort.next()
        try await WebChat.servePage { origin in
            try await Browser.run { browser in
                let endpoint = "ws://127.0.0.1:\(port)/chat"
                let page = try await browser.open("\(origin)/?server=\(endpoint)")
                // The clock runs a hundred times as fast, and records the times. The timeout of an attempt (10 s)
                // stays, because a busy machine may need it.
                try await page.run(
                    """
                    const original = setTimeout;
                    window.delays = [];
                    window.setTimeout = (action, delay) => {
                        delays.push(delay);
                        return original(action, delay === 10_000 ? delay : delay / 100);
                    };
                    """
                )
                try await page.type("Ada", into: "#name")
                try await page.pressEnter()
                try await page.wait(until: "!document.getElementById('reconnect').hidden")
                // Timers of 10 s are timeouts of attempts. The test itself waits only briefly.
                let delays: [Double] = try await page.evaluate(
                    "delays.filter((delay) => delay > 100 && delay !== 10_000)"
                )
                #expect(delays.count == 4)
                for (delay, expected) in zip(delays, [1_000.0, 2_000, 4_000, 8_000]) {
                    #expect((0.8 * expected...1.2 * expected).contains(delay))
                }
                #expect(try await page.evaluate("document.getElementById('error').hidden") == false)

                try await WebChat.serveRoom(
                    on: .init(webSocket: endpoint, plain: WebChat.Endpoints.free.plain),
                    to: origin
                ) { _ in
                    try await page.run("document.getElementById('reconnect').click()")
                    try await page.waitUntilConnected()
                    #expect(try await page.evaluate("document.getElementById('error').hidden"))
                }
                #expect(browser.problems == [])
            }
        }
    }

    @Test(arguments: [
        ("FF FF FF FF 1F", "its length is malformed"), ("80 80 10", "it is too large"),
        ("02 22 05", "it ends inside a field"), ("04 22 02 C3 28", "it has text that is not UTF-8"),
    ])
    func aPageSaysWhatAServerDoesWrong(bytes: String, complaint: String) async throws {
        var configuration = ServerConfiguration()
        configuration.webSocket.origins = .any
        let hostile = WebSocketMessage.binary(Hex.bytes(bytes))
        try await WebChat.servePage { origin in
            try await withServer(
                listeningOn: Endpoint("ws://127.0.0.1:0/chat"),
                configuration: configuration,
                // The page giving up the connection is the purpose of the test.
                logger: Logger(label: "hostile") { _ in SwiftLogNoOpLogHandler() },
                receiving: WebSocketMessage.self,
                sending: WebSocketMessage.self
            ) { connection in
                try await connection.send(hostile)
                for try await _ in connection.messages {}
            } _: { server in
                try await Browser.run { browser in
                    let page = try await browser.open("\(origin)/?server=\(server.boundEndpoint)")
                    try await page.type("Ada", into: "#name")
                    try await page.pressEnter()
                    try await page.wait(until: "document.querySelector('.problem')")
                    let shown: String = try await page.evaluate("document.querySelector('.problem').textContent")
                    #expect(shown == "The server sent what is no message: \(complaint).")
                    #expect(browser.problems == [])
                }
            }
        }
    }

    @Test func aStrangersPageIsNotLetIn() async throws {
        try await WebChat.servePage { origin in
            try await WebChat.serveRoom(to: "http://elsewhere.example.org") { room in
                try await Browser.run { browser in
                    let page = try await browser.open("\(origin)/?server=\(room.webSocket)")
                    try await page.type("Mallory", into: "#name")
                    try await page.pressEnter()
                    try await page.wait(until: "document.getElementById('state').dataset.state === 'waiting'")
                    #expect(try await page.evaluate("document.querySelectorAll('.notice').length") == 0)
                }
            }
        }
    }

    // MARK: The room

    @Test func aPageThatHangsHoldsNobodyUpAndIsToldWhatItMissed() async throws {
        try await WebChat.servePage { origin in
            try await WebChat.serveRoom(to: origin) { room in
                try await Browser.run { browser in
                    let page = try await browser.open("\(origin)/?server=\(room.webSocket)")
                    try await page.join(as: "Ada")
                    // From the next message on.
                    for command in ["enable", "pause"] { try await page.call("Debugger.\(command)") }
                    try await speakAndListen(in: room)
                    for command in ["resume", "disable"] { try await page.call("Debugger.\(command)") }
                    let notice = "[...document.querySelectorAll('.notice')].at(-1).textContent"
                    try await page.wait(until: "\(notice).startsWith('You missed ')")
                    let missedCount: Int = try await page.evaluate("parseInt(\(notice).match(/[0-9]+/)[0])")
                    let heardCount: Int = try await page.evaluate("document.querySelectorAll('.message').length")
                    #expect(missedCount > 0 && heardCount > 0)
                    #expect(missedCount + heardCount == Self.speechCount)
                }
            }
        }
    }

    @Test func aPlainClientThatDoesNotReadHoldsNobodyUpAndIsToldWhatItMissed() async throws {
        try await WebChat.serveRoom(to: "http://127.0.0.1") { room in
            try await WebChat.joinPlainly(room) { slow in
                try await speakAndListen(in: room)
                var heardCount = 0
                for try await message in slow.messages {
                    if message.kind == .system {
                        let missed = message.text.split(separator: " ").compactMap { Int($0) }
                        #expect(missed == [Self.speechCount - heardCount])
                        break
                    }
                    #expect(message.position == Int64(heardCount))
                    heardCount += 1
                }
                #expect(heardCount > 0 && heardCount < Self.speechCount)
            }
        }
    }

    /// A message within the limit may exceed it when it is encoded again. This ends the connection of its sender, not
    /// of the listeners.
    @Test func aMessageThatGrowsEndsItsSpeaker() async throws {
        // A single unpacked number takes one byte more when it is packed: field 7, then text as field 4.
        var bytes: [UInt8] = [0x38, 0x05, 0x22]
        let length = Room.limit - bytes.count - 3
        bytes += [UInt8(length & 0x7F) | 0x80, UInt8(length >> 7 & 0x7F) | 0x80, UInt8(length >> 14)]
        bytes += [UInt8](repeating: UInt8(ascii: "x"), count: length)
        try await WebChat.serveRoom(to: "http://127.0.0.1") { room in
            try await WebChat.joinPlainly(room) { listener in
                await #expect(throws: ConnectionError.self) {
                    try await withConnection(
                        to: Endpoint(room.plain),
                        receiving: RawMessage.self,
                        sending: RawMessage.self
                    ) { speaker in
                        try await speaker.send(RawMessage(bytes: bytes))
                        for try await _ in speaker.messages {}
                    }
                }
                try await WebChat.joinPlainly(room) { speaker in
                    try await speaker.send(.with { $0.text = "Still there?" })
                    var heard = listener.messages.makeAsyncIterator()
                    #expect(try await heard.next()?.text == "Still there?")
                }
            }
        }
    }

    private enum Room {
        /// In bytes.
        static let limit = 64 << 10
    }

    /// More than all buffers in between can hold: 48 MB.
    private static let speechCount = 800

    /// Sends and receives: each message is sent after the previous one came back, however little others read.
    private func speakAndListen(in room: WebChat.Endpoints) async throws {
        let text = String(repeating: "x", count: 60_000)
        try await WebChat.joinPlainly(room) { listener in
            try await WebChat.joinPlainly(room) { speaker in
                var heard = listener.messages.makeAsyncIterator()
                for number in 0..<Self.speechCount {
                    try await speaker.send(
                        .with {
                            $0.text = text
                            $0.position = Int64(number)
                        }
                    )
                    #expect(try await heard.next()?.position == Int64(number))
                }
            }
        }
    }
}
