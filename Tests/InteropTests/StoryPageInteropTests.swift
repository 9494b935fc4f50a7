import Foundation
import Lifeline
import LifelineProtos
import LifelineTesting
import Testing

/// The page of a failed simulated story, in Chromium.
@Suite(.timeLimit(.minutes(2)), .serialized) struct StoryPageInteropTests {
    private static let markup = "<img src=x onerror=\"document.title='injected'\"></script><b>bold</b>"

    /// The pages of stories in which a client talks to a server, `lineCount` lines are recorded, and then a check
    /// fails.
    private func page(named name: String, lineCount: Int) async throws -> String {
        do {
            try await simulate(seeds: 1...1, name: name) { world in
                try await Self.talk(in: world)
                for number in 0..<lineCount {
                    world.note("line \(number)")
                    try await Task.sleep(for: .milliseconds(1))
                }
                throw WorldFailure("All is well, but for \(Self.markup)")
            }
            throw Browser.Failure(description: "The story has not failed.")
        } catch let failure as SimulationFailure {
            return try #require(failure.page, "\(failure)")
        }
    }

    private static func talk(in world: World) async throws {
        world.host("server").run {
            try await withServer(
                listeningOn: Endpoint("tcp://server:7000"),
                receiving: ChatMessage.self,
                sending: ChatMessage.self
            ) { connection in
                for try await message in connection.messages { try await connection.send(message) }
            } _: {
                try await $0.waitUntilShutDown()
            }
        }
        try await world.host("client").run {
            try await withClient(
                to: Endpoint("tcp://server:7000"),
                receiving: ChatMessage.self,
                sending: ChatMessage.self
            ) { client in
                var messages = client.messages.makeAsyncIterator()
                for number in 1...5 {
                    try await client.send(.with { $0.text = "\(number)" })
                    let message = try await messages.next()
                    world.note("heard \(message?.text ?? "nothing") \(markup)")
                    try await Task.sleep(for: .seconds(1))
                }
            }
        }
        .value
        let host = world.host("laptop")
        host.machine.sleep(for: .seconds(2))
        host.machine.setLink(up: false)
        try await Task.sleep(for: .seconds(3))
        host.machine.setLink(up: true)
    }

    @Test func aPageShowsAStoryStepByStep() async throws {
        let file = try await page(named: "storyPage", lineCount: 0)
        try await Browser.run { browser in
            let page = try await browser.open(URL(filePath: file).absoluteString)
            #expect(try await page.evaluate("document.title") == "storyPage, seed 1")
            #expect(
                try await page.evaluate("document.querySelector('h1').textContent")
                    == "All is well, but for \(Self.markup)"
            )
            #expect(
                try await page.evaluate("document.getElementById('command').textContent")
                    == "LIFELINE_SEED=1 LIFELINE_FAULTS=none swift test --filter storyPage"
            )
            #expect(try await page.evaluate("document.querySelectorAll('img, h1 b, #rows b').length") == 0)
            // The failure is shown first.
            #expect(try await text(in: page) == "fails: All is well, but for \(Self.markup)")
            #expect(try await colorCount(in: page) > 10)

            try await step(in: page)
            try await filter(in: page)
            try await page.takeScreenshots(of: "story-page", named: "story")
            #expect(browser.problems == [])
            #expect(browser.requestedURLs.filter { !$0.hasPrefix("file:") } == [])
            #expect(browser.requestedURLs.count == 1)
        }
    }

    private func step(in page: BrowserPage) async throws {
        try await press("Home", in: page)
        let first = try await text(in: page)
        #expect(first == "connects to server, connection 1")
        #expect(try await position(in: page) == 0)
        try await page.run("document.getElementById('next').click()")
        #expect(try await position(in: page) == 1)
        let second = try await text(in: page)
        #expect(second != first)
        try await press("ArrowRight", in: page)
        #expect(try await position(in: page) == 2)
        try await press("ArrowLeft", in: page)
        #expect(try await text(in: page) == second)
        try await page.run("document.getElementById('previous').click()")
        #expect(try await text(in: page) == first)

        try await page.run("slider.value = 5; slider.dispatchEvent(new Event('input'))")
        #expect(try await position(in: page) == 5)
        #expect(try await page.evaluate("document.querySelectorAll('.row[aria-selected=true]').length") == 1)

        try await page.run("document.getElementById('speed').value = '100'")
        try await page.run("document.getElementById('play').click()")
        try await page.wait(until: "Number(slider.value) === events.length - 1")
        try await page.wait(until: "document.getElementById('play').textContent === 'Play'")
    }

    private func filter(in page: BrowserPage) async throws {
        let all: Int = try await page.evaluate("shown.length")
        try await page.run("document.querySelectorAll('#lanes button')[2].click()")
        #expect(try await page.evaluate("document.querySelectorAll('#lanes button')[2].textContent") == "client")
        let lanes: [String] = try await page.evaluate(
            "[...document.querySelectorAll('.row .lane')].map((lane) => lane.textContent)"
        )
        #expect(Set(lanes) == ["client"])
        try await page.run("document.getElementById('bytes').click()")
        #expect(try await page.evaluate("document.getElementById('rows').innerText.includes('bytes')") == false)
        try await page.type("heard 3", into: "#search")
        #expect(try await page.evaluate("shown.length") == 1)
        #expect(try await text(in: page) == "heard 3 \(Self.markup)")
        try await page.type("nothing of the kind", into: "#search")
        #expect(try await page.evaluate("document.getElementById('place').textContent") == "No event is left.")
        try await page.run(
            """
            document.getElementById('search').value = '';
            document.getElementById('bytes').click();
            document.querySelectorAll('#lanes button')[2].click();
            """
        )
        #expect(try await page.evaluate("shown.length") == all)
    }

    @Test func aPageOfManyEventsHasTheRowsThatCanBeSeen() async throws {
        let file = try await page(named: "longStoryPage", lineCount: 20_000)
        try await Browser.run { browser in
            let page = try await browser.open(URL(filePath: file).absoluteString)
            #expect(try await page.evaluate("events.length > 20_000"))
            let rowCount: Int = try await page.evaluate("document.querySelectorAll('.row').length")
            #expect((1..<100).contains(rowCount))
            try await page.run("show(10_000)")
            #expect(try await page.evaluate("document.querySelectorAll('.row[aria-selected=true]').length") == 1)
            // All of it, and a part of it.
            #expect(try await colorCount(in: page) > 10)
            try await page.run("for (let i = 0; i < 8; i += 1) document.getElementById('closer').click()")
            #expect(try await page.evaluate("eventsInView()[1] - eventsInView()[0] < 1000"))
            #expect(try await page.evaluate("eventsInView()[0] <= present && present < eventsInView()[1]"))
            try await page.takeScreenshots(of: "story-page", named: "long")
            #expect(browser.problems == [])
        }
    }

    private func text(in page: BrowserPage) async throws -> String {
        try await page.evaluate("document.getElementById('text').textContent")
    }

    private func position(in page: BrowserPage) async throws -> Int {
        try await page.evaluate("Number(document.getElementById('slider').value)")
    }

    private func press(_ key: String, in page: BrowserPage) async throws {
        try await page.run(
            "document.body.dispatchEvent(new KeyboardEvent('keydown', { key: \(literal(key)), bubbles: true }))"
        )
    }

    /// The number of colors in the drawing.
    private func colorCount(in page: BrowserPage) async throws -> Int {
        try await page.evaluate(
            """
            (() => {
              draw();
              const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
              return new Set(new Uint32Array(data.buffer)).size;
            })()
            """
        )
    }
}
