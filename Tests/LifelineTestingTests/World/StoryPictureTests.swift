import LifelineCore
import Testing

@testable import LifelineTesting

/// The drawing on the page of a story.
struct StoryPictureTests {
    private func note(_ time: Int64, _ place: Note.Place, _ event: Note.Event) -> Note {
        Note(time: MonotonicTime(nanoseconds: time), place: place, event: event)
    }

    private func note(_ time: Int64, _ host: String, _ event: Note.ConnectionEvent) -> Note {
        note(time, .host(host), .connection(1, event))
    }

    private func transfer(_ sent: Int64, _ received: Int64?, _ count: Int, byClient: Bool) -> StoryPicture.Transfer {
        StoryPicture.Transfer(connection: 1, byClient: byClient, sent: sent, received: received, byteCount: count)
    }

    @Test func aConnectionLastsFromItsBeginningToItsEnds() {
        let picture = StoryPicture(
            [
                note(1, "b", .begins(to: "a")), note(2, "a", .accepted), note(3, "b", .opened),
                note(4, .network, .connection(1, .cut(isReset: true))),
                note(5, "a", .ended("reset", byClient: false, wasOpen: true)),
                note(6, "b", .ended("reset", byClient: true, wasOpen: true)),
                note(7, .host("b"), .connection(2, .begins(to: "a"))),
                note(8, .host("b"), .connection(2, .ended("refused", byClient: true, wasOpen: false))),
            ],
            hosts: ["a", "b"]
        )
        #expect(picture.lanes == ["story", "a", "b", "network"])
        var (first, second) = (
            StoryPicture.Connection(number: 1, client: 2, server: 1, start: 1),
            StoryPicture.Connection(number: 2, client: 2, server: 1, start: 7)
        )
        (first.serverOpen, first.clientOpen, first.cut, first.serverEnd, first.clientEnd) = (2, 3, 4, 5, 6)
        (second.clientEnd, second.hasFailed) = (8, true)
        #expect(picture.connections == [first, second])
        #expect(picture.events.map(\.lane) == [2, 1, 2, 3, 1, 2, 2, 2])
        #expect(picture.events[3].kind == .fault)
        #expect(picture.end == 8)
    }

    @Test func bytesAreReadInTheOrderInWhichTheyWereWritten() {
        let picture = StoryPicture(
            [
                note(0, "b", .begins(to: "a")),
                note(1, "b", .wrote(byteCount: 10, byClient: true)), note(2, "b", .wrote(byteCount: 5, byClient: true)),
                note(3, "a", .wrote(byteCount: 7, byClient: false)), note(4, "a", .read(byteCount: 4, byClient: false)),
                note(5, "a", .read(byteCount: 8, byClient: false)), note(6, "b", .read(byteCount: 7, byClient: true)),
                note(9, "a", .wrote(byteCount: 1, byClient: false)),
            ],
            hosts: ["a", "b"]
        )
        #expect(
            picture.transfers == [
                transfer(1, 4, 4, byClient: true), transfer(1, 5, 6, byClient: true),
                transfer(2, 5, 2, byClient: true), transfer(2, nil, 3, byClient: true),
                transfer(3, 6, 7, byClient: false), transfer(9, nil, 1, byClient: false),
            ]
        )
    }

    @Test func aBandLastsAsLongAsAState() {
        let host = Note.Place.host("a")
        let picture = StoryPicture(
            [
                note(1, host, .link(isUp: false)), note(2, host, .sleep(.nanoseconds(5))),
                note(4, host, .sleep(.nanoseconds(10))), note(5, host, .link(isUp: true)), note(6, host, .killed),
                note(20, host, .sleep(.nanoseconds(1))), note(21, host, .started), note(22, host, .killed),
            ],
            hosts: ["a"]
        )
        #expect(
            picture.bands == [
                StoryPicture.Band(lane: 1, kind: .noLink, start: 1, end: 5),
                StoryPicture.Band(lane: 1, kind: .asleep, start: 2, end: 14),
                StoryPicture.Band(lane: 1, kind: .killed, start: 6, end: 21),
                StoryPicture.Band(lane: 1, kind: .asleep, start: 20, end: 21),
                StoryPicture.Band(lane: 1, kind: .killed, start: 22, end: nil),
            ]
        )
    }

    @Test func earlyEventsOfALongStoryAreLeftOut() {
        let count = StoryPicture.maximumEventCount + 10
        let picture = StoryPicture(
            [note(0, "b", .begins(to: "a")), note(1, "b", .ended("refused", byClient: true, wasOpen: false))]
                + (2..<Int64(count)).map { note($0, .story, .text("")) },
            hosts: ["a", "b"]
        )
        #expect(picture.events.count == StoryPicture.maximumEventCount)
        #expect(picture.omittedEventCount == 10)
        #expect(picture.connections == [])
    }
}
