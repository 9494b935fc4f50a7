import Glibc
import LifelineCore
import LifelineRuntime
import NIOCore
import NIOEmbedded
import Testing

@testable import LifelineTransport

/// Connections of one loop whose reads take long.
@Suite struct ConnectionTurnsTests {
    /// Connections of one loop; each part that one receives takes longer than any turn, unless a test says otherwise.
    private struct Loop {
        let loop = EmbeddedEventLoop()
        let executor: LoopExecutor

        init() {
            let loop = loop
            executor = LoopExecutor(loop) { loop.now }
        }

        func connection(partDuration: Duration = .milliseconds(11)) throws -> HandlerTest {
            let test = try HandlerTest(partLength: 2, loop: loop)
            test.handler.executor = executor
            test.record.whenBatchEnded = { [record = test.record] in record.sleep += partDuration }
            return test
        }

        /// The loop has polled its sockets.
        func looked() { loop.advanceTime(by: .microseconds(100)) }
    }

    @Test func anotherConnectionGoesBeforeTheNextTurn() throws {
        let loop = Loop()
        let (flooder, bystander) = (try loop.connection(), try loop.connection())
        try flooder.channel.writeInbound(ByteBuffer(bytes: [0x00, 0x00, 0x01, 0xA1, 0x00, 0x00]))
        #expect(flooder.record.batches == [[[], []]], "one part")
        try bystander.channel.writeInbound(ByteBuffer(bytes: [0x01, 0xB1]))
        #expect(bystander.record.batches == [[[0xB1]]])
        #expect(flooder.record.batches.count == 1, "not before the loop has looked at its sockets")
        loop.looked()
        #expect(flooder.record.batches == [[[], []], [[0xA1]]])
        loop.looked()
        #expect(flooder.record.batches == [[[], []], [[0xA1]], [[], []]])
        loop.looked()
        #expect(flooder.record.batches.count == 3)
    }

    /// 10 ms instead of 500 µs.
    @Test func aConnectionThatIsAloneHasLongTurns() throws {
        let loop = Loop()
        let (test, other) = (try loop.connection(partDuration: .milliseconds(1)), try loop.connection())
        let bytes = ByteBuffer(repeating: 0x00, count: 40)
        try test.channel.writeInbound(bytes)
        #expect(test.record.batches.count == 1, "nobody knows yet")
        loop.looked()
        #expect(test.record.batches.count == 11)
        try other.channel.writeInbound(ByteBuffer(bytes: [0x00]))
        loop.looked()
        #expect(test.record.batches.count == 12)
    }

    @Test func nothingIsReadMeanwhile() throws {
        let loop = Loop()
        let test = try loop.connection()
        test.channel.read()
        try test.channel.writeInbound(ByteBuffer(bytes: [0x00, 0x00, 0x00, 0x00, 0x00]))
        test.channel.read()
        loop.looked()
        #expect(test.reads.count == 1)
        loop.looked()
        #expect(test.reads.count == 2)
        #expect(test.record.batches.count == 3)
    }

    /// When the peer ends its side, NIO reads all remaining bytes.
    @Test func laterReadsAndTheEndFollow() throws {
        let loop = Loop()
        let test = try loop.connection()
        try test.channel.writeInbound(ByteBuffer(bytes: [0x00, 0x00, 0x01]))
        try test.channel.writeInbound(ByteBuffer(bytes: [0xA1, 0x00, 0x00]))
        test.channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        for batches in [[[[], []]], [[[], []], [[0xA1]]], [[[], []], [[0xA1]], [[], []]]] as [[[[UInt8]]]] {
            #expect(test.record.batches == batches)
            #expect(test.record.hasEnded == (batches.count == 3))
            loop.looked()
        }
        #expect(test.record.end == nil)
    }

    @Test func aFailureComesBehind() throws {
        let loop = Loop()
        let test = try loop.connection()
        try test.channel.writeInbound(ByteBuffer(bytes: [0x00, 0x00, 0x01, 0xA1]))
        test.channel.pipeline.fireErrorCaught(IOError(errnoCode: ECONNRESET, reason: "read"))
        test.channel.close(promise: nil)
        #expect(!test.record.hasEnded)
        #expect(test.handler.closed.value == nil)
        loop.looked()
        #expect(test.record.batches == [[[], []], [[0xA1]]])
        #expect(test.record.end?.code == .closedByPeer)
        #expect(test.handler.closed.value?.failure?.code == .closedByPeer)
    }

    /// Bytes that were read but not received are then dropped.
    @Test(arguments: ["abort", "close"]) func theEndOfThisSideDoesNotWait(end: String) throws {
        let loop = Loop()
        let test = try loop.connection()
        test.channel.read()
        try test.channel.writeInbound(ByteBuffer(bytes: [0x00, 0x00, 0x01, 0xA1]))
        test.channel.read()
        if end == "abort" {
            test.handler.fail(.closedLocally, resetting: true)
            #expect(test.handler.closed.value?.failure?.code == .closedLocally)
        } else {
            test.handler.close()
            #expect(test.reads.count == 2, "the peer's end is to be seen")
        }
        #expect(test.record.hasEnded)
        loop.looked()
        #expect(test.record.batches == [[[], []]])
    }

    /// 2 ms in all before the loop polls its sockets again.
    @Test func afterALookSeveralConnectionsHaveTheirTurns() {
        let loop = EmbeddedEventLoop()
        let clock = TestClock()
        let executor = LoopExecutor(loop) { clock.now }
        var turns: [Int] = []
        for number in 1...5 {
            let connection = WritingConnection {}
            connection.whenContinued = {
                turns.append(number)
                clock.advance(by: .milliseconds(1))
                // The connection still has more.
                if number == 1, turns.count == 1 { executor.readLater(connection) }
            }
            executor.readLater(connection)
        }
        for turnsUntilThen in [[], [1, 2], [1, 2, 3, 4], [1, 2, 3, 4, 5, 1]] {
            #expect(turns == turnsUntilThen)
            loop.advanceTime(by: .microseconds(100))
        }
        #expect(turns.count == 6)
    }
}
