/// How often, and for how long, to check whether the peer's TCP has acknowledged what was written last. No event says
/// so.
///
/// The time counts as a whole: a peer that makes room for a few bytes now and then could prolong it for ever otherwise.
package struct AcknowledgementWait: Sendable {
    /// Short enough for a network within a room, and long enough that it costs nothing over a slow one.
    private static let pauses = (first: Duration.milliseconds(1), last: Duration.milliseconds(50))

    private let deadline: MonotonicTime
    private var pause = AcknowledgementWait.pauses.first

    package init(timeout: Duration, now: MonotonicTime) {
        deadline = now + timeout
    }

    /// The driver has checked. Returns how long to wait until the next check; nil when there is nothing to wait for.
    ///
    /// - Parameter isOver: whether everything is acknowledged, or nothing more will be.
    package mutating func checked(isOver: Bool, now: MonotonicTime) -> Duration? {
        let rest = deadline - now
        if isOver || rest <= .zero { return nil }
        defer { pause = min(pause * 2, AcknowledgementWait.pauses.last) }
        return min(pause, rest)
    }
}
