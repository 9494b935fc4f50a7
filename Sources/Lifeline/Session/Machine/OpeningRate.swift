package import LifelineCore

/// Limits how many sessions begin in a second when many clients come at once, for example after a restart of the
/// server.
///
/// Further clients are told to come back one after the other, at this rate. They have no reserved place: when new
/// clients come meanwhile, some are told a second time.
package struct OpeningRate: Sendable {
    /// The time between two openings at the rate.
    private let interval: Duration
    /// How far openings may be ahead of the rate: a second.
    private let burst: Duration
    /// A minute. Clients beyond those that can come in this time share their turns, and are told a second time.
    private let longestPause = Duration.seconds(60)
    /// The time at which all admitted openings are done, at the rate.
    private var admittedUntil: MonotonicTime?
    /// The same time, including clients that were told to come later.
    private var promisedUntil: MonotonicTime?

    /// - Parameter perSecond: at least 1.
    package init(perSecond: Int) {
        interval = .seconds(1) / max(perSecond, 1)
        burst = .seconds(1)
    }

    /// Lets a client in (nil), or returns the pause after which it should come back.
    package mutating func admit(now: MonotonicTime) -> Duration? {
        let admitted = max(admittedUntil ?? now, now) + interval
        if admitted - now <= burst {
            admittedUntil = admitted
            return nil
        }
        var promised = max(promisedUntil ?? admitted, admitted) + interval
        // Clients shorten longer pauses to their own limits, and would all come at once.
        if promised - now > longestPause { promised = admitted + interval }
        promisedUntil = promised
        return promised - now
    }
}
