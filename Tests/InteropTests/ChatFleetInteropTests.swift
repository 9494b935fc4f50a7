import Foundation
import Lifeline
import LifelineTestSupport
import Testing

/// Sessions in JavaScript, and the chat on several servers.
@Suite(.timeLimit(.minutes(3)), .serialized) struct ChatFleetInteropTests {
    private static let tests = Checkout.folder.appending(path: "Examples/chat-fleet/tests")

    /// Those of the session and of the room, which need no server.
    @Test func theTestsOfThePagePass() async throws {
        let files = try FileManager.default.contentsOfDirectory(atPath: Self.tests.path).filter {
            $0.hasSuffix(".test.js")
        }
        #expect(files.count >= 4)
        let outcome = try await node(["--test"] + files.map { Self.tests.appending(path: $0).path })
        #expect(outcome.status == 0, "\(String(decoding: outcome.output, as: UTF8.self))")
    }

    /// What came to the client, it checks itself.
    @Test(arguments: [1, 2, 3])
    func nothingIsLostDoubledOrReorderedByCuts(seed: Int) async throws {
        let service = SessionPeerService()
        try await withSessionServer(listeningOn: Endpoint("ws://127.0.0.1:0/peer"), services: [service]) { server in
            let outcome = try await node([
                Self.tests.appending(path: "exchange.js").path, "\(try await server.boundEndpoints[0])",
                "--count", "2000", "--cuts", "100", "--seed", "\(seed)",
            ])
            let output = String(decoding: outcome.output, as: UTF8.self)
            #expect(outcome.status == 0, "\(output)\(outcome.errorText)")
            let cuts = output.firstMatch(of: /(\d+) of them resumed, (\d+) cut amid these/)?.output
            #expect(cuts.map { Int($0.1) ?? 0 >= 50 && Int($0.2) ?? 0 >= 50 } == true, "\(output)")
            #expect(service.notes.all == chatIDs(2_000))
            // Several are asked at once, and handled side by side.
            #expect(service.requests.all.compactMap(Int.init).sorted() == Array(0..<2_000))
        }
    }

    private func node(_ arguments: [String]) async throws -> Program.Outcome {
        try await Program(URL(filePath: "/usr/bin/env"), ["node"] + arguments).outcome()
    }

    // MARK: The chat

    /// Two pages talk while one of their servers is killed, and then the other's is ended in order.
    @Test func pagesGoOnWhenTheirServersDie() async throws {
        try await ChatFleet.run { fleet in
            try await Browser.run { browser in
                let (ada, grace) = (try await browser.open(fleet.pages[0]), try await browser.open(fleet.pages[1]))
                for page in [ada, grace] { try await page.joinFleet() }
                #expect(try await ada.port() == fleet.servers[0].port)
                #expect(try await grace.port() == fleet.servers[1].port)

                try await talk(ada, grace, 0..<100, whileSaying: { fleet.kill(0) })
                #expect(try await ada.port() != fleet.servers[0].port)
                try await talk(ada, grace, 100..<150, whileSaying: { fleet.terminate(1) })
                #expect(try await grace.port() != fleet.servers[1].port)

                let conversation = try await ada.shown()
                // Closed and opened again; and somebody who comes late.
                try await ada.call("Page.navigate", ["url": "about:blank"])
                for url in [fleet.pages[0], fleet.pages[2]] {
                    let page = try await browser.open(url)
                    try await page.joinFleet()
                    try await page.waitUntilShowing(conversation.count)
                    #expect(try await page.shown() == conversation)
                    #expect(try await page.port() == fleet.servers[2].port)
                }
                #expect(browser.problems == [])
            }
        }
    }

    /// Both say as many things at once; `event` happens in the middle of it. Then both show the same, once and in order.
    private func talk(
        _ ada: BrowserPage,
        _ grace: BrowserPage,
        _ numbers: Range<Int>,
        whileSaying event: () -> Void
    ) async throws {
        async let adas: Void = ada.chatter("Ada", numbers)
        async let graces: Void = grace.chatter("Grace", numbers)
        let half = numbers.lowerBound + numbers.count / 2
        for page in [ada, grace] {
            try await page.wait(until: "document.querySelectorAll('#log .message').length > \(2 * half)")
        }
        event()
        _ = try await (adas, graces)
        for page in [ada, grace] { try await page.waitUntilShowing(2 * numbers.upperBound) }
        let shown = try await ada.shown()
        #expect(try await grace.shown() == shown)
        #expect(shown.count == 2 * numbers.upperBound)
        for name in ["Ada", "Grace"] {
            #expect(shown.filter { $0.hasPrefix(name) } == (0..<numbers.upperBound).map { "\(name) \($0)" })
        }
    }
}
