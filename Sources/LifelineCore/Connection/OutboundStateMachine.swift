/// The decisions of the outgoing side: who may send, when to write, when to end. Knows no bytes, locks or tasks.
package struct OutboundStateMachine {
    private enum State {
        /// Frames are taken. Can go to: finishing, closed.
        case open
        /// No new frames; those in line are still written, then this side of the connection ends.
        /// Can go to: finished, closed.
        case finishing
        /// This side was told to end. Can go to: closed.
        case finished
        /// Nothing can be written any more: with the reason, unless sending was finished before. Can go to: nothing.
        case closed(ConnectionError?)
    }

    private let marks: WaterMarks
    private var state = State.open
    /// Bytes accepted that nobody has begun to write.
    private var queuedByteCount = 0
    /// Those among them that answer what has come. They do not hold up sends: whoever reads bounds them.
    private var queuedReplyByteCount = 0
    /// Bytes of the write that the kernel has not taken completely.
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

    /// Whether frames are taken.
    package var isOpen: Bool {
        if case .open = state { true } else { false }
    }

    /// Why nothing can be written any more, unless sending was finished before.
    package var closeReason: ConnectionError? {
        if case .closed(let reason) = state { reason } else { nil }
    }

    /// What to do with a frame.
    package enum OfferAction: Equatable {
        /// Append it to the buffer.
        case accept(scheduleFlush: Bool)
        /// Keep it under this name until it is admitted.
        case wait(id: UInt64)
        /// Fail the send: with `closeReason`, or because sending was finished.
        case refuse
    }

    /// A frame was offered.
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

    /// What to do with a frame that does not wait for room.
    package enum OfferNowAction: Equatable {
        /// Append it to the buffer.
        case accept(scheduleFlush: Bool)
        /// Tell that there is no room.
        case noRoom
        /// Fail the send, as in `OfferAction`.
        case refuse
    }

    /// A frame was offered that is to be taken now or not at all.
    package mutating func offeredNow(byteCount: Int) -> OfferNowAction {
        guard isOpen else { return .refuse }
        guard hasRoom else { return .noRoom }
        queuedByteCount += byteCount
        return .accept(scheduleFlush: scheduleFlush())
    }

    /// Somebody wants to know when there is room: accepted when there is, or waits in line like a frame of no bytes.
    package mutating func roomRequested() -> OfferAction {
        guard isOpen else { return .refuse }
        return hasRoom ? .accept(scheduleFlush: false) : .wait(id: wait(byteCount: 0))
    }

    /// Frames that answer what has come are to be written. They are taken until this side was told to end, since they
    /// were begun before. Tells whether to schedule a flush; nil when nothing may be written any more.
    package mutating func replied(byteCount: Int) -> Bool? {
        switch state {
        case .finished, .closed: return nil
        case .open, .finishing:
            queuedByteCount += byteCount
            queuedReplyByteCount += byteCount
            return scheduleFlush()
        }
    }

    /// Bytes of the connection's own are to be written, which do not wait for room. Tells whether to schedule a flush;
    /// nil when nothing may be written any more.
    package mutating func appended(byteCount: Int) -> Bool? {
        switch state {
        case .finishing, .finished, .closed: return nil
        case .open:
            queuedByteCount += byteCount
            return scheduleFlush()
        }
    }

    /// A waiting send was cancelled. Tells whether it still waited; otherwise its frame was accepted.
    package mutating func cancelled(id: UInt64) -> Bool {
        waiting.remove(id) != nil
    }

    /// What to do on the loop when its turn to flush has come.
    package enum FlushAction: Equatable {
        /// Write the whole buffer and flush.
        case write
        /// End this side of the connection.
        case endOutput
        /// Nothing: empty, or a write is under way, whose completion goes on.
        case none
    }

    /// The scheduled flush runs.
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

    /// What to do when the kernel has taken a write.
    package struct WrittenAction: Equatable {
        /// Sends whose frames are accepted now, in order: append them to the buffer.
        package var admitted: [UInt64] = []
        /// Whether there is more to write or to end.
        package var scheduleFlush = false
    }

    /// The kernel has taken the write completely.
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

    /// What to do when the user has no more to send.
    package struct FinishAction: Equatable {
        /// Sends that are given up.
        package var refused: [UInt64] = []
        /// Whether there is something to write or to end.
        package var scheduleFlush = false
    }

    /// The user has no more to send. `refusingWaiting`: frames that were not accepted yet are given up as well.
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

    /// This side closes the connection: frames that were not accepted yet are given up, unless the user had said before
    /// that there is no more to send. Then the connection ends behind them.
    package mutating func closeRequested() -> FinishAction {
        finishRequested(refusingWaiting: isOpen)
    }

    /// What is left when the connection is gone.
    package struct ClosedAction: Equatable {
        /// Sends that fail.
        package var refused: [UInt64] = []
        /// Bytes that were accepted and are lost.
        package var unwrittenByteCount = 0
    }

    /// The connection is gone. Only the first reason counts.
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
        // Sends are in line only while bytes are queued or in flight.
        if case .finishing = state { true } else { queuedByteCount > 0 }
    }

    private mutating func scheduleFlush() -> Bool {
        // A write under way flushes again when it is done.
        if isFlushScheduled || inFlightByteCount > 0 { return false }
        isFlushScheduled = true
        return true
    }
}
