import Lifeline
import LifelineTestSupport
import Testing

@Suite struct InboundSequenceTests {
    private func sequence(
        frames: Int = 8,
        bytes: Int = 100,
        batch: Int = 2,
        lane: SessionLane = .ordinary
    ) -> InboundSequence {
        InboundSequence(
            lane,
            window: SessionWindow(frameCount: frames, byteCount: bytes),
            batchSize: batch,
            delay: .milliseconds(20)
        )
    }

    @Test func framesAreTakenOnceAndInOrder() throws {
        var inbound = sequence()
        #expect(try inbound.receive(1, byteCount: 1) && inbound.receive(2, byteCount: 1))
        #expect(try !inbound.receive(1, byteCount: 1) && !inbound.receive(2, byteCount: 1))
        #expect(inbound.received == 2 && inbound.processed == 0 && inbound.duplicateCount == 2)
        for far in [UInt64(4), .max - 1, .max] {
            #expect(throws: SessionViolation.gap(.ordinary, expected: 3, received: far)) {
                try inbound.receive(far, byteCount: 1)
            }
        }
        #expect(try inbound.receive(3, byteCount: 1) == true)
    }

    @Test func theAcknowledgementNamesWhatHasNothingMissingBeforeIt() throws {
        var inbound = sequence(batch: 100)
        for place in UInt64(1)...4 { _ = try inbound.receive(place, byteCount: 1) }
        inbound.finish(3, now: .ms(0))
        inbound.finish(2, now: .ms(1))
        #expect(inbound.processed == 0 && inbound.nextDeadline == nil)
        inbound.finish(1, now: .ms(2))
        #expect(inbound.processed == 3 && inbound.nextDeadline == .ms(22))
        // Twice, what never came, and what is long gone change nothing.
        for place in [UInt64(1), 3, 0, 5, .max] { inbound.finish(place, now: .ms(3)) }
        #expect(inbound.processed == 3 && inbound.nextDeadline == .ms(22))
        inbound.finish(4, now: .ms(4))
        #expect(inbound.processed == 4 && inbound.nextDeadline == .ms(22) && keptPlaceCount(in: inbound) == 0)
    }

    @Test func thePeerIsToldAtOnceAfterABatchOrAWhile() throws {
        var inbound = sequence(frames: 100, bytes: 100, batch: 3)
        for place in UInt64(1)...9 { _ = try inbound.receive(place, byteCount: 1) }
        inbound.finish(1, now: .ms(0))
        inbound.finish(2, now: .ms(5))
        #expect(!inbound.isReportDue(now: .ms(19)) && inbound.isReportDue(now: .ms(20)))
        inbound.finish(3, now: .ms(6))
        #expect(inbound.isReportDue(now: .ms(6)))
        #expect(inbound.takeReport() == 3 && inbound.nextDeadline == nil && !inbound.isReportDue(now: .ms(1000)))
        inbound.finish(4, now: .ms(30))
        #expect(inbound.nextDeadline == .ms(50) && !inbound.isReportDue(now: .ms(49)))
        #expect(inbound.takeReport() == 4 && inbound.takeReport() == 4)
    }

    @Test func thePeerIsToldAtOnceAfterAQuarterOfTheWindow() throws {
        var inbound = sequence(frames: 100, bytes: 100, batch: 50)
        _ = try inbound.receive(1, byteCount: 25)
        _ = try inbound.receive(2, byteCount: 1)
        inbound.finish(1, now: .ms(0))
        #expect(!inbound.isReportDue(now: .ms(0)))
        inbound.finish(2, now: .ms(0))
        #expect(inbound.isReportDue(now: .ms(0)))
        _ = inbound.takeReport()
        _ = try inbound.receive(3, byteCount: 25)
        inbound.finish(3, now: .ms(0))
        #expect(!inbound.isReportDue(now: .ms(0)))
        // And of its frames, whatever the batch.
        var small = sequence(frames: 8, batch: 50)
        for place in UInt64(1)...2 { _ = try small.receive(place, byteCount: 0) }
        small.finish(1, now: .ms(0))
        #expect(!small.isReportDue(now: .ms(0)))
        small.finish(2, now: .ms(0))
        #expect(small.isReportDue(now: .ms(0)))
        // A window of one frame is told of at every frame; a batch of none is one of one.
        var least = sequence(frames: 1, batch: 0)
        _ = try least.receive(1, byteCount: 0)
        #expect(!least.isReportDue(now: .ms(0)))
        least.finish(1, now: .ms(0))
        #expect(least.isReportDue(now: .ms(0)))
    }

    /// Otherwise a timer would ring again and again while the connection has no room.
    @Test func whatIsOverdueWaitsForNoTime() throws {
        var inbound = sequence()
        _ = try inbound.receive(1, byteCount: 10)
        #expect(!inbound.hasUnreported)
        inbound.finish(1, now: .ms(0))
        inbound.timerFired(now: .ms(19))
        #expect(inbound.nextDeadline == .ms(20) && !inbound.isReportDue(now: .ms(19)))
        inbound.timerFired(now: .ms(20))
        #expect(inbound.nextDeadline == nil && inbound.hasUnreported && inbound.isReportDue(now: .ms(20)))
        #expect(inbound.takeReport() == 1 && !inbound.hasUnreported && !inbound.isReportDue(now: .ms(30)))
        _ = try inbound.receive(2, byteCount: 10)
        inbound.finish(2, now: .ms(30))
        #expect(inbound.nextDeadline == .ms(50) && !inbound.isReportDue(now: .ms(49)))
    }

    @Test func theWindowBoundsWhatIsNotProcessed() throws {
        var inbound = sequence(frames: 2, bytes: 100, lane: .urgent)
        _ = try inbound.receive(1, byteCount: 60)
        #expect(throws: SessionViolation.windowExceeded(.urgent)) { try inbound.receive(2, byteCount: 41) }
        _ = try inbound.receive(2, byteCount: 40)
        #expect(throws: SessionViolation.windowExceeded(.urgent)) { try inbound.receive(3, byteCount: 0) }
        // Duplicates take no room.
        #expect(try inbound.receive(1, byteCount: 1000) == false)
        inbound.finish(2, now: .ms(0))
        #expect(throws: SessionViolation.windowExceeded(.urgent)) { try inbound.receive(3, byteCount: 0) }
        inbound.finish(1, now: .ms(0))
        // Also alone none is larger.
        #expect(throws: SessionViolation.windowExceeded(.urgent)) { try inbound.receive(3, byteCount: 101) }
        #expect(try inbound.receive(3, byteCount: 100) == true)
        #expect(throws: SessionViolation.windowExceeded(.urgent)) { try inbound.receive(4, byteCount: 1) }
    }
}
