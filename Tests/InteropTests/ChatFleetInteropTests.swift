import Foundation
import Lifeline
import LifelineTestSupport
import Testing

/// The chat on several servers, in Chromium.
@Suite(.timeLimit(.minutes(3)), .serialized) struct ChatFleetInteropTests {
    /// The page's room, without a browser: one server after the other is killed, and started again.
    @Test func roomsLoseNothingWhenTheirServersAreKilled() async throws {
        let script = Checkout.folder.appending(path: "Examples/chat-fleet/tests/kills.js").path
        let server = try Program.product("ChatFleetServer", []).path
        let command = ["node", script, server, "--kills", "5", "--messages", "500"]
        let outcome = try await Program(URL(filePath: "/usr/bin/env"), command).outcome()
        #expect(outcome.status == 0, "\(String(decoding: outcome.output, as: UTF8.self))\(outcome.errorText)")
    }

    /// Two pages exchange messages while one of their servers is killed, and then the other's is shut down.
    @Test func pagesGoOnWhenTheirServersDie() async throws {
        try await ChatFleet.run { fleet in
            try await Browser.run { browser in
                let (ada, grace) = (try await browser.open(fleet.pages[0]), try await browser.open(fleet.pages[1]))
                try await ada.takeScreenshots(of: "chat-fleet", named: "fleet-join")
                for page in [ada, grace] { try await page.joinFleet() }
                #expect(try await ada.port() == fleet.servers[0].port)
                #expect(try await grace.port() == fleet.servers[1].port)

                try await talk(ada, grace, 0..<100, whileSaying: { fleet.kill(0) })
                #expect(try await ada.port() != fleet.servers[0].port)
                try await talk(ada, grace, 100..<150, whileSaying: { fleet.terminate(1) })
                #expect(try await grace.port() != fleet.servers[1].port)

                let conversation = try await ada.shown()
                // A page is closed and opened again, and another one joins late.
                try await ada.call("Page.navigate", ["url": "about:blank"])
                for url in [fleet.pages[0], fleet.pages[2]] {
                    let page = try await browser.open(url)
                    try await page.joinFleet()
                    try await page.waitUntilShowing(conversation.count)
                    #expect(try await page.shown() == conversation)
                    #expect(try await page.port() == fleet.servers[2].port)
                    try await page.takeScreenshots(of: "chat-fleet", named: "fleet")
                }
                #expect(browser.problems == [])
            }
        }
    }

    /// Both send the same number of messages at once; `event` happens in the middle. Then both show the same messages,
    /// once and in order.
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
