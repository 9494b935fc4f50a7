internal import LifelineCore

/// The settings of a `NetworkMonitor`.
public struct NetworkMonitorConfiguration: Sendable, Hashable {
    /// The time without events before a change is reported; it is reported at the latest after three times this.
    /// Default: 100 ms, so that changes in steps (a link, then its address, then its route) and flaps of a cable or an
    /// access point are one change. At least 1 ms, at most 365 days.
    public var quietPeriod: Duration {
        didSet { quietPeriod = quietPeriod.clamped(atLeast: .milliseconds(1)) }
    }

    /// How often the kernel is polled without an event, because a few changes cause none. Default: 5 s, which costs a
    /// millisecond each time. For a second after a change of a link it is polled every quarter of the quiet period, at
    /// least 20 ms apart, because the kernel reports repeated losses of carrier late. At least 100 ms, at most 365
    /// days.
    public var pollInterval: Duration {
        didSet { pollInterval = pollInterval.clamped(atLeast: .milliseconds(100)) }
    }

    /// The path at which sysfs is mounted, which identifies wireless interfaces and modems.
    package var sysfs = "/sys"

    /// Makes the default configuration.
    public init() {
        quietPeriod = .milliseconds(100)
        pollInterval = .seconds(5)
    }
}
