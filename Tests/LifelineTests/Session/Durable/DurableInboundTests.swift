import Testing

@testable import Lifeline

@Suite struct DurableInboundTests {
    private let sender = SessionStoreID(SessionID(1, 2))

    private func last(_ place: UInt64) -> DurableInbound.Last {
        DurableInbound.Last(place: DurableInbound.Place(session: 0, place: place), method: 1, cost: 100)
    }

    /// Admitted numbers can be stored, and read again.
    @Test func aSenderMayLeaveSoManyOut() throws {
        var inbound = try DurableInbound(SessionStoreContent())
        var (count, changes) = (UInt64(0), SessionStoreChanges())
        // Every second number arrives, and is stored in portions.
        letIn: while true {
            for _ in 0..<1_000 {
                let arrival = inbound.received(
                    DurableInbound.Mark(sender: sender, number: 2 * (count + 1)),
                    last(count)
                )
                guard case .new = arrival else { break letIn }
                _ = inbound.finished(DurableInbound.Place(session: 0, place: count))
                count += 1
            }
            inbound.takeUnstored(answering: [], into: &changes)
            #expect(inbound.stored().count == 1_000)
        }
        #expect(count == DurableInbound.limit)
        inbound.takeUnstored(answering: [], into: &changes)
        let content = SessionStoreContent(processed: changes.processed)
        var again = try DurableInbound(content)
        guard case .processed = again.received(DurableInbound.Mark(sender: sender, number: 2), last(1)) else {
            Issue.record("It is not known any more.")
            return
        }
    }

    @Test func unstoredNumbersCountToo() throws {
        var inbound = try DurableInbound(SessionStoreContent())
        var count: UInt64 = 0
        while case .new = inbound.received(DurableInbound.Mark(sender: sender, number: 2 * (count + 1)), last(count)) {
            count += 1
        }
        #expect(count == DurableInbound.limit)
    }

    /// A call is processed together with the group that has its reply, and not before.
    @Test func aCallIsProcessedWithItsReply() throws {
        var inbound = try DurableInbound(SessionStoreContent())
        let call = DurableInbound.Mark(sender: sender, number: 1)
        guard case .new = inbound.received(call, last(1)) else {
            Issue.record("It is not new.")
            return
        }
        let answered = inbound.answered(last(1).place)
        #expect(answered == call)
        #expect(!inbound.hasUnstored(isOver: false))
        var changes = SessionStoreChanges()
        inbound.takeUnstored(answering: [call], into: &changes)
        #expect(Array(changes.processed.keys) == [sender])
        // The mark was not stored, and is not stored without its reply.
        inbound.storingFailed(isGivenUp: false, isOver: false)
        #expect(!inbound.hasUnstored(isOver: false))
        guard case .underWay = inbound.received(call, last(2)) else {
            Issue.record("It is not under way.")
            return
        }
        inbound.takeUnstored(answering: [call], into: &changes)
        #expect(inbound.stored().map(\.place.place) == [2])
        guard case .processed = inbound.received(call, last(3)) else {
            Issue.record("It is not processed.")
            return
        }
    }

    /// The mark of a call is removed with the group that has its reply.
    @Test func aMarkedCallKeepsItsMarkUntilItsReplyIsStored() throws {
        var inbound = try DurableInbound(SessionStoreContent())
        let call = DurableInbound.Mark(sender: sender, number: 1)
        _ = inbound.received(call, last(1))
        inbound.marked(last(1).place)
        _ = inbound.answered(last(1).place)
        var changes = SessionStoreChanges()
        inbound.takeUnstored(answering: [], into: &changes)
        #expect(changes.isEmpty)
        inbound.takeUnstored(answering: [call], into: &changes)
        #expect(changes.unmarked == [sender: [1]])
        inbound.storingFailed(isGivenUp: false, isOver: false)
        changes = SessionStoreChanges()
        inbound.takeUnstored(answering: [call], into: &changes)
        #expect(changes.unmarked == [sender: [1]])
        #expect(inbound.stored().count == 1)
        inbound.takeUnstored(answering: [call], into: &changes)
        #expect(changes.unmarked.isEmpty)
    }

    /// A new process has the reply of an earlier one, and does not handle the call again.
    @Test func aMarkWithAReplyIsUnderWay() throws {
        let content = SessionStoreContent(marked: [sender: [SessionStoreMark(number: 3, reply: [1, 2])]])
        var inbound = try DurableInbound(content)
        let replies = inbound.takeMarkedReplies()
        #expect(replies.map(\.call.number) == [3] && replies.map(\.reply) == [[1, 2]])
        guard case .underWay = inbound.received(DurableInbound.Mark(sender: sender, number: 3), last(1)) else {
            Issue.record("It is handled again.")
            return
        }
    }

    @Test func damageIsTold() {
        #expect(throws: StoreError.self) { try DurableInbound(SessionStoreContent(processed: [sender: []])) }
    }
}
