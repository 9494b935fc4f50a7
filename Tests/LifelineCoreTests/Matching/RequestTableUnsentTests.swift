import LifelineCore
import Testing

/// Unsent requests survive a lost connection.
@Suite struct RequestTableUnsentTests {
    private var table = RequestTable<String>(maximumCount: 100, serials: 0x401...0xFFFF_FFFE)

    @Test mutating func unsentOnesStay() throws {
        let ids = try (0..<50).map { try table.began("\($0)", deadline: at(100 - Double($0))) }
        let unsent = Set(ids.enumerated().filter { $0.offset % 7 == 3 }.map(\.element))
        let lost = table.connectionLost { unsent.contains($0) }
        #expect(lost.map { $0.id } == ids.filter { !unsent.contains($0) })
        #expect(table.count == unsent.count)
        // The next deadline belongs to the youngest remaining request, the 46th.
        #expect(table.nextDeadline == at(100 - 45))
        let last = try #require(ids.last { unsent.contains($0) })
        guard case .answer(last, "45") = table.receivedResponse(serial: RequestTable<String>.serial(of: last)) else {
            Issue.record("it has not ended")
            return
        }
        #expect(table.timerFired(now: at(1000)).count == unsent.count - 1)
        #expect(table.count == 0 && table.nextDeadline == nil)
    }

    @Test mutating func nothingWasSent() throws {
        let id = try table.began("a", deadline: at(5))
        #expect(table.connectionLost { $0 == id }.isEmpty)
        #expect(table.nextDeadline == at(5) && table.count == 1)
        #expect(table.connectionLost().count == 1)
        #expect(table.nextDeadline == nil && table.count == 0)
    }
}
