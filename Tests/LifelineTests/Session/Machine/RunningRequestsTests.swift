import LifelineTestSupport
import Testing

@testable import Lifeline

@Suite struct RunningRequestsTests {
    private func begin(
        _ running: inout RunningRequests,
        serial: UInt32,
        deadline: MonotonicTime?,
        byteCount: Int
    ) throws -> IncomingRequest {
        let request = running.begin(serial: serial, deadline: deadline, byteCount: byteCount)
        return try #require(request)
    }

    @Test func aSerialIsTakenUntilItsRequestIsOver() throws {
        var running = RunningRequests()
        let first = try begin(&running, serial: 5, deadline: nil, byteCount: 10)
        #expect(running.begin(serial: 5, deadline: nil, byteCount: 1) == nil)
        #expect(running.count == 1 && running.byteCount == 10 && running.isWaitedFor(first))
        #expect(running.end(first)?.isCancelled == false)
        #expect(running.end(first) == nil && running.isEmpty && running.byteCount == 0)
        #expect(!running.isWaitedFor(first))
        let second = try begin(&running, serial: 5, deadline: nil, byteCount: 1)
        // The older request no longer has the serial.
        #expect(running.end(first) == nil && running.isWaitedFor(second) && !running.isWaitedFor(first))
    }

    @Test func cancelledRequestsCountUntilTheirHandlersReturn() throws {
        var running = RunningRequests()
        var begun: [IncomingRequest] = []
        for _ in 0..<5 {
            begun.append(try begin(&running, serial: 9, deadline: .ms(100), byteCount: 3))
            #expect(running.cancel(serial: 9) == begun.last)
            #expect(running.cancel(serial: 9) == nil)
        }
        #expect(running.count == 5 && running.byteCount == 15 && running.nextDeadline == nil)
        let last = try begin(&running, serial: 9, deadline: nil, byteCount: 0)
        running.sentPart(of: last)
        for request in begun {
            let ended = running.end(request)
            let entry = try #require(ended)
            #expect(entry.isCancelled && !entry.hasParts && !running.isWaitedFor(request))
        }
        #expect(running.isWaitedFor(last) && running.end(last)?.hasParts == true && running.isEmpty)
    }

    @Test func deadlinesCancelTheEarliestFirst() throws {
        var running = RunningRequests()
        let late = try begin(&running, serial: 1, deadline: .ms(30), byteCount: 0)
        let early = try begin(&running, serial: 2, deadline: .ms(10), byteCount: 0)
        let ended = try begin(&running, serial: 3, deadline: .ms(5), byteCount: 0)
        #expect(running.nextDeadline == .ms(5))
        _ = running.end(ended)
        #expect(running.nextDeadline == .ms(10))
        #expect(running.timerFired(now: .ms(9)) == [])
        #expect(running.timerFired(now: .ms(10)) == [early] && running.nextDeadline == .ms(30))
        #expect(running.timerFired(now: .ms(10)) == [])
        #expect(running.timerFired(now: .ms(50)) == [late] && running.nextDeadline == nil && running.count == 2)
        #expect(running.end(late)?.isCancelled == true)
    }

    @Test func allAreCancelledTheOldestFirst() throws {
        var running = RunningRequests()
        let requests = try (UInt32(1)...40).map {
            try begin(&running, serial: 100 - $0, deadline: .ms(9), byteCount: 0)
        }
        _ = running.cancel(serial: requests[3].serial)
        #expect(running.cancelAll() == requests.filter { $0 != requests[3] })
        #expect(running.cancelAll() == [] && running.count == 40 && running.nextDeadline == nil)
    }

    @Test func deadlinesOfTheEndedAreLetGo() throws {
        var running = RunningRequests()
        _ = running.begin(serial: 0, deadline: .ms(1), byteCount: 0)
        for serial in UInt32(1)...10_000 {
            let request = try begin(&running, serial: serial, deadline: .ms(Int64(serial) + 1), byteCount: 0)
            if serial % 2 == 0 { _ = running.cancel(serial: serial) }
            _ = running.end(request)
        }
        #expect(keptPlaceCount(in: running) <= 35 && running.nextDeadline == .ms(1))
    }
}
