/// Decides how often, and for how long, to check whether the peer's TCP has acknowledged the last written bytes. No
/// event reports it.
///
/// The time limit is one for the whole wait, because otherwise a peer that makes room for a few bytes now and then
/// could prolong it for ever.
package struct AcknowledgementWait: Sendable {
    /// The first pause is short enough for a local network; the last is long enough to cost nothing over a slow one.
    private static let pauses = (first: Duration.milliseconds(1), last: Duration.milliseconds(50))

    private let deadline: MonotonicTime
    private var pause = AcknowledgementWait.pauses.first

    package init(timeout: Duration, now: MonotonicTime) {
        deadline = now + timeout
    }

    /// Notes that the driver has checked. Returns how long to wait until the next check; nil when there is nothing to
    /// wait for.
    ///
    /// - Parameter isOver: whether everything is acknowledged, or nothing more will be.
    package mutating func checked(isOver: Bool, now: MonotonicTime) -> Duration? {
        let rest = deadline - now
        if isOver || rest <= .zero { return nil }
        defer { pause = min(pause * 2, AcknowledgementWait.pauses.last) }
        return min(pause, rest)
    }
}
