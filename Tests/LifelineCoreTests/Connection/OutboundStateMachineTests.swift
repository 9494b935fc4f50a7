import Testing

@testable import LifelineCore

private typealias Machine = OutboundStateMachine

/// The marks are 10 and 20 throughout.
@Suite struct OutboundStateMachineTests {
    private let reason = ConnectionError(code: .closedByPeer, message: "")

    /// Every state, and how it is reached.
    enum State: CaseIterable, Sendable {
        case idle, queued, writing, writingAndQueued, full
        case finishing, finishingFull, finished, closed, closedAfterFinish
    }

    private func machine(_ state: State) -> Machine {
        var machine = Machine(marks: WaterMarks(low: 10, high: 20))
        switch state {
        case .idle: break
        case .queued: _ = machine.offered(byteCount: 5)
        case .writing:
            _ = machine.offered(byteCount: 5)
            _ = machine.flushStarted()
        case .writingAndQueued:
            machine = self.machine(.writing)
            _ = machine.offered(byteCount: 7)
        case .full:
            _ = machine.offered(byteCount: 25)
            _ = machine.flushStarted()
            for _ in 0..<3 { _ = machine.offered(byteCount: 15) }
        case .finishing:
            machine = self.machine(.queued)
            _ = machine.finishRequested(refusingWaiting: false)
        case .finishingFull:
            machine = self.machine(.full)
            _ = machine.finishRequested(refusingWaiting: false)
        case .finished:
            _ = machine.finishRequested(refusingWaiting: false)
            _ = machine.flushStarted()
        case .closed: _ = machine.closed(reason)
        case .closedAfterFinish:
            machine = self.machine(.finished)
            _ = machine.closed(reason)
        }
        return machine
    }

    // MARK: State × event

    @Test(arguments: State.allCases)
    func offered(state: State) {
        var machine = machine(state)
        let expected: Machine.OfferAction =
            switch state {
            case .idle: .accept(scheduleFlush: true)
            case .queued, .writing, .writingAndQueued: .accept(scheduleFlush: false)
            case .full: .wait(id: 4)
            case .finishing, .finishingFull, .finished, .closed, .closedAfterFinish: .refuse
            }
        #expect(machine.offered(byteCount: 5) == expected)
        #expect((machine.closeReason != nil) == (state == .closed))
    }

    @Test(arguments: State.allCases)
    func flushStarted(state: State) {
        var machine = machine(state)
        let expected: Machine.FlushAction =
            switch state {
            case .queued, .finishing: .write
            case .idle, .writing, .writingAndQueued, .full, .finishingFull, .finished, .closed, .closedAfterFinish:
                .none
            }
        #expect(machine.flushStarted() == expected)
    }

    @Test(arguments: [State.writing, .writingAndQueued, .full, .finishingFull, .closed, .closedAfterFinish])
    func written(state: State) {
        var machine = machine(state)
        let expected: Machine.WrittenAction =
            switch state {
            case .writingAndQueued: .init(scheduleFlush: true)
            // 15 and 15 are admitted, since the second one finds 15 < 20.
            case .full, .finishingFull: .init(admitted: [1, 2], scheduleFlush: true)
            default: .init()
            }
        #expect(machine.written() == expected)
    }

    @Test(arguments: State.allCases, [false, true])
    func finishRequested(state: State, refusingWaiting: Bool) {
        var machine = machine(state)
        let action = machine.finishRequested(refusingWaiting: refusingWaiting)
        #expect(action.scheduleFlush == (state == .idle), "otherwise a flush or a write is on its way")
        let waits = state == .full || state == .finishingFull
        #expect(action.refused == (waits && refusingWaiting ? [1, 2, 3] : []))
    }

    @Test(arguments: State.allCases)
    func closeRequested(state: State) {
        var machine = machine(state)
        let action = machine.closeRequested()
        #expect(action.scheduleFlush == (state == .idle))
        // A side that has to end after the waiting bytes still does so.
        #expect(action.refused == (state == .full ? [1, 2, 3] : []))
    }

    @Test(arguments: State.allCases)
    func closed(state: State) {
        var machine = machine(state)
        let unwritten =
            switch state {
            case .queued, .writing, .finishing: 5
            case .writingAndQueued: 12
            case .full, .finishingFull: 25
            case .idle, .finished, .closed, .closedAfterFinish: 0
            }
        let waits = state == .full || state == .finishingFull
        #expect(machine.closed(reason) == .init(refused: waits ? [1, 2, 3] : [], unwrittenByteCount: unwritten))
        #expect(machine.closed(reason) == .init(), "only the first one counts")
        #expect(machine.unwrittenByteCount == 0)
        #expect(machine.flushStarted() == .none)
        #expect(machine.written() == .init())
    }

    @Test(arguments: State.allCases)
    func cancelled(state: State) {
        var machine = machine(state)
        let waits = state == .full || state == .finishingFull
        #expect(machine.cancelled(id: 2) == waits)
        #expect(machine.cancelled(id: 2) == false)
        #expect(machine.cancelled(id: 99) == false)
    }

    // MARK: Sequences

    @Test func onlyOneFlushIsScheduledAtATime() {
        var machine = machine(.idle)
        #expect(machine.offered(byteCount: 1) == .accept(scheduleFlush: true))
        #expect(machine.offered(byteCount: 1) == .accept(scheduleFlush: false))
        #expect(machine.flushStarted() == .write)
        #expect(machine.offered(byteCount: 1) == .accept(scheduleFlush: false), "the write's completion flushes")
        #expect(machine.written() == .init(scheduleFlush: true))
        #expect(machine.offered(byteCount: 1) == .accept(scheduleFlush: false))
        #expect(machine.flushStarted() == .write)
        #expect(machine.written() == .init())
        #expect(machine.offered(byteCount: 1) == .accept(scheduleFlush: true))
    }

    @Test func nobodyOvertakesTheLine() {
        var machine = machine(.full)
        #expect(machine.offered(byteCount: 1) == .wait(id: 4))
        #expect(machine.written().admitted == [1, 2])
        #expect(machine.offered(byteCount: 1) == .wait(id: 5), "3 and 4 came first")
        #expect(machine.flushStarted() == .write)
        #expect(machine.written() == .init(admitted: [3, 4, 5], scheduleFlush: true))
    }

    @Test func theEndComesAfterWhatWaited() {
        var machine = machine(.finishingFull)
        #expect(machine.written() == .init(admitted: [1, 2], scheduleFlush: true))
        #expect(machine.flushStarted() == .write)
        #expect(machine.written() == .init(admitted: [3], scheduleFlush: true))
        #expect(machine.flushStarted() == .write)
        #expect(machine.written() == .init(scheduleFlush: true))
        #expect(machine.flushStarted() == .endOutput)
        #expect(machine.flushStarted() == .none)
    }

    @Test(arguments: State.allCases)
    func appended(state: State) {
        var machine = machine(state)
        let before = machine.unwrittenByteCount
        let expected: Bool? =
            switch state {
            case .idle: true
            case .queued, .writing, .writingAndQueued, .full: false
            case .finishing, .finishingFull, .finished, .closed, .closedAfterFinish: nil
            }
        #expect(machine.appended(byteCount: 3) == expected)
        #expect(machine.unwrittenByteCount == before + (expected == nil ? 0 : 3))
    }

    @Test(arguments: State.allCases)
    func offeredNow(state: State) {
        var machine = machine(state)
        let before = machine.unwrittenByteCount
        let expected: Machine.OfferNowAction =
            switch state {
            case .idle: .accept(scheduleFlush: true)
            case .queued, .writing, .writingAndQueued: .accept(scheduleFlush: false)
            case .full: .noRoom
            case .finishing, .finishingFull, .finished, .closed, .closedAfterFinish: .refuse
            }
        #expect(machine.offeredNow(byteCount: 3) == expected)
        let isAccepted = [.idle, .queued, .writing, .writingAndQueued].contains(state)
        #expect(machine.unwrittenByteCount == before + (isAccepted ? 3 : 0))
    }

    @Test(arguments: State.allCases)
    func roomRequested(state: State) {
        var machine = machine(state)
        let before = machine.unwrittenByteCount
        let expected: Machine.OfferAction =
            switch state {
            case .idle, .queued, .writing, .writingAndQueued: .accept(scheduleFlush: false)
            case .full: .wait(id: 4)
            case .finishing, .finishingFull, .finished, .closed, .closedAfterFinish: .refuse
            }
        #expect(machine.roomRequested() == expected)
        #expect(machine.unwrittenByteCount == before)
    }

    @Test(arguments: State.allCases)
    func replied(state: State) {
        var machine = machine(state)
        let before = machine.unwrittenByteCount
        let expected: Bool? =
            switch state {
            case .idle: true
            case .queued, .writing, .writingAndQueued, .full, .finishing, .finishingFull: false
            case .finished, .closed, .closedAfterFinish: nil
            }
        #expect(machine.replied(byteCount: 3) == expected)
        #expect(machine.unwrittenByteCount == before + (expected == nil ? 0 : 3))
    }

    @Test func waitersForRoomContinueWithoutBytes() {
        var machine = Machine(marks: WaterMarks(low: 10, high: 20))
        #expect(machine.offeredNow(byteCount: 25) == .accept(scheduleFlush: true))
        #expect(machine.flushStarted() == .write)
        #expect(machine.roomRequested() == .wait(id: 1))
        #expect(machine.offeredNow(byteCount: 1) == .noRoom)
        #expect(machine.roomRequested() == .wait(id: 2))
        #expect(machine.written() == .init(admitted: [1, 2]), "there is nothing to write")
        #expect(machine.offeredNow(byteCount: 1) == .accept(scheduleFlush: true))
    }

    /// Senders have their turns, however many appended bytes there are.
    @Test func repliesDoNotHoldUpWhoWaits() {
        var machine = Machine(marks: WaterMarks(low: 10, high: 20))
        #expect(machine.offeredNow(byteCount: 25) == .accept(scheduleFlush: true))
        #expect(machine.flushStarted() == .write)
        #expect(machine.offered(byteCount: 15) == .wait(id: 1))
        #expect(machine.offered(byteCount: 15) == .wait(id: 2))
        #expect(machine.offered(byteCount: 15) == .wait(id: 3))
        #expect(machine.replied(byteCount: 30) == false)
        #expect(machine.written() == .init(admitted: [1, 2], scheduleFlush: true), "as without the replies")
        #expect(machine.flushStarted() == .write)
        #expect(machine.replied(byteCount: 11) == false)
        #expect(machine.written() == .init(admitted: [3], scheduleFlush: true))
    }

    @Test func appendedBytesDoNotWaitForRoom() {
        var machine = machine(.full)
        #expect(machine.appended(byteCount: 3) == false)
        #expect(machine.written() == .init(admitted: [1, 2], scheduleFlush: true), "3 + 15 leave room for one more")
        #expect(machine.unwrittenByteCount == 33)
    }

    /// A frame over the high mark passes when the queue has room at all.
    @Test func aFrameLargerThanTheQueueIsAccepted() {
        var machine = machine(.idle)
        #expect(machine.offered(byteCount: 1000) == .accept(scheduleFlush: true))
        #expect(machine.offered(byteCount: 1000) == .wait(id: 1))
        #expect(machine.flushStarted() == .write)
        #expect(machine.written() == .init(admitted: [1], scheduleFlush: true))
    }
}
