import LifelineCore
import LifelineTestSupport
import Testing

@Suite struct RequestTableTests {
    private var table = RequestTable<String>(maximumCount: 10, serials: 0x401...0xFFFF_FFFE)

    private func serial(_ id: UInt64) -> UInt32 { RequestTable<String>.serial(of: id) }

    @Test mutating func aRequestIsFoundByItsSerialUntilItEnds() throws {
        #expect(table.waiter(serial: 0) == nil)
        let id = try table.began("waiter", deadline: nil)
        #expect(table.waiter(serial: serial(id)) == "waiter")
        // Its slot is the same.
        #expect(table.waiter(serial: serial(id) + 8) == nil)
        _ = table.cancelled(id)
        #expect(table.waiter(serial: serial(id)) == nil)
    }

    @Test mutating func serialsCountUpFromTheFirst() throws {
        let serials = try (0..<3).map { _ in serial(try table.began("", deadline: nil)) }
        #expect(serials == [0x401, 0x402, 0x403])
    }

    @Test mutating func responsesInAnyOrder() throws {
        let ids = try ["a", "b", "c"].map { try table.began($0, deadline: nil) }
        for index in [1, 2, 0] {
            #expect(table.receivedResponse(serial: serial(ids[index])).answer == ["a", "b", "c"][index])
        }
        #expect(table.count == 0)
        #expect(table.lateResponseCount == 0)
    }

    @Test mutating func theSecondResponseIsLate() throws {
        let id = try table.began("a", deadline: nil)
        #expect(table.receivedResponse(serial: serial(id)).answer == "a")
        #expect(table.receivedResponse(serial: serial(id)).isLate)
        #expect(table.lateResponseCount == 1)
        #expect(table.unknownResponseCount == 0)
    }

    @Test mutating func aSerialNobodyHadIsUnknown() throws {
        _ = try table.began("a", deadline: nil)
        for serial: UInt32 in [0, 1, 0x400, 0x402, 0x40A, .max] {
            #expect(table.receivedResponse(serial: serial).isUnknown, "\(serial)")
        }
        #expect(table.unknownResponseCount == 6)
        #expect(table.lateResponseCount == 0)
        #expect(table.count == 1)
    }

    @Test mutating func deadlines() throws {
        let late = try table.began("late", deadline: at(9))
        _ = try table.began("none", deadline: nil)
        let first = try table.began("first", deadline: at(5))
        let second = try table.began("second", deadline: at(5))
        #expect(table.nextDeadline == at(5))
        #expect(table.timerFired(now: at(4.9)).isEmpty)
        let ended = table.timerFired(now: at(5))
        #expect(ended.map { $0.waiter } == ["first", "second"])
        #expect(ended.map { $0.id } == [first, second])
        #expect(table.nextDeadline == at(9))
        #expect(table.receivedResponse(serial: serial(first)).isLate)
        #expect(table.receivedResponse(serial: serial(late)).answer == "late")
        #expect(table.nextDeadline == nil)
    }

    @Test mutating func aResponseBeforeTheTimerIsInTime() throws {
        let id = try table.began("a", deadline: at(5))
        #expect(table.receivedResponse(serial: serial(id)).answer == "a")
        #expect(table.timerFired(now: at(6)).isEmpty)
    }

    @Test mutating func cancelling() throws {
        let id = try table.began("a", deadline: at(5))
        #expect(table.cancelled(id) == "a")
        #expect(table.cancelled(id) == nil)
        #expect(table.nextDeadline == nil)
        #expect(table.receivedResponse(serial: serial(id)).isLate)
        #expect(table.cancelled(12345) == nil)
    }

    @Test mutating func theLimit() throws {
        let ids = try (0..<10).map { _ in try table.began("", deadline: nil) }
        let error = #expect(throws: RequestError.self) { try table.began("", deadline: nil) }
        #expect(error?.code == .tooManyInFlight)
        #expect(error?.message.contains("10") == true)
        #expect(table.count == 10)
        _ = table.cancelled(ids[3])
        #expect(throws: Never.self) { try table.began("", deadline: nil) }
    }

    @Test mutating func aLostConnectionEndsAllInOrder() throws {
        let names = ["a", "b", "c", "d", "e"]
        let ids = try names.map { try table.began($0, deadline: at(5)) }
        _ = table.cancelled(ids[2])
        let ended = table.connectionLost()
        #expect(ended.map { $0.waiter } == ["a", "b", "d", "e"])
        #expect(table.count == 0)
        #expect(table.nextDeadline == nil)
        #expect(table.connectionLost().isEmpty)
        #expect(table.receivedResponse(serial: serial(ids[0])).isLate)
        #expect(serial(try table.began("f", deadline: nil)) == 0x406, "serials count on")
    }

    @Test mutating func aReservedSerialIsLeftOut() throws {
        #expect(serial(try table.began("", deadline: nil, avoiding: 0x401)) == 0x402)
        #expect(serial(try table.began("", deadline: nil, avoiding: 0x402)) == 0x403)
    }

    // MARK: Wrapping

    @Test func wrapsBehindTheLastSerial() throws {
        var table = RequestTable<Int>(maximumCount: 100, serials: 5...12)
        #expect(table.maximumCount == 2, "a quarter of the serials")
        var serials: [UInt32] = []
        for number in 0..<20 {
            let id = try table.began(number, deadline: nil)
            serials.append(RequestTable<Int>.serial(of: id))
            #expect(table.receivedResponse(serial: serials[number]).answer == number)
        }
        #expect(serials == (0..<20).map { 5 + $0 % 8 })
    }

    @Test func wrapsBehindTheLastNumberOf32Bits() throws {
        var table = RequestTable<Int>(maximumCount: 1, serials: (.max - 3)...(.max))
        var ids: [UInt64] = []
        for number in 0..<9 {
            ids.append(try table.began(number, deadline: nil))
            #expect(table.cancelled(ids[number]) == number)
        }
        #expect(ids == ids.sorted() && Set(ids).count == 9)
        #expect(ids.map { RequestTable<Int>.serial(of: $0) } == (0..<9).map { .max - 3 + $0 % 4 })
    }

    @Test func serialsInUseAreSkipped() throws {
        var table = RequestTable<Int>(maximumCount: 4, serials: 100...115)
        let kept = try table.began(-1, deadline: nil)
        var serials: Set<UInt32> = []
        for number in 0..<100 {
            let id = try table.began(number, deadline: nil)
            #expect(RequestTable<Int>.serial(of: id) != 100)
            serials.insert(RequestTable<Int>.serial(of: id))
            #expect(table.cancelled(id) == number)
        }
        #expect(serials.count >= 8)
        #expect(table.cancelled(kept) == -1)
    }

    /// The number of a request distinguishes it from an earlier one with the same serial.
    @Test func anOldNumberEndsNoNewRequest() throws {
        var table = RequestTable<Int>(maximumCount: 1, serials: 0...3)
        let old = try table.began(0, deadline: at(1))
        #expect(table.cancelled(old) == 0)
        for number in 1...4 {
            let id = try table.began(number, deadline: at(100))
            if number == 4 { #expect(RequestTable<Int>.serial(of: id) == RequestTable<Int>.serial(of: old)) }
            #expect(table.cancelled(old) == nil)
            #expect(table.timerFired(now: at(50)).isEmpty)
            #expect(table.cancelled(id) == number)
        }
    }

    /// Most requests end while one still waits. The memory depends on the waiting ones.
    @Test(arguments: [1.0, 1e6])
    func memoryFollowsWhatWaits(deadline: Double) throws {
        var table = RequestTable<Int>(maximumCount: 1000, serials: 0x401...0xFFFF_FFFE)
        _ = try table.began(-1, deadline: at(10))
        for number in 0..<100_000 {
            let id = try table.began(number, deadline: at(deadline))
            #expect(table.cancelled(id) == number)
            #expect(keptPlaceCount(in: table) <= 64)
        }
        for number in 0..<999 { _ = try table.began(number, deadline: at(20)) }
        #expect(table.timerFired(now: at(30)).count == 1000)
        #expect(keptPlaceCount(in: table) == 0, "given back")
    }
}

extension RequestTable.ResponseAction {
    var answer: Waiter? { if case .answer(_, let waiter) = self { waiter } else { nil } }
    var isLate: Bool { if case .dropLate = self { true } else { false } }
    var isUnknown: Bool { if case .dropUnknown = self { true } else { false } }
}
