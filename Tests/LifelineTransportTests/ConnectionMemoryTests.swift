import LifelineCore
import LifelineRuntime
import NIOCore
import NIOEmbedded
import Testing

@testable import LifelineTransport

/// The memory that connections charge to their server's budget, and that they take before a peer is admitted.
@Suite struct ConnectionMemoryTests {
    private let budget = MemoryBudget(limit: 100 << 10)
    private let loop = EmbeddedEventLoop()

    private func connection(
        holdingWrites: Bool = false,
        _ configure: (inout ConnectionOptions) -> Void = { _ in }
    ) throws -> HandlerTest {
        try HandlerTest(limit: 64 << 10, loop: loop, holdingWrites: holdingWrites) {
            $0.memoryBudget = budget
            $0.outboundMarks = WaterMarks(low: 1 << 10, high: 20 << 10)
            configure(&$0)
        }
    }

    /// A frame of 40 KiB, all but its last byte.
    private static let begin = ByteBuffer(bytes: [0x80, 0xC0, 0x02] + [UInt8](repeating: 0, count: (40 << 10) - 1))

    @Test func aFrameThatHasComeInPartIsCharged() throws {
        let test = try connection()
        try test.channel.writeInbound(ByteBuffer(bytes: [0x01, 0xA1, 0x03, 0xB1]))
        #expect(budget.byteCount == 0, "little is not counted")
        try test.channel.writeInbound(ByteBuffer(bytes: [0xB2, 0xB3]))
        try test.channel.writeInbound(Self.begin)
        #expect(40 << 10...44 << 10 ~= budget.byteCount)
        try test.channel.writeInbound(ByteBuffer(bytes: [0x00]))
        #expect(budget.byteCount == 0)
        try test.channel.writeInbound(Self.begin)
        test.handler.fail(.closedLocally, resetting: true)
        #expect(budget.byteCount == 0)
    }

    @Test func theIdlestConnectionsAreClosed() throws {
        let tests = try (0..<5).map { _ in try connection() }
        for test in tests[..<2] { try test.channel.writeInbound(Self.begin) }
        // The first one continues, so the second one is the idlest.
        try tests[0].channel.writeInbound(ByteBuffer(bytes: [0x00]))
        try tests[0].channel.writeInbound(Self.begin)
        for test in tests[2...] {
            try test.channel.writeInbound(Self.begin)
            loop.run()
            #expect(budget.byteCount <= 100 << 10)
        }
        let codes = tests.map { $0.handler.closed.value?.failure?.code }
        #expect(codes == [.overloaded, .overloaded, .overloaded, nil, nil])
        #expect(tests[1].record.end?.code == .overloaded)
    }

    @Test func bytesThatThePeerDoesNotReadAreCharged() throws {
        let test = try connection(holdingWrites: true)
        _ = try test.offer([UInt8](repeating: 0, count: 500))
        test.handler.flush()
        #expect(budget.byteCount == 0, "below the low mark")
        test.writes.completeFirst()
        _ = try test.offer([UInt8](repeating: 0, count: 5_000))
        test.handler.flush()
        #expect(budget.byteCount == 20 << 10, "as much may be accepted")
        test.writes.completeFirst()
        #expect(budget.byteCount == 0)
        _ = try test.offer([UInt8](repeating: 0, count: 50 << 10))
        test.handler.flush()
        #expect(budget.byteCount == 48 << 10)
    }

    @Test func bytesThatWaitForAPausedHandlerAreCharged() throws {
        let test = try connection()
        test.record.demand = .pause
        test.record.byteCount = 30 << 10
        try test.channel.writeInbound(ByteBuffer(bytes: [0x00]))
        #expect(budget.byteCount == 28 << 10)
        test.handler.resumeReading()
        #expect(budget.byteCount == 0)
    }

    @Test func framesAreShortUntilThePeerIsLetIn() throws {
        let (test, other) = (try connection { $0.openingFrameLimit = 2 }, try connection { $0.openingFrameLimit = 2 })
        try test.channel.writeInbound(ByteBuffer(bytes: [0x02, 0xA1, 0xA2]))
        test.handler.admitPeer()
        try test.channel.writeInbound(ByteBuffer(bytes: [0x03, 0xB1, 0xB2, 0xB3]))
        #expect(test.record.batches == [[[0xA1, 0xA2]], [[0xB1, 0xB2, 0xB3]]])
        try other.channel.writeInbound(ByteBuffer(bytes: [0x03]))
        #expect(other.record.end?.code == .protocolViolation)
    }

    @Test(arguments: [nil, 100]) func aNewcomerIsOneUntilItIsLetIn(openingFrameLimit: Int?) throws {
        let newcomers = Newcomers()
        let test = try connection { $0.openingFrameLimit = openingFrameLimit }
        test.handler.newcomer = newcomers.add {}
        #expect(newcomers.areWaiting)
        try test.channel.writeInbound(ByteBuffer(bytes: [0x00]))
        #expect(newcomers.areWaiting == (openingFrameLimit != nil))
        test.handler.admitPeer()
        #expect(!newcomers.areWaiting)
    }
}
