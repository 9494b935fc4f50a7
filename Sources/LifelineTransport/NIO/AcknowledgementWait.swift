internal import LifelineCore

/// How often to look, and how long, whether the peer's TCP has acknowledged what was written last. Nothing tells of that.
struct AcknowledgementWait {
    /// Short enough for a network within a room, and long enough that it costs nothing over a slow one.
    private static let pauses = (first: Duration.milliseconds(1), last: Duration.milliseconds(50))

    private let timeout: Duration
    private var pause = AcknowledgementWait.pauses.first
    private var acknowledgedByteCount: UInt64 = 0
    private var lastProgress: MonotonicTime

    /// - Parameter timeout: how long to go on while nothing more is acknowledged.
    init(timeout: Duration, now: MonotonicTime) {
        self.timeout = timeout
        self.lastProgress = now
    }

    /// Somebody looked. Returns how long to wait until the next look; nil: there is nothing to wait for.
    ///
    /// - Parameter isOver: whether everything is acknowledged, or nothing more will be.
    mutating func looked(acknowledgedByteCount: UInt64, isOver: Bool, now: MonotonicTime) -> Duration? {
        if acknowledgedByteCount > self.acknowledgedByteCount {
            self.acknowledgedByteCount = acknowledgedByteCount
            lastProgress = now
        }
        let rest = timeout - (now - lastProgress)
        if isOver || rest <= .zero { return nil }
        defer { pause = min(pause * 2, AcknowledgementWait.pauses.last) }
        return min(pause, rest)
    }
}
