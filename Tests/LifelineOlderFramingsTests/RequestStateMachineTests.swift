import LifelineCore
import LifelineOlderFramings
import Testing

@Suite struct RequestStateMachineTests {
    private typealias Machine = RequestStateMachine<String, Int>

    /// The phases of a request. In all but the last two, it waits for its answer.
    enum Phase: CaseIterable {
        case begun, accepted, writtenBeforeAccepted, written, givenUp, givenUpWhenWritten
    }

    enum Event: CaseIterable {
        case answer, cancelled, timer, sendCancelled, sendTooLate, sendRefused
        case accepted, acceptedByClosed, wrote, wroteAfterInputEnded, inputEnded, inputFailed, connectionClosed, closed
    }

    private struct Refused: Error {}

    /// The outcome of the request, and whether another one may begin if the limit is one; nil: impossible.
    private func expectation(_ event: Event) -> [String?] {
        switch event {
        // The outcomes, in the order of the phases.
        case .answer: ["push", "push", "answered +", "answered +", "push", "drop +"]
        case .cancelled: ["cancelled", "cancelled", "cancelled", "cancelled", "-", "-"]
        case .timer: ["timedOut", "timedOut", "timedOut", "timedOut", "-", "-"]
        case .sendCancelled: ["cancelled +", nil, nil, nil, "- +", nil]
        case .sendTooLate: ["timedOut +", nil, nil, nil, "- +", nil]
        case .sendRefused: ["notSent +", nil, nil, nil, "- +", nil]
        case .accepted: ["-", nil, "-", nil, "-", nil]
        case .acceptedByClosed: ["connectionLost +", nil, "connectionLost +", nil, "- +", nil]
        case .wrote: ["-", "-", nil, nil, "-", nil]
        case .wroteAfterInputEnded: ["connectionLost +", "connectionLost +", nil, nil, "- +", nil]
        case .inputEnded, .connectionClosed:
            ["-", "connectionLost +", "connectionLost +", "connectionLost +", "-", "- +"]
        case .inputFailed: ["-", "-", "-", "-", "-", "-"]
        case .closed: ["notSent", "connectionLost", "connectionLost", "connectionLost", "-", "-"]
        }
    }

    @Test(arguments: Phase.allCases, Event.allCases) func everyEventInEveryPhase(phase: Phase, event: Event) throws {
        let index = try #require(Phase.allCases.firstIndex(of: phase))
        guard let expected = expectation(event)[index] else { return }
        var machine = Machine(AnswerMatching(isOrdered: true), maximumCount: 1, takesPushes: true)
        machine.connectionBegan()
        let request = try machine.began("a", answerType: "q", deadline: at(5))
        switch phase {
        case .begun: break
        case .accepted: #expect(machine.accepted(request.id, by: 1) == nil)
        case .writtenBeforeAccepted: #expect(machine.wrote(serial: request.serial).isEmpty)
        case .written, .givenUpWhenWritten:
            #expect(machine.accepted(request.id, by: 1) == nil)
            #expect(machine.wrote(serial: request.serial).isEmpty)
        case .givenUp: break
        }
        if phase == .givenUp || phase == .givenUpWhenWritten { #expect(machine.cancelled(request.id) != nil) }
        var outcome = perform(event, request, on: &machine)
        if (try? machine.began("b", answerType: "q", deadline: at(9))) != nil { outcome += " +" }
        #expect(outcome == expected)
    }

    private func perform(_ event: Event, _ request: Machine.BeginAction, on machine: inout Machine) -> String {
        let id = request.id
        let ended: [Machine.Ended?]
        switch event {
        case .answer:
            switch machine.received(.ofType("q")) {
            case .answer(let waiter): return waiter == "a" ? "answered" : "answered \(waiter)"
            case .drop: return "drop"
            case .push: return "push"
            }
        case .cancelled: ended = [machine.cancelled(id)]
        case .timer: ended = machine.timerFired(now: at(5))
        case .sendCancelled: ended = [machine.sendFailed(id, CancellationError())]
        case .sendTooLate: ended = [machine.sendFailed(id, ConnectionError(code: .sendTimedOut, message: ""))]
        case .sendRefused: ended = [machine.sendFailed(id, Refused())]
        case .accepted: ended = [machine.accepted(id, by: 1)]
        case .acceptedByClosed:
            let lost = machine.connectionClosed(1)
            machine.connectionBegan()
            ended = lost + [machine.accepted(id, by: 1)]
        case .wrote: ended = machine.wrote(serial: request.serial)
        case .wroteAfterInputEnded:
            ended = machine.inputEnded(.regular(reason)) + machine.wrote(serial: request.serial)
        case .inputEnded: ended = machine.inputEnded(.regular(reason))
        case .inputFailed: ended = machine.inputEnded(.failed(reason))
        case .connectionClosed: ended = machine.connectionClosed(1)
        case .closed: ended = machine.closed(reason)
        }
        let codes = ended.compactMap { $0.map { "\($0.error.code)" } }
        return codes.isEmpty ? "-" : codes.joined(separator: " ")
    }

    private let reason = ConnectionError(code: .closedByPeer, message: "")

    /// Each loss has its reason, even if a later connection exists when it is noticed.
    @Test(arguments: [ConnectionError.Code.closedByPeer, .heartbeatTimeout]) func lossesHaveCauses(
        code: ConnectionError.Code
    ) throws {
        var machine = Machine(AnswerMatching(isOrdered: false), maximumCount: 10, takesPushes: true)
        machine.connectionBegan()
        let requests = try (0..<3).map { try machine.began("\($0)", deadline: at(5)) }
        _ = machine.accepted(requests[0].id, by: 1)
        let error = ConnectionError(code: code, message: "")
        var lost = machine.inputEnded(code == .closedByPeer ? .regular(error) : .failed(error))
        lost += machine.wrote(serial: requests[1].serial)
        lost += machine.connectionClosed(1)
        machine.connectionBegan()
        if let ended = machine.accepted(requests[2].id, by: 1) { lost.append(ended) }
        #expect(lost.map(\.waiter).sorted() == ["0", "1", "2"])
        for ended in lost {
            #expect(ended.error.code == .connectionLost && (ended.error.cause as? ConnectionError)?.code == code)
        }
    }

    @Test func afterTheCloseNothingBegins() throws {
        var machine = Machine(AnswerMatching(isOrdered: false), maximumCount: 10, takesPushes: true)
        _ = try machine.began("a", deadline: at(5))
        let ended = machine.closed(ConnectionError(code: .closedLocally, message: ""))
        #expect(ended.map(\.waiter) == ["a"] && ended.map(\.error.code) == [.notSent])
        #expect((ended.first?.error.cause as? ConnectionError)?.code == .closedLocally)
        let error = #expect(throws: RequestError.self) { try machine.began("b", deadline: at(5)) }
        #expect(error?.code == .notSent)
        #expect((error?.cause as? ConnectionError)?.code == .closedLocally)
    }

    @Test func theTimerIsSetToEarlierTimesOnly() throws {
        var machine = Machine(AnswerMatching(isOrdered: false), maximumCount: 10, takesPushes: true)
        #expect(machine.timerWillBeSet() == nil)
        #expect(try machine.began("a", deadline: at(5)).setsTimer)
        #expect(try !machine.began("b", deadline: at(6)).setsTimer)
        #expect(try machine.began("c", deadline: at(4)).setsTimer)
        #expect(machine.timerWillBeSet() == at(4))
        #expect(machine.timerFired(now: at(5)).map(\.waiter) == ["c", "a"])
        #expect(machine.timerWillBeSet() == at(6))
        #expect(try !machine.began("d", deadline: at(6)).setsTimer)
    }

    @Test(arguments: [true, false]) func pushes(areTaken: Bool) {
        var machine = Machine(AnswerMatching(isOrdered: false), maximumCount: 10, takesPushes: areTaken)
        switch machine.received(.push) {
        case .push: #expect(areTaken)
        case .drop: #expect(!areTaken)
        case .answer: Issue.record("nobody has asked")
        }
        #expect(machine.droppedPushCount == (areTaken ? 0 : 1))
    }

    @Test func answersByTheirSerials() throws {
        var machine = Machine(AnswerMatching(isOrdered: false), maximumCount: 10, takesPushes: true)
        let request = try machine.began("a", deadline: at(5))
        let other = try machine.began("b", deadline: at(5))
        guard case .answer("b") = machine.received(.answer(serial: other.serial)) else {
            Issue.record("not the answer")
            return
        }
        _ = machine.cancelled(request.id)
        for (serial, late, unknown) in [(request.serial, 1, 0), (other.serial, 2, 0), (0x9999, 2, 1)] {
            guard case .drop = machine.received(.answer(serial: serial)) else {
                Issue.record("\(serial) is no answer")
                return
            }
            #expect(machine.lateAnswerCount == late && machine.unknownAnswerCount == unknown)
        }
    }
}
