package import LifelineCore

/// What has come from the peer of a session: in both lanes, and without a place.
package struct InboundMessages: Sendable {
    private var lanes: SessionLanes<InboundSequence>
    private let window: SessionWindow
    /// Sizes of pushes that have no place and are not processed.
    private var unplaced = SparseQueue<Int>()
    private var (unplacedSize, unplacedCount) = (SessionSize(), UInt64(0))
    /// Ordinary messages that were processed, which the peer is not to know yet.
    private var held: [UInt64] = []

    init(_ options: SessionOptions) {
        lanes = SessionLanes(ordinary: InboundSequence(.ordinary, options), urgent: InboundSequence(.urgent, options))
        window = options.inboundWindow
    }

    /// How far this side is.
    package var progress: SessionProgress {
        SessionProgress(
            processed: SessionAcknowledgement(ordinary: lanes.ordinary.processed, urgent: lanes.urgent.processed),
            received: lanes.ordinary.received
        )
    }
    /// Whether the peer does not know everything.
    package var hasUnreported: Bool { lanes.ordinary.hasUnreported || lanes.urgent.hasUnreported }
    /// When `timerFired` is to be called, if nothing is sent before.
    package var nextDeadline: MonotonicTime? {
        .earliest(lanes.ordinary.nextDeadline, lanes.urgent.nextDeadline)
    }
    /// The bytes that have come and are not processed.
    package var unprocessedByteCount: Int {
        lanes.ordinary.unprocessed.byteCount + lanes.urgent.unprocessed.byteCount + unplacedSize.byteCount
    }
    /// Frames that had come before.
    package var duplicateCount: Int { lanes.ordinary.duplicateCount + lanes.urgent.duplicateCount }

    /// Whether the peer is to be told now.
    package func isReportDue(now: MonotonicTime) -> Bool {
        lanes.ordinary.isReportDue(now: now) || lanes.urgent.isReportDue(now: now)
    }

    /// `nextDeadline` has come; calling it early does no harm.
    mutating func timerFired(now: MonotonicTime) {
        lanes.ordinary.timerFired(now: now)
        lanes.urgent.timerFired(now: now)
    }

    /// The acknowledgement for a frame that is about to be sent.
    package mutating func takeReport() -> SessionAcknowledgement {
        SessionAcknowledgement(ordinary: lanes.ordinary.takeReport(), urgent: lanes.urgent.takeReport())
    }

    /// Whether nothing has come at a place yet.
    func isNew(_ place: SessionPlace) -> Bool {
        lanes.read(place.lane) { place.sequence > $0.received }
    }

    /// A frame with a place came in. Returns whether it is new.
    mutating func receive(_ place: SessionPlace, byteCount: Int) throws(SessionViolation) -> Bool {
        try lanes[place.lane].receive(place.sequence, byteCount: byteCount)
    }

    /// A message is processed.
    mutating func finish(_ place: SessionPlace, now: MonotonicTime) {
        lanes[place.lane].finish(place.sequence, now: now)
    }

    /// An ordinary message is processed.
    mutating func finish(_ sequence: UInt64, now: MonotonicTime) {
        lanes.ordinary.finish(sequence, now: now)
    }

    /// An ordinary message counts as processed only with the next `finishHeld`, so that the peer's window closes.
    mutating func hold(_ sequence: UInt64) {
        held.append(sequence)
    }

    mutating func finishHeld(now: MonotonicTime) {
        if held.isEmpty { return }
        for sequence in held { lanes.ordinary.finish(sequence, now: now) }
        held.removeAll(keepingCapacity: held.count <= 1024)
    }

    /// A push without a place came in. Returns its number; nil where there is no room for it.
    mutating func receiveUnplaced(byteCount: Int) -> UInt64? {
        guard window.takes(byteCount, besides: unplacedSize) else { return nil }
        unplacedCount += 1
        unplacedSize.add(byteCount)
        unplaced.append(unplacedCount, byteCount)
        return unplacedCount
    }

    /// Whether a push without a place has come.
    var hasUnplaced: Bool { unplacedCount > 0 }

    /// A push without a place is processed.
    mutating func finishUnplaced(_ number: UInt64) {
        if let byteCount = unplaced.remove(number) { unplacedSize.remove(byteCount) }
    }
}
