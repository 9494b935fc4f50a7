import Testing

@testable import Lifeline

@Suite struct DurableInboundTests {
    private let sender = SessionStoreID(SessionID(1, 2))

    private func last(_ place: UInt64) -> DurableInbound.Last {
        DurableInbound.Last(place: DurableInbound.Place(session: 0, place: place), method: 1, cost: 100)
    }

    /// What is let in can be stored, and read again.
    @Test func aSenderMayLeaveSoManyOut() throws {
        var inbound = try DurableInbound(SessionStoreContent())
        var (count, changes) = (UInt64(0), SessionStoreChanges())
        // Every second number, in portions that are stored.
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
            inbound.takeUnstored(into: &changes)
            #expect(inbound.stored().count == 1_000)
        }
        #expect(count == DurableInbound.limit)
        inbound.takeUnstored(into: &changes)
        let content = SessionStoreContent(processed: changes.processed)
        var again = try DurableInbound(content)
        guard case .processed = again.received(DurableInbound.Mark(sender: sender, number: 2), last(1)) else {
            Issue.record("It is not known any more.")
            return
        }
    }

    @Test func whatIsNotStoredCountsToo() throws {
        var inbound = try DurableInbound(SessionStoreContent())
        var count: UInt64 = 0
        while case .new = inbound.received(DurableInbound.Mark(sender: sender, number: 2 * (count + 1)), last(count)) {
            count += 1
        }
        #expect(count == DurableInbound.limit)
    }

    @Test func damageIsTold() {
        #expect(throws: StoreError.self) { try DurableInbound(SessionStoreContent(processed: [sender: []])) }
    }
}
