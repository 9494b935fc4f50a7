import LifelineCore
import LifelineRuntime
import NIOCore
import NIOEmbedded
import Testing

@testable import LifelineTransport

/// The heartbeat, where there is one, has 30 s, 10 s and 3 misses; the water marks are 100 and 200 bytes. Time is the
/// embedded loop's.
@Suite struct ConnectionHandlerLivenessTests {
    private let heartbeat = LivenessOptions(heartbeat: HeartbeatConfiguration())

    // MARK: Pings

    @Test func aSilentPeerIsAskedAndThenGivenUp() throws {
        let test = try HandlerTest(liveness: heartbeat)
        test.advance(seconds: 29)
        #expect(try test.written().isEmpty)
        test.advance(seconds: 1)
        #expect(try test.written() == [0x02, 0xEE, 1])
        test.advance(seconds: 29)
        #expect(try test.written() == [0x02, 0xEE, 2, 0x02, 0xEE, 3])
        #expect(test.channel.isActive)
        test.advance(seconds: 1)
        #expect(!test.channel.isActive)
        #expect(test.record.end?.code == .heartbeatTimeout)
        #expect(test.handler.closed.value?.failure?.code == .heartbeatTimeout)
        #expect(test.handler.closed.value?.failedInUse == true)
        #expect(test.handler.closed.value?.lastInboundAt == nil)
    }

    @Test func anyByteIsASignOfLife() throws {
        let test = try HandlerTest(liveness: heartbeat)
        for _ in 0..<10 {
            test.advance(seconds: 59)
            // The bytes are inside a frame that does not end.
            try test.channel.writeInbound(ByteBuffer(bytes: test.record.batches.isEmpty ? [0x7F] : [0x00]))
        }
        #expect(test.channel.isActive)
        #expect(try test.written().count == 10 * 3 * 3)
        test.advance(seconds: 60)
        #expect(!test.channel.isActive)
        let end = MonotonicTime(nanoseconds: 590_000_000_000)
        #expect(test.handler.closed.value?.lastInboundAt == end)
    }

    @Test func anAnswerSetsTheTimerAnew() throws {
        var options = heartbeat
        options.heartbeat?.timeout = .seconds(1000)
        let test = try HandlerTest(liveness: options)
        test.advance(seconds: 30)
        #expect(try test.written() == [0x02, 0xEE, 1])
        test.advance(seconds: 1)
        try test.channel.writeInbound(ByteBuffer(bytes: [0x00]))
        test.advance(seconds: 30)
        #expect(try test.written() == [0x02, 0xEE, 2])
    }

    @Test func aProbeAsksAtOnce() throws {
        let test = try HandlerTest(liveness: heartbeat)
        test.advance(seconds: 5)
        test.handler.probe()
        #expect(try test.written() == [0x02, 0xEE, 1])
        test.advance(seconds: 10)
        #expect(try test.written() == [0x02, 0xEE, 2], "the timer was set anew, to an earlier time")
        test.advance(seconds: 20)
        #expect(!test.channel.isActive)
        test.handler.probe()
        let without = try HandlerTest()
        without.handler.probe()
        without.advance(seconds: 1000)
        #expect(without.channel.isActive)
        #expect(try without.written().isEmpty)
    }

    @Test func aPingWaitsForNoRoom() throws {
        let test = try HandlerTest(holdingWrites: true, liveness: heartbeat)
        _ = try test.offer([UInt8](repeating: 0, count: 200))
        test.handler.flush()
        guard case .pending = try test.offer([0x00]) else {
            Issue.record("the queue is full")
            return
        }
        test.advance(seconds: 30)
        #expect(test.writes.held.count == 1, "one write at a time")
        test.writes.completeFirst()
        test.channel.embeddedEventLoop.run()
        #expect(test.writes.held.map(\.data) == [ByteBuffer(bytes: [0x02, 0xEE, 1, 0x00])])
    }

    /// First 1,000 bytes are written. The peer's TCP acknowledges some of them every 9 s.
    @Test func aPingOnItsWayIsNotMissed() throws {
        let test = try HandlerTest(liveness: heartbeat)
        test.record.acknowledgedByteCount = 0
        _ = try test.offer([UInt8](repeating: 0, count: 1000))
        test.handler.flush()
        _ = try test.written()
        test.advance(seconds: 30)
        #expect(try test.written() == [0x02, 0xEE, 1])
        for count in 1...20 as ClosedRange<UInt64> {
            test.advance(seconds: 9)
            test.record.acknowledgedByteCount = count * 50
        }
        #expect(try test.written().isEmpty, "asked already")
        test.record.acknowledgedByteCount = 1002
        test.advance(seconds: 10)
        #expect(test.channel.isActive)
        test.record.acknowledgedByteCount = 1003
        test.advance(seconds: 10)
        test.record.acknowledgedByteCount = 5000
        test.advance(seconds: 29)
        #expect(test.channel.isActive, "the question has arrived, and time for an answer begins")
        test.record.acknowledgedByteCount = 9000
        test.advance(seconds: 10)
        #expect(test.record.end?.code == .heartbeatTimeout)
    }

    @Test func aPingThatIsNotWrittenYetIsOnItsWay() throws {
        let test = try HandlerTest(holdingWrites: true, liveness: heartbeat)
        test.record.acknowledgedByteCount = 0
        _ = try test.offer([UInt8](repeating: 0, count: 100))
        test.handler.flush()
        test.advance(seconds: 30)
        for count in 1...10 as ClosedRange<UInt64> {
            test.record.acknowledgedByteCount = count
            test.advance(seconds: 10)
        }
        #expect(test.channel.isActive)
        test.writes.completeFirst()
        test.channel.embeddedEventLoop.run()
        #expect(test.writes.held.map(\.data) == [ByteBuffer(bytes: [0x02, 0xEE, 1])])
        test.record.acknowledgedByteCount = 103
        test.advance(seconds: 10)
        test.record.acknowledgedByteCount = 200
        test.advance(seconds: 30)
        #expect(test.record.end?.code == .heartbeatTimeout, "it was written, and it has arrived")
    }

    @Test func withoutAMessageToAskWithNobodyIsGivenUp() throws {
        let test = try HandlerTest(liveness: heartbeat)
        test.record.pingFrame = { (number) in nil }
        test.advance(seconds: 1000)
        #expect(test.channel.isActive)
        let finished = try HandlerTest(liveness: heartbeat)
        _ = finished.handler.outbound.finish()
        finished.advance(seconds: 1000)
        #expect(finished.channel.isActive)
        #expect(try finished.written().isEmpty)
        let ended = try HandlerTest(liveness: heartbeat)
        ended.channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        ended.advance(seconds: 1000)
        #expect(ended.channel.isActive, "who has ended its side cannot answer")
        #expect(try ended.written().isEmpty)
    }

    @Test func aPingThatCannotBeMadeFailsTheConnection() throws {
        let test = try HandlerTest(liveness: heartbeat)
        test.record.pingFrame = { (number) throws(ConnectionError) in
            throw ConnectionError(code: .messageRefused, message: "")
        }
        test.advance(seconds: 30)
        #expect(!test.channel.isActive)
        #expect(test.record.end?.code == .messageRefused)
    }

    @Test func aCloseEndsTheHeartbeat() throws {
        let test = try HandlerTest(liveness: heartbeat)
        test.advance(seconds: 28)
        test.handler.close()
        test.advance(seconds: 4)
        #expect(try test.written().isEmpty)
        test.handler.probe()
        #expect(try test.written().isEmpty)
        test.advance(seconds: 100)
        #expect(test.handler.closed.value?.failure == nil, "the close timer ended it")
    }

    @Test func aSleepOfTheMachineIsNoMiss() throws {
        let test = try HandlerTest(liveness: heartbeat)
        test.advance(seconds: 35)
        #expect(try test.written() == [0x02, 0xEE, 1])
        test.record.sleep = .seconds(3600)
        test.advance(seconds: 5)
        #expect(try test.written() == [0x02, 0xEE, 2])
        test.advance(seconds: 29)
        #expect(test.channel.isActive, "three pings since it woke up")
        test.advance(seconds: 1)
        #expect(!test.channel.isActive)
    }

    /// The earlier timer would fire late by the time that the machine has slept.
    @Test func aProbeAfterASleepIsTimedFromThen() throws {
        let test = try HandlerTest(liveness: heartbeat)
        test.advance(seconds: 5)
        test.record.sleep = .seconds(3600)
        test.handler.probe()
        #expect(try test.written() == [0x02, 0xEE, 1])
        test.advance(seconds: 10)
        #expect(try test.written() == [0x02, 0xEE, 2])
        test.advance(seconds: 19)
        #expect(test.channel.isActive)
        test.advance(seconds: 1)
        #expect(test.record.end?.code == .heartbeatTimeout)
    }

    // MARK: Replies

    @Test func repliesAreWrittenInTheSameTurn() throws {
        let test = try HandlerTest()
        test.record.replies = .success([0x01, 0xCC])
        try test.channel.writeInbound(ByteBuffer(bytes: [0x00]))
        #expect(try test.written() == [0x01, 0xCC])
        try test.channel.writeInbound(ByteBuffer(bytes: [0x00]))
        #expect(try test.written().isEmpty)
        _ = test.handler.outbound.finish()
        test.record.replies = .success([0x01, 0xCC])
        try test.channel.writeInbound(ByteBuffer(bytes: [0x00]))
        #expect(try test.written().isEmpty, "this side has ended")
        #expect(test.channel.isActive)
    }

    @Test func aReplyThatCannotBeMadeFailsTheConnection() throws {
        let test = try HandlerTest()
        test.record.replies = .failure(ConnectionError(code: .messageRefused, message: ""))
        try test.channel.writeInbound(ByteBuffer(bytes: [0x00]))
        #expect(!test.channel.isActive)
        #expect(test.record.end?.code == .messageRefused)
        #expect(test.record.batches == [[[]]], "what came is delivered, once")
    }

    @Test func aPeerThatPingsAndDoesNotReadIsNotRead() throws {
        let test = try HandlerTest(holdingWrites: true)
        for _ in 0..<2 {
            test.channel.read()
            test.record.replies = .success([UInt8](repeating: 0, count: 100))
            try test.channel.writeInbound(ByteBuffer(bytes: [0x00]))
        }
        #expect(test.reads.count == 2)
        test.channel.read()
        #expect(test.reads.count == 2, "200 bytes of replies wait")
        test.handler.resumeReading()
        #expect(test.reads.count == 2, "that the receiver wants more changes nothing")
        test.writes.completeFirst()
        #expect(test.reads.count == 3, "down to 100")
        test.channel.embeddedEventLoop.run()
        test.writes.completeFirst()
        test.channel.read()
        #expect(test.reads.count == 4)
    }

    /// Two sides that both send much and ping meanwhile must not wait for each other.
    @Test func otherBytesThatWaitDoNotStopReading() throws {
        let test = try HandlerTest(holdingWrites: true)
        _ = try test.offer([UInt8](repeating: 0, count: 200))
        test.handler.flush()
        test.record.replies = .success([0x01, 0xCC])
        try test.channel.writeInbound(ByteBuffer(bytes: [0x00]))
        test.channel.read()
        #expect(test.reads.count == 1)
    }

    @Test func aPeerThatPingsAndDoesNotReadIsNotReadAfterTheInputWasStopped() throws {
        let test = try HandlerTest(holdingWrites: true)
        test.record.replies = .success([UInt8](repeating: 0, count: 200))
        test.record.demand = .pause
        try test.channel.writeInbound(ByteBuffer(bytes: [0x00]))
        test.channel.read()
        test.handler.stopReceiving()
        #expect(test.reads.count == 0, "pings are still answered")
        test.writes.completeFirst()
        #expect(test.reads.count == 1)
    }

    @Test func theEndOfInputIsReadWhateverWaits() throws {
        let test = try HandlerTest(holdingWrites: true)
        test.record.replies = .success([UInt8](repeating: 0, count: 200))
        try test.channel.writeInbound(ByteBuffer(bytes: [0x00]))
        test.channel.read()
        #expect(test.reads.count == 0)
        test.handler.close()
        #expect(test.reads.count == 1, "nothing is answered any more")
        test.writes.completeFirst()
        #expect(test.reads.count == 1)
    }

    // MARK: Timeouts and limits

    @Test func aPauseOfReadingIsNotHeldAgainstThePeer() throws {
        var options = heartbeat
        options.idleTimeout = .seconds(50)
        let test = try HandlerTest(liveness: options)
        test.record.demand = .pause
        try test.channel.writeInbound(ByteBuffer(bytes: [0x00]))
        test.advance(seconds: 1000)
        #expect(test.channel.isActive)
        #expect(try test.written().isEmpty)
        test.record.demand = .more
        test.handler.resumeReading()
        test.advance(seconds: 30)
        #expect(try test.written() == [0x02, 0xEE, 1], "the timer runs again")
        test.advance(seconds: 20)
        #expect(test.record.end?.code == .idleTimeout)
        let start = MonotonicTime(nanoseconds: 0)
        #expect(test.handler.closed.value?.lastInboundAt == start)
    }

    @Test func anIdlePeerIsGivenUp() throws {
        let test = try HandlerTest(liveness: LivenessOptions(idleTimeout: .seconds(20)))
        test.advance(seconds: 15)
        try test.channel.writeInbound(ByteBuffer(bytes: [0x00]))
        _ = try test.offer([0x00])
        test.handler.flush()
        test.advance(seconds: 19)
        #expect(test.channel.isActive)
        test.advance(seconds: 1)
        #expect(test.record.end?.code == .idleTimeout, "what we write is no sign of the peer's life")
    }

    @Test func aPeerThatTakesNothingIsGivenUp() throws {
        let test = try HandlerTest(holdingWrites: true, liveness: LivenessOptions(writeTimeout: .seconds(20)))
        test.advance(seconds: 1000)
        _ = try test.offer([0x00])
        test.handler.flush()
        test.advance(seconds: 19)
        try test.channel.writeInbound(ByteBuffer(bytes: [0x00]))
        test.writes.completeFirst()
        _ = try test.offer([0x00])
        test.handler.flush()
        test.advance(seconds: 19)
        #expect(test.channel.isActive, "it took the first write")
        try test.channel.writeInbound(ByteBuffer(bytes: [0x00]))
        test.advance(seconds: 1)
        #expect(test.record.end?.code == .writeTimeout, "whatever it sends")
        #expect(test.handler.closed.value?.unwrittenByteCount == 1)
    }

    @Test func tooManyUnansweredBytesCut() throws {
        let test = try HandlerTest(liveness: LivenessOptions(unansweredByteLimit: 10))
        for _ in 0..<5 {
            _ = try test.offer([UInt8](repeating: 0, count: 10))
            test.handler.flush()
            try test.channel.writeInbound(ByteBuffer(bytes: [0x00]))
        }
        #expect(test.channel.isActive)
        _ = try test.offer([UInt8](repeating: 0, count: 11))
        test.handler.flush()
        #expect(test.record.end?.code == .tooManyUnansweredBytes)
        #expect(!test.channel.isActive)
    }

    @Test func tooManyUnansweredBytesAreAskedAboutFirst() throws {
        var options = heartbeat
        options.unansweredByteLimit = 10
        let test = try HandlerTest(liveness: options)
        for number in 1...3 as ClosedRange<UInt8> {
            _ = try test.offer([UInt8](repeating: 0, count: 11))
            test.handler.flush()
            #expect(try test.written() == [UInt8](repeating: 0, count: 11) + [0x02, 0xEE, number])
            test.advance(seconds: 9)
            try test.channel.writeInbound(ByteBuffer(bytes: [0x00]))
        }
        _ = try test.offer([UInt8](repeating: 0, count: 11))
        test.handler.flush()
        test.advance(seconds: 9)
        #expect(test.channel.isActive)
        test.advance(seconds: 1)
        #expect(test.record.end?.code == .tooManyUnansweredBytes)
    }

    @Test(arguments: [110, 113, 112, 101, 100] as [CInt])
    func kernelErrorsForUnresponsivePeersHaveACode(errno: CInt) throws {
        let test = try HandlerTest()
        test.channel.pipeline.fireErrorCaught(IOError(errnoCode: errno, reason: "read"))
        #expect(test.record.end?.code == .peerUnresponsive)
        #expect((test.record.end?.cause as? IOError)?.errnoCode == errno)
    }
}

extension HandlerTest {
    func advance(seconds: Int64) {
        channel.embeddedEventLoop.advanceTime(by: .seconds(seconds))
    }

    /// All bytes written since the last call.
    func written() throws -> [UInt8] {
        var bytes: [UInt8] = []
        while let buffer = try channel.readOutbound(as: ByteBuffer.self) { bytes += Array(buffer: buffer) }
        return bytes
    }
}
