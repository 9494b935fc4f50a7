/// The decisions of the outgoing side: which frames are accepted, when to write, when to end. It uses no bytes, locks
/// or tasks.
package struct OutboundStateMachine {
    private enum State {
        /// Frames are accepted. Can go to: finishing, closed.
        case open
        /// No new frames are accepted; those in line are still written, then this side of the connection ends. Can go
        /// to: finished, closed.
        case finishing
        /// This side was told to end. Can go to: closed.
        case finished
        /// Nothing more can be written; has the reason, unless sending was finished before. Can go to: no other state.
        case closed(ConnectionError?)
    }

    private let marks: WaterMarks
    private var state = State.open
    /// Accepted bytes whose writing has not begun.
    private var queuedByteCount = 0
    /// The queued bytes that are replies. They do not delay sends: the reading side bounds them.
    private var queuedReplyByteCount = 0
    /// The bytes of the write under way.
    private var inFlightByteCount = 0
    private var isFlushScheduled = false
    /// The lengths of the sends that wait for room, in order.
    private var waiting = SparseQueue<Int>()
    private var lastWaiting: UInt64 = 0

    package init(marks: WaterMarks) {
        self.marks = marks
    }

    /// Bytes accepted and not yet taken by the kernel.
    package var unwrittenByteCount: Int { queuedByteCount + inFlightByteCount }

    /// Whether frames are accepted.
    package var isOpen: Bool {
        if case .open = state { true } else { false }
    }

    /// The reason why nothing more can be written, unless sending was finished before.
    package var closeReason: ConnectionError? {
        if case .closed(let reason) = state { reason } else { nil }
    }

    /// The handling of a frame.
    package enum OfferAction: Equatable {
        /// Append it to the buffer.
        case accept(scheduleFlush: Bool)
        /// Keep it under this id until it is admitted.
        case wait(id: UInt64)
        /// Fail the send: with `closeReason`, or because sending was finished.
        case refuse
    }

    /// Offers a frame.
    package mutating func offered(byteCount: Int) -> OfferAction {
        switch state {
        case .finishing, .finished, .closed: return .refuse
        case .open:
            guard hasRoom else {
                return .wait(id: wait(byteCount: byteCount))
            }
            queuedByteCount += byteCount
            return .accept(scheduleFlush: scheduleFlush())
        }
    }

    /// The handling of a frame that does not wait for room.
    package enum OfferNowAction: Equatable {
        /// Append it to the buffer.
        case accept(scheduleFlush: Bool)
        /// Report that there is no room.
        case noRoom
        /// Fail the send, as in `OfferAction`.
        case refuse
    }

    /// Offers a frame that is accepted now or not at all.
    package mutating func offeredNow(byteCount: Int) -> OfferNowAction {
        guard isOpen else { return .refuse }
        guard hasRoom else { return .noRoom }
        queuedByteCount += byteCount
        return .accept(scheduleFlush: scheduleFlush())
    }

    /// Requests a notice when there is room: accepted if there is room, otherwise waits in line like an empty frame.
    package mutating func roomRequested() -> OfferAction {
        guard isOpen else { return .refuse }
        return hasRoom ? .accept(scheduleFlush: false) : .wait(id: wait(byteCount: 0))
    }

    /// Adds replies. They are accepted until this side is told to end, because they were begun before. Returns whether
    /// to schedule a flush; nil when nothing more may be written.
    package mutating func replied(byteCount: Int) -> Bool? {
        switch state {
        case .finished, .closed: return nil
        case .open, .finishing:
            queuedByteCount += byteCount
            queuedReplyByteCount += byteCount
            return scheduleFlush()
        }
    }

    /// Adds the connection's own bytes, which do not wait for room. Returns whether to schedule a flush; nil when
    /// nothing more may be written.
    package mutating func appended(byteCount: Int) -> Bool? {
        switch state {
        case .finishing, .finished, .closed: return nil
        case .open:
            queuedByteCount += byteCount
            return scheduleFlush()
        }
    }

    /// Cancels a waiting send. Returns whether it still waited; if not, its frame was accepted.
    package mutating func cancelled(id: UInt64) -> Bool {
        waiting.remove(id) != nil
    }

    /// The step on the loop when a flush is due.
    package enum FlushAction: Equatable {
        /// Write the whole buffer and flush.
        case write
        /// End this side of the connection.
        case endOutput
        /// Nothing: the buffer is empty, or a write is under way, which continues when it is done.
        case none
    }

    /// Begins the scheduled flush.
    package mutating func flushStarted() -> FlushAction {
        isFlushScheduled = false
        if inFlightByteCount > 0 { return .none }
        switch state {
        case .finished, .closed: return .none
        case .open, .finishing:
            if queuedByteCount > 0 {
                inFlightByteCount = queuedByteCount
                (queuedByteCount, queuedReplyByteCount) = (0, 0)
                return .write
            }
            guard case .finishing = state else { return .none }
            state = .finished
            return .endOutput
        }
    }

    /// The steps when the kernel has taken a write.
    package struct WrittenAction: Equatable {
        /// The sends whose frames are accepted now, in order: append them to the buffer.
        package var admitted: [UInt64] = []
        /// Whether there is more to write or to end.
        package var scheduleFlush = false
    }

    /// Notes that the kernel has taken the write completely.
    package mutating func written() -> WrittenAction {
        inFlightByteCount = 0
        if case .closed = state { return WrittenAction() }
        var action = WrittenAction()
        if queuedByteCount - queuedReplyByteCount <= marks.low {
            while queuedByteCount - queuedReplyByteCount < marks.high, let first = waiting.first {
                waiting.remove(first.number)
                queuedByteCount += first.element
                action.admitted.append(first.number)
            }
        }
        action.scheduleFlush = hasWork && scheduleFlush()
        return action
    }

    /// The steps when the user has no more to send.
    package struct FinishAction: Equatable {
        /// The sends that are given up.
        package var refused: [UInt64] = []
        /// Whether there is something to write or to end.
        package var scheduleFlush = false
    }

    /// Finishes sending. `refusingWaiting`: whether frames that were not accepted yet are given up as well.
    package mutating func finishRequested(refusingWaiting: Bool) -> FinishAction {
        var action = FinishAction()
        if case .open = state { state = .finishing }
        guard case .finishing = state else { return action }
        if refusingWaiting {
            action.refused = refuseWaiting()
        }
        action.scheduleFlush = hasWork && inFlightByteCount == 0 && scheduleFlush()
        return action
    }

    /// Closes the connection on this side. Frames that were not accepted yet are given up, unless sending was finished
    /// before: then the connection ends after them.
    package mutating func closeRequested() -> FinishAction {
        finishRequested(refusingWaiting: isOpen)
    }

    /// The remains of a connection that has ended.
    package struct ClosedAction: Equatable {
        /// The sends that fail.
        package var refused: [UInt64] = []
        /// Bytes that were accepted and are lost.
        package var unwrittenByteCount = 0
    }

    /// Notes that the connection has ended. Only the first reason counts.
    package mutating func closed(_ reason: ConnectionError) -> ClosedAction {
        switch state {
        case .open: state = .closed(reason)
        case .finishing, .finished: state = .closed(nil)
        case .closed: return ClosedAction()
        }
        defer {
            (queuedByteCount, queuedReplyByteCount) = (0, 0)
            inFlightByteCount = 0
        }
        return ClosedAction(refused: refuseWaiting(), unwrittenByteCount: unwrittenByteCount)
    }

    private mutating func wait(byteCount: Int) -> UInt64 {
        lastWaiting += 1
        waiting.append(lastWaiting, byteCount)
        return lastWaiting
    }

    private mutating func refuseWaiting() -> [UInt64] {
        defer { waiting = SparseQueue() }
        return waiting.numbers
    }

    private var hasRoom: Bool { waiting.isEmpty && unwrittenByteCount < marks.high }

    private var hasWork: Bool {
        // Sends wait in line only while bytes are queued or in flight.
        if case .finishing = state { true } else { queuedByteCount > 0 }
    }

    private mutating func scheduleFlush() -> Bool {
        // A write under way flushes again when it is done.
        if isFlushScheduled || inFlightByteCount > 0 { return false }
        isFlushScheduled = true
        return true
    }
}
