internal import LifelineCore

/// How a `NetworkMonitor` watches.
public struct NetworkMonitorConfiguration: Sendable, Hashable {
    /// How long nothing must have happened before a change is reported; it is reported at the latest after three times
    /// this. Default: 100 ms, so that what comes in steps (a link, then its address, then its route) and flaps of a
    /// cable or an access point are one change. Taken as at least 1 ms and at most 365 days.
    public var quietPeriod: Duration {
        didSet { quietPeriod = quietPeriod.clamped(atLeast: .milliseconds(1)) }
    }

    /// How often the kernel is asked although it reported nothing, since a few changes come without an event. Default:
    /// 5 s, which costs a millisecond each time. For a second after a link has changed it is asked every quarter of the
    /// quiet period, at least 20 ms apart, since the kernel tells of repeated losses of carrier late. Taken as at least
    /// 100 ms and at most 365 days.
    public var pollInterval: Duration {
        didSet { pollInterval = pollInterval.clamped(atLeast: .milliseconds(100)) }
    }

    /// Where sysfs is mounted, which tells wireless interfaces and modems from others.
    package var sysfs = "/sys"

    /// Makes the default configuration.
    public init() {
        quietPeriod = .milliseconds(100)
        pollInterval = .seconds(5)
    }
}
