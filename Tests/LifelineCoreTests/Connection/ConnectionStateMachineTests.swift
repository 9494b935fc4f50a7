import Testing

@testable import LifelineCore

private typealias Machine = ConnectionStateMachine

@Suite struct ConnectionStateMachineTests {
    private let reason = ConnectionError(code: .ioError, message: "")

    /// Every state: the input, whether the output is open, and whether a close is under way.
    enum State: CaseIterable, Sendable {
        case open, openStopped, openInputEnded, openOutputEnded, openStoppedOutputEnded, openBothEnded
        case closing, closingInputEnded, closingOutputEnded, closed, closedAfterFailure
        /// The peer had ended before the close was asked for.
        case inputEndedThenClosing
    }

    private func machine(_ state: State) -> Machine {
        var machine = Machine()
        switch state {
        case .open: break
        case .openStopped: _ = machine.stopReceivingRequested()
        case .openInputEnded: _ = machine.inputEnded()
        case .openOutputEnded: _ = machine.outputEnded()
        case .openStoppedOutputEnded:
            _ = machine.stopReceivingRequested()
            _ = machine.outputEnded()
        case .openBothEnded:
            _ = machine.inputEnded()
            _ = machine.outputEnded()
        case .closing: _ = machine.closeRequested()
        case .closingInputEnded:
            _ = machine.closeRequested()
            _ = machine.inputEnded()
        case .closingOutputEnded:
            _ = machine.closeRequested()
            _ = machine.outputEnded()
        case .inputEndedThenClosing:
            _ = machine.inputEnded()
            _ = machine.closeRequested()
        case .closed:
            _ = machine.closeRequested()
            _ = machine.becameInactive()
        case .closedAfterFailure:
            _ = machine.failed(reason)
            _ = machine.becameInactive()
        }
        return machine
    }

    @Test(arguments: State.allCases)
    func receivedBytes(state: State) {
        let expected: Machine.BytesAction =
            switch state {
            case .open, .openOutputEnded: .parse
            // The machine looks only for pings, and only while they can be answered.
            case .openStopped: .answer
            default: .discard
            }
        #expect(machine(state).receivedBytes() == expected)
        var failed = machine(state)
        _ = failed.failed(reason)
        #expect(failed.receivedBytes() == .discard, "nothing is parsed after a failure")
    }

    @Test(arguments: State.allCases)
    func inputEnded(state: State) {
        var machine = machine(state)
        let outputHasEnded = [.openOutputEnded, .openStoppedOutputEnded, .openBothEnded, .closingOutputEnded].contains(
            state
        )
        let receives = [.open, .openOutputEnded].contains(state)
        #expect(machine.inputEnded() == .init(finishInput: receives ? .byPeer : nil, closeChannel: outputHasEnded))
    }

    @Test(arguments: State.allCases)
    func outputEnded(state: State) {
        var machine = machine(state)
        let inputHasEnded = [.openInputEnded, .openBothEnded, .closingInputEnded, .inputEndedThenClosing].contains(
            state
        )
        #expect(machine.outputEnded() == .init(closeChannel: inputHasEnded))
    }

    @Test(arguments: State.allCases)
    func stopReceivingRequested(state: State) {
        var machine = machine(state)
        let receives = [.open, .openOutputEnded].contains(state)
        #expect(machine.stopReceivingRequested() == .init(finishInput: receives ? .byUs : nil))
        #expect(machine.stopReceivingRequested() == .init(), "once")
    }

    @Test(arguments: State.allCases)
    func closeRequested(state: State) {
        var machine = machine(state)
        let expected: Machine.CloseAction =
            switch state {
            case .open, .openOutputEnded: .begin(.init(finishInput: .byUs))
            case .openStopped, .openInputEnded, .openStoppedOutputEnded: .begin(.init())
            case .openBothEnded: .begin(.init(closeChannel: true))
            case .closing, .closingInputEnded, .closingOutputEnded, .inputEndedThenClosing, .closed,
                .closedAfterFailure:
                .none
            }
        #expect(machine.closeRequested() == expected)
        #expect(machine.closeRequested() == .none)
    }

    @Test(arguments: State.allCases, [false, true])
    func closeTimerEnded(state: State, madeProgress: Bool) {
        var machine = machine(state)
        let expected: Machine.TimerAction =
            switch state {
            case .closing, .closingInputEnded, .inputEndedThenClosing: madeProgress ? .wait : .closeChannel
            case .closingOutputEnded: .closeChannel
            default: .none
            }
        #expect(machine.closeTimerEnded(madeProgress: madeProgress) == expected)
        let gaveUpWriting = expected == .closeChannel && state != .closingOutputEnded
        #expect((machine.failure?.code == .closedLocally) == gaveUpWriting)
        #expect(!machine.failedInUse || state == .closedAfterFailure)
    }

    @Test(arguments: State.allCases)
    func failed(state: State) {
        var machine = machine(state)
        let isClosed = [.closed, .closedAfterFailure].contains(state)
        let isClosing = [.closing, .closingInputEnded, .closingOutputEnded, .inputEndedThenClosing].contains(state)
        #expect(machine.failed(reason) == !isClosed)
        #expect(machine.failed(.init(code: .closedByPeer, message: "")) == false, "the first reason counts")
        #expect(machine.failure?.code == (state == .closed ? nil : .ioError))
        #expect(machine.failedInUse == (state != .closed && !isClosing))
    }

    @Test(arguments: State.allCases)
    func becameInactive(state: State) {
        var machine = machine(state)
        let receives = [.open, .openOutputEnded].contains(state)
        #expect(machine.becameInactive() == .init(finishInput: receives ? .byPeer : nil))
        let wasCut = [.open, .openStopped, .openInputEnded].contains(state)
        let code: ConnectionError.Code? = wasCut ? .closedByPeer : state == .closedAfterFailure ? .ioError : nil
        #expect(machine.failure?.code == code)
        let endedInOrder: [State] = [.openOutputEnded, .openStoppedOutputEnded, .openBothEnded, .closingOutputEnded]
        #expect(machine.endedInOrder == endedInOrder.contains(state))
        #expect(machine.becameInactive() == .init(), "once")
        #expect(machine.endedInOrder == endedInOrder.contains(state))
    }

    @Test func aPeerThatIsLeftHasNotEndedInOrder() {
        var machine = machine(.closingOutputEnded)
        #expect(machine.closeTimerEnded(madeProgress: true) == .closeChannel)
        _ = machine.becameInactive()
        #expect(!machine.endedInOrder)
        #expect(machine.failure == nil)
    }

    @Test(arguments: State.allCases)
    func failuresAreNoOrder(state: State) {
        var machine = machine(state)
        guard machine.failed(reason) else { return }
        _ = machine.becameInactive()
        #expect(!machine.endedInOrder)
    }
}
