import LifelineCore
import MetricsTestKit
import NIOCore
import NIOEmbedded
import Testing

@testable import LifelineTransport

/// The metrics of heartbeats with 30 s, 10 s and 3 misses.
@Suite struct HeartbeatMetricsTests {
    private func counts(of test: HandlerTest) -> [Int64] {
        ["sent", "missed"].map {
            test.metrics.counterTotal(label: "lifeline.heartbeats.\($0)", dimensions: [("role", "test")])
        }
    }

    @Test func pingsAndMissesAreCounted() throws {
        let test = try HandlerTest(liveness: LivenessOptions(heartbeat: HeartbeatConfiguration()))
        #expect(counts(of: test) == [0, 0])
        test.advance(seconds: 30)
        #expect(counts(of: test) == [1, 0])
        // An answered ping is not a miss, and neither is one that another follows before its timeout.
        try test.channel.writeInbound(ByteBuffer(bytes: [0x00]))
        test.advance(seconds: 1)
        test.handler.probe()
        test.handler.probe()
        #expect(counts(of: test) == [3, 0])
        test.advance(seconds: 10)
        #expect(counts(of: test) == [4, 1])
        test.advance(seconds: 20)
        #expect(!test.channel.isActive)
        #expect(counts(of: test) == [5, 3])
    }
}
