import LifelineCore
import Testing

@testable import LifelineTransport

private typealias Machine = BatchQueueStateMachine<[Int]>

/// The marks are 10 and 20 throughout.
@Suite struct BatchQueueStateMachineTests {
    // MARK: State × event

    @Test func emptyAndOpen() {
        #expect(make { _ in }.received([1], cost: 1) == .init(wakeConsumer: false, demand: .more))
        #expect(make { _ in }.received(nil, cost: 0) == .init(wakeConsumer: false, demand: .more))
        #expect(make { _ in }.finished(throwing: nil) == false)
        #expect(describe(make { _ in }.nextRequested()) == "wait")
        #expect(make { _ in }.consumerWillWait(1) == .wait)
        #expect(make { _ in }.consumerCancelled(1) == false)
    }

    @Test func emptyWithAConsumerThatWaits() {
        func waiting() -> Box { make { _ = $0.consumerWillWait(1) } }
        #expect(waiting().received([1], cost: 1) == .init(wakeConsumer: true, demand: .more))
        #expect(waiting().received(nil, cost: 0) == .init(wakeConsumer: false, demand: .more), "nothing to wake for")
        #expect(waiting().finished(throwing: nil) == true)
        #expect(waiting().consumerWillWait(2) == .refuse)
        #expect(waiting().consumerCancelled(1) == true)
        #expect(waiting().consumerCancelled(2) == false, "another consumer's cancellation does not end this wait")
    }

    @Test func holdingBatches() {
        func holding() -> Box {
            make {
                _ = $0.received([1, 2], cost: 8); _ = $0.received([3], cost: 7)
            }
        }
        #expect(holding().received([4], cost: 4) == .init(wakeConsumer: false, demand: .more))
        #expect(holding().received([4], cost: 5) == .init(wakeConsumer: false, demand: .pause))
        #expect(holding().finished(throwing: nil) == false)
        #expect(describe(holding().nextRequested()) == "[1, 2]")
        #expect(holding().consumerWillWait(1) == .askAgain)
    }

    @Test func paused() {
        func paused() -> Box {
            make {
                _ = $0.received([1], cost: 9); _ = $0.received([2], cost: 11)
            }
        }
        #expect(paused().received([3], cost: 1) == .init(wakeConsumer: false, demand: .pause), "what was already read")
        #expect(describe(paused().nextRequested()) == "[1]", "11 are left, over the low mark")
        let queue = paused()
        _ = queue.nextRequested()
        #expect(describe(queue.nextRequested()) == "[2] and resume")
        #expect(queue.received([3], cost: 1) == .init(wakeConsumer: false, demand: .more))
        #expect(describe(queue.nextRequested()) == "[3]", "it is told to resume once")
    }

    @Test(arguments: [nil, ConnectionError(code: .ioError, message: "")])
    func ended(error: ConnectionError?) {
        let end = error == nil ? "end" : "ioError"
        func ended() -> Box {
            make {
                _ = $0.received([1], cost: 1); _ = $0.finished(throwing: error)
            }
        }
        #expect(ended().received([2], cost: 1) == .init(wakeConsumer: false, demand: .refused))
        #expect(ended().finished(throwing: .init(code: .closedByPeer, message: "")) == false)
        #expect(ended().consumerWillWait(1) == .askAgain)
        let queue = ended()
        _ = queue.finished(throwing: .init(code: .closedByPeer, message: ""))
        #expect(describe(queue.nextRequested()) == "[1]", "what came before is delivered")
        #expect(describe(queue.nextRequested()) == end, "the first end counts")
        #expect(describe(queue.nextRequested()) == end, "and stays")
        #expect(queue.consumerWillWait(1) == .askAgain)
    }

    @Test func discardingReturnsWhatNobodyTook() {
        let queue = make {
            _ = $0.received([1, 2], cost: 2)
            _ = $0.received([3], cost: 1)
            _ = $0.received([4, 5], cost: 2)
            _ = $0.nextRequested()
        }
        #expect(queue.discarded() == [[3], [4, 5]])
        #expect(queue.discarded() == [])
        #expect(describe(queue.nextRequested()) == "wait")
        #expect(
            make {
                _ = $0.received([1], cost: 1); _ = $0.nextRequested()
            }.discarded() == []
        )
    }

    // MARK: Sequences

    @Test func oneOversizedBatchPausesAndResumes() {
        let queue = make { _ in }
        #expect(queue.received([1], cost: 1000).demand == .pause)
        #expect(describe(queue.nextRequested()) == "[1] and resume")
    }

    @Test func thousandsOfBatchesKeepTheirOrder() {
        let queue = make { _ in }
        var received = 0
        var expected = 0
        for round in 0..<3000 {
            for _ in 0..<(round % 7) {
                _ = queue.received([received, received + 1], cost: 1)
                received += 2
            }
            for _ in 0..<(round % 5) {
                guard case .deliver(let elements, _) = queue.nextRequested() else { break }
                #expect(elements == [expected, expected + 1])
                expected += 2
            }
        }
        while case .deliver(let elements, _) = queue.nextRequested() {
            #expect(elements == [expected, expected + 1])
            expected += 2
        }
        #expect(expected == received)
    }

    // MARK: -

    private func make(_ prepare: (inout Machine) -> Void) -> Box {
        var machine = Machine(marks: WaterMarks(low: 10, high: 20))
        prepare(&machine)
        return Box(machine)
    }

    private func describe(_ action: Machine.NextAction) -> String {
        switch action {
        case .deliver(let output, let resumes): "\(output)\(resumes ? " and resume" : "")"
        case .wait: "wait"
        case .end(let error): error.map { "\($0.code)" } ?? "end"
        }
    }

    /// Lets a machine be used inside an expectation.
    private final class Box {
        private var machine: Machine
        init(_ machine: Machine) { self.machine = machine }
        func received(_ batch: [Int]?, cost: Int) -> Machine.ReceivedAction { machine.received(batch, cost: cost) }
        func finished(throwing error: ConnectionError?) -> Bool { machine.finished(throwing: error) }
        func discarded() -> [[Int]] { machine.discarded() }
        func nextRequested() -> Machine.NextAction { machine.nextRequested() }
        func consumerWillWait(_ id: UInt64) -> Machine.WaitAction { machine.consumerWillWait(id) }
        func consumerCancelled(_ id: UInt64) -> Bool { machine.consumerCancelled(id) }
    }
}
