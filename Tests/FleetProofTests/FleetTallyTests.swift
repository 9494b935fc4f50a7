import FleetProofSupport
import Testing

/// One client, and a server that it sends to and gets messages from.
struct FleetTallyTests {
    /// The reports of a client and the servers without failures: three messages each way.
    private struct Story {
        var client = ClientReport(client: 7)
        var servers = ServerSummary()

        init(processing numbers: [Int] = [1, 2, 3], told: [Int] = [1, 2, 3], pushed: [Int] = [1, 2, 3]) {
            client.opened("s")
            client.sent[.note] = ClientReport.Sent()
            client.sent[.note]?.count = 3
            for (time, number) in numbers.enumerated() {
                servers.add(.processed(.note, client: 7, number: number, time: Int64(time)))
            }
            for number in told { client.direct.receive(number, of: "a/1") }
            for number in pushed { push(number) }
            for number in 1...3 {
                servers.add(.told(sender: "a/1", client: 7, session: "s", number: number))
                servers.add(.pushed(sender: "a", group: "all", number: number))
            }
        }

        mutating func push(_ number: Int) {
            client.groups["all", default: GroupCheck()].receive(
                number,
                of: "a",
                epoch: 1,
                offset: UInt64(client.groups["all"]?.count ?? 0) + 1,
                followsGap: false
            )
        }

        var tally: FleetTally { FleetTally([client], servers, automaticGroup: "all") }
    }

    @Test func nothingIsWrong() {
        let tally = Story().tally
        #expect(tally.isFlawless && tally.deliveredCount == 9)
        #expect(tally.findings == [])
    }

    @Test func lossesAreFound() {
        #expect(Story(processing: [1, 3]).tally.findings == ["notes of client 7: 1 lost (2)"])
        #expect(Story(told: [2]).tally.findings == ["direct messages to client 7: 2 lost (1, 3)"])
        #expect(Story(pushed: [1, 2]).tally.findings == ["all at client 7: 1 lost (3)"])
        #expect(Story(processing: [], told: [], pushed: [3]).tally.lost == 8)
    }

    @Test func doublesAreFound() {
        #expect(Story(processing: [1, 2, 3, 1]).tally.findings == ["notes of client 7: 1 doubled"])
        #expect(Story(told: [1, 2, 2, 3]).tally.findings == ["direct messages to client 7: 1 doubled"])
        #expect(Story(pushed: [1, 1, 2, 3]).tally.doubled == 1)
    }

    @Test func swapsAreFound() {
        #expect(Story(processing: [1, 3, 2]).tally.findings == ["notes of client 7: 1 reordered"])
        #expect(Story(told: [2, 1, 3]).tally.findings == ["direct messages to client 7: 1 reordered"])
        #expect(Story(pushed: [1, 3, 2]).tally.reordered == 1)
    }

    /// Servers write records concurrently, so the times count.
    @Test func messagesAreInTheOrderOfTheirTimes() {
        var story = Story(processing: [])
        story.servers.add(.processed(.note, client: 7, number: 3, time: 30))
        story.servers.add(.processed(.note, client: 7, number: 1, time: 10))
        story.servers.add(.processed(.note, client: 7, number: 2, time: 20))
        #expect(story.tally.isFlawless)
    }

    @Test func messagesInDoubtAreNotLost() {
        var story = Story(processing: [1, 3])
        story.client.sent[.note]?.inDoubt = [2]
        #expect(story.tally.isClean && !story.tally.isFlawless && story.tally.inDoubt == 1)
        // It may be processed, also late, but not twice.
        story.servers.add(.processed(.note, client: 7, number: 2, time: 8))
        #expect(story.tally.isClean)
        story.servers.add(.processed(.note, client: 7, number: 2, time: 9))
        #expect(story.tally.doubled == 1)
    }

    @Test func aLostSessionExcusesItsLastMessagesOnly() {
        var story = Story(told: [1])
        story.client.lost(automaticGroup: "all")
        #expect(story.tally.isClean && story.tally.lostAsTold == 2 && story.tally.lostSessions == 1)
        story = Story(told: [1, 3])
        story.client.lost(automaticGroup: "all")
        #expect(story.tally.findings == ["direct messages to client 7: 1 lost (2)"])
        story = Story(told: [1])
        story.client.opened("another one")
        story.client.lost(automaticGroup: "all")
        #expect(story.tally.lost == 2)
    }

    @Test func anInterruptionExcusesOneGapOfEachSender() {
        var story = Story(pushed: [2])
        story.client.lost(automaticGroup: "all")
        #expect(story.tally.lost == 1 && story.tally.lostAsTold == 1)
        story.client.lost(automaticGroup: "all")
        #expect(story.tally.isClean && story.tally.lostAsTold == 2)
    }

    @Test func pushersLearnOfMessagesInDoubt() {
        var story = Story(pushed: [1, 3])
        #expect(story.tally.lost == 1)
        story.servers.add(.doubted(sender: "a", group: "all", number: 2))
        #expect(story.tally.isClean && story.tally.inDoubt == 1)
    }

    @Test func problemsAreFindings() {
        var story = Story()
        story.client.problems = ["missed 2 events"]
        #expect(story.tally.findings == ["client 7: missed 2 events"] && !story.tally.isClean)
        #expect(FleetTally([ClientReport(client: 1)], ServerSummary(), automaticGroup: "all").findings.count == 1)
    }
}

struct ServerRecordTests {
    @Test(
        arguments: [
            .processed(.ask, client: 17, number: 3, time: 5),
            .told(sender: "a1/2", client: 17, session: "0f", number: 4),
            .pushed(sender: "a1", group: "rooms/1", number: 9), .doubted(sender: "a1", group: "everybody", number: 10),
            .opened(server: "b2", time: 11),
        ] as [ServerEntry]
    )
    func linesAreReadAgain(entry: ServerEntry) {
        #expect(ServerEntry(line: entry.line[...]) == entry)
    }

    @Test(arguments: ["", "note 1 2", "note a 2 3", "told a b c 1", "pushed a b c", "closed b2 11"])
    func otherLinesAreNone(line: String) {
        #expect(ServerEntry(line: line[...]) == nil)
    }

    @Test func openingsAreCountedWithinSecondsAtEachServer() {
        var summary = ServerSummary()
        // In tenths of a second.
        for time: Int64 in [0, 20, 25, 29, 30, 31] { summary.add(.opened(server: "a", time: time * 100_000_000)) }
        for time: Int64 in [26, 27] { summary.add(.opened(server: "b", time: time * 100_000_000)) }
        #expect(summary.mostOpenings(within: 1, after: 0) == 4)
        #expect(summary.mostOpenings(within: 1, after: 2_600_000_000) == 3)
        #expect(summary.mostOpenings(within: 10, after: 0) == 6)
        #expect(summary.openingCount(after: 1) == 7)
    }
}
