package import LifelineCore

/// How many sessions begin in a second, when more clients come at once: after a restart of the server, say.
///
/// Clients that are too many are told to come back one after the other, at this rate. Nobody's place is kept: where new
/// clients come meanwhile, some are told a second time.
package struct OpeningRate: Sendable {
    /// How long one opening takes of the rate.
    private let interval: Duration
    /// How far openings may be ahead of their rate: a second.
    private let burst: Duration
    /// A minute. Clients that are more than come in this time share their turns, and are told a second time.
    private let longestPause = Duration.seconds(60)
    /// When all openings are done that were let in, at the rate.
    private var admittedUntil: MonotonicTime?
    /// The same with those that were told to come later.
    private var promisedUntil: MonotonicTime?

    /// - Parameter perSecond: at least 1.
    package init(perSecond: Int) {
        interval = .seconds(1) / max(perSecond, 1)
        burst = .seconds(1)
    }

    /// Lets a client in, or tells after what pause it is to come back.
    package mutating func admit(now: MonotonicTime) -> Duration? {
        let admitted = max(admittedUntil ?? now, now) + interval
        if admitted - now <= burst {
            admittedUntil = admitted
            return nil
        }
        var promised = max(promisedUntil ?? admitted, admitted) + interval
        // Longer pauses clients cut, each by itself, and come all at once.
        if promised - now > longestPause { promised = admitted + interval }
        promisedUntil = promised
        return promised - now
    }
}
