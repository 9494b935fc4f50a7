package import LifelineCore

/// What this side of a session has accepted for the peer. Each message waits, gets a place in its lane when it is first
/// sent, and is kept until the peer has processed it; it is sent again where a connection was lost before it came.
///
/// `next` takes messages out one at a time, in the order in which they were accepted, as the connection and the peer's
/// windows have room; only what waits for the window of one lane is overtaken by the other. A message that is dropped
/// while it waits leaves no gap; one that has a place keeps it, without its content. One that replaces another which
/// waits takes its position in the queue, so that a key whose value changes faster than the queue moves is sent all the
/// same.
///
/// Every message is accepted. Whoever pushes one for which there is no room waits until it is admitted, so that what is
/// kept is at most the limit, a message that is larger than the limit in each lane, those that pushers and askers wait
/// with, the responses that have no room, and a window of refusals. Those who use it bound requests and responses: see
/// `takesRequest` and `unadmittedResponseSize`.
///
/// Each event costs constant time on average for each message that it is about, a deadline or a message in the midst of
/// the others logarithmic time. A lost connection costs the time to look at what waits. Memory follows what is kept.
package struct OutboundSequence<Content: SessionContent>: Sendable {
    /// The number of an accepted message: ascending by one, over all connections.
    package typealias Number = UInt64
    package typealias Message = SessionMessage<Content>

    /// What became of a push.
    package struct Ended: Equatable, Sendable {
        package let number: Number
        package let outcome: SessionDeliveryOutcome

        init(_ number: Number, _ outcome: SessionDeliveryOutcome) {
            (self.number, self.outcome) = (number, outcome)
        }
    }

    typealias Lane = OutboundLane<Content>

    var lanes: SessionLanes<Lane>
    /// The number of the next message.
    package private(set) var nextNumber: Number = 1
    /// Of those that wait, the newest of each key.
    var waitingByKey: [ReplacementKey: Number] = [:]
    /// The positions of those that wait in the place of others.
    var positions: [Number: UInt64] = [:]
    var deadlines = DeadlineHeap()
    /// How many of those that wait have a deadline.
    var waitingDeadlineCount = 0
    /// Pushes that were sent before they were admitted, and of which that is to be told.
    var sentUnadmitted: [Number] = []
    var isConnected = false

    /// - Parameter limit: what is kept before whoever brings more waits. A quarter of it is for urgent messages only.
    package init(limit: SessionWindow) {
        // Each at least one frame, or it could never send.
        let urgent = SessionWindow(frameCount: max(limit.frameCount / 4, 1), byteCount: limit.byteCount / 4)
        let ordinary = SessionWindow(
            frameCount: max(limit.frameCount - urgent.frameCount, 1),
            byteCount: limit.byteCount - urgent.byteCount
        )
        lanes = SessionLanes(ordinary: Lane(limit: ordinary), urgent: Lane(limit: urgent))
    }

    /// Those that were accepted without room and are not admitted yet.
    package var unadmittedCount: Int { lanes.ordinary.unadmittedCount + lanes.urgent.unadmittedCount }
    /// Those of them that are responses.
    package var unadmittedResponseSize: SessionSize {
        unadmittedResponseSize(.ordinary) + unadmittedResponseSize(.urgent)
    }
    /// Those of them that are responses in a lane.
    package func unadmittedResponseSize(_ lane: SessionLane) -> SessionSize {
        lanes.read(lane) { $0.unadmittedResponseSize }
    }
    /// What is kept.
    package var keptSize: SessionSize {
        lanes.ordinary.waitingSize + lanes.ordinary.sentSize + lanes.urgent.waitingSize + lanes.urgent.sentSize
    }
    /// What has room, in a lane.
    package func admittedSize(_ lane: SessionLane) -> SessionSize { lanes.read(lane) { $0.admittedSize } }
    /// What was sent and is not known to be processed, in a lane.
    package func unprocessedSize(_ lane: SessionLane) -> SessionSize { lanes.read(lane) { $0.sentSize } }
    /// Requests that were not sent.
    var waitingRequestCount: Int { lanes.ordinary.waitingRequestCount }
    /// The last places that the peer has processed.
    package var acknowledged: SessionAcknowledgement {
        SessionAcknowledgement(ordinary: lanes.ordinary.acknowledged, urgent: lanes.urgent.acknowledged)
    }
    /// When `timerFired` is to be called.
    package var nextDeadline: MonotonicTime? { deadlines.next }

    /// Whether requests that have no room may become more by one of so many bytes: all of them may be as much as is
    /// kept.
    func takesRequest(_ byteCount: Int) -> Bool {
        lanes.ordinary.hasRoom(for: byteCount)
            || lanes.ordinary.limit.takesOwn(byteCount, besides: lanes.ordinary.unadmittedRequestSize)
    }

    /// Whether a message that is accepted now is admitted at once.
    package func hasRoom(for message: Message) -> Bool {
        lanes.read(message.lane) { $0.hasRoom(for: message.byteCount) }
    }

    /// Accepts a message.
    ///
    /// - Parameter isObserved: whether to tell when a push was sent or processed. What does not come to that is always
    ///   told of pushes, and nothing of other messages.
    /// - Returns: Its number, whether it is admitted, and what it replaces.
    package mutating func accept(
        _ message: Message,
        _ delivery: SessionDelivery,
        isObserved: Bool,
        now: MonotonicTime
    ) -> (Number, isAdmitted: Bool, replaced: Ended?) {
        let number = takeNumber()
        let (isAdmitted, replaced) = append(number, message, delivery, isObserved: isObserved, now: now)
        return (number, isAdmitted, replaced)
    }

    /// Accepts a request, a response or a cancellation. Returns its number.
    @discardableResult
    mutating func accept(_ message: Message, now: MonotonicTime) -> Number {
        let number = takeNumber()
        _ = append(number, message, .reliable, isObserved: false, now: now)
        return number
    }

    private mutating func takeNumber() -> Number {
        defer { nextNumber += 1 }
        return nextNumber
    }

    /// Gives up a message. Nothing is told of it.
    ///
    /// - Returns: false when it does not wait any more, or an older one that was accepted has ended for it: then one of
    ///   the two is sent.
    package mutating func withdraw(_ number: Number) -> Bool {
        guard let entry = waitingEntry(number), !entry.hasReplaced else { return false }
        return takeWaiting(number) != nil
    }

    /// `nextDeadline` has come; calling it early does no harm. What was sent is looked at when it would be sent again.
    package mutating func timerFired(now: MonotonicTime) -> [Ended] {
        var ended: [Ended] = []
        while let number = deadlines.takeDue(now: now) {
            if let end = drop(number, .expired) { ended.append(end) }
        }
        return ended
    }

    /// The pushes that were admitted since they were accepted without room: whoever brought them goes on. Those that
    /// ended before are not among them.
    package mutating func takeAdmitted() -> [Number] {
        if unadmittedCount == 0, sentUnadmitted.isEmpty { return [] }
        defer { sentUnadmitted = [] }
        let admitted = lanes.ordinary.admit() + lanes.urgent.admit()
        return sentUnadmitted + admitted.filter { $0.kind == .push }.map(\.number)
    }

    /// Whether a message has not been sent, nor ended.
    package func isWaiting(_ number: Number) -> Bool {
        lane(ofWaiting: number) != nil
    }
}
