import LifelineCore
import Testing

@Suite struct KeepaliveConfigurationTests {
    @Test func theDefaultsGiveAPeerUpWhenTheHeartbeatWould() {
        let keepalive = KeepaliveConfiguration()
        #expect(keepalive.idleSeconds == 30)
        #expect(keepalive.intervalSeconds == 10)
        #expect(keepalive.probeCount == 3)
        #expect(keepalive.unacknowledgedMilliseconds == 60_000)
        #expect(keepalive.idle + keepalive.interval * keepalive.probes == keepalive.unacknowledgedTimeout)
    }

    @Test func theKernelGetsWhatItTakes() {
        var keepalive = KeepaliveConfiguration()
        keepalive.idle = .milliseconds(1001)
        keepalive.interval = .zero
        keepalive.probes = 0
        keepalive.unacknowledgedTimeout = .microseconds(1001)
        #expect(keepalive.idleSeconds == 2, "rounded up")
        #expect(keepalive.intervalSeconds == 1)
        #expect(keepalive.probeCount == 1)
        #expect(keepalive.unacknowledgedMilliseconds == 2)
        keepalive.idle = .seconds(Int64.max)
        keepalive.interval = .seconds(Int64.max)
        keepalive.probes = .max
        keepalive.unacknowledgedTimeout = .seconds(Int64.max)
        #expect(keepalive.idleSeconds == 32_767)
        #expect(keepalive.intervalSeconds == 32_767)
        #expect(keepalive.probeCount == 127)
        #expect(keepalive.unacknowledgedMilliseconds == Int(Int32.max))
        keepalive.unacknowledgedTimeout = .seconds(-1)
        #expect(keepalive.unacknowledgedMilliseconds == 1, "0 would be no bound")
        keepalive.unacknowledgedTimeout = nil
        #expect(keepalive.unacknowledgedMilliseconds == 0)
    }

    @Test func aHeartbeatComesFirst() {
        let later = KeepaliveConfiguration().beginning(after: HeartbeatConfiguration())
        #expect(later.idle == .seconds(60))
        #expect(later.unacknowledgedTimeout == .seconds(90))
        var other = HeartbeatConfiguration()
        other.interval = .seconds(1)
        other.timeout = .seconds(1)
        #expect(KeepaliveConfiguration().beginning(after: other) == KeepaliveConfiguration(), "it is later already")
        other.allowedMisses = .max
        other.timeout = .seconds(Int64.max)
        var keepalive = KeepaliveConfiguration()
        keepalive.unacknowledgedTimeout = nil
        keepalive.probes = .max
        let latest = keepalive.beginning(after: other)
        #expect(latest.idleSeconds == 32_767)
        #expect(latest.unacknowledgedTimeout == nil)
    }
}
