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
        #expect(describe(make { _ in }.batchRequested()) == "nothing")
        #expect(describe(make { _ in }.consumerWillWait(1)) == "wait")
        #expect(make { _ in }.consumerCancelled(1) == false)
    }

    @Test func emptyWithAConsumerThatWaits() {
        func waiting() -> Box { make { _ = $0.consumerWillWait(1) } }
        #expect(waiting().received([1], cost: 1) == .init(wakeConsumer: true, demand: .more))
        #expect(waiting().received(nil, cost: 0) == .init(wakeConsumer: false, demand: .more), "nothing to wake for")
        #expect(waiting().finished(throwing: nil) == true)
        #expect(describe(waiting().consumerWillWait(2)) == "refuse")
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
        #expect(describe(holding().batchRequested()) == "[1, 2]")
        #expect(describe(holding().consumerWillWait(1)) == "ask again")
    }

    @Test func paused() {
        func paused() -> Box {
            make {
                _ = $0.received([1], cost: 9); _ = $0.received([2], cost: 11)
            }
        }
        #expect(paused().received([3], cost: 1) == .init(wakeConsumer: false, demand: .pause), "what was already read")
        #expect(describe(paused().batchRequested()) == "[1]", "11 are left, over the low mark")
        let queue = paused()
        _ = queue.batchRequested()
        #expect(describe(queue.batchRequested()) == "[2] and resume")
        #expect(queue.received([3], cost: 1) == .init(wakeConsumer: false, demand: .more))
        #expect(describe(queue.batchRequested()) == "[3]", "it is told to resume once")
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
        #expect(describe(ended().consumerWillWait(1)) == "ask again")
        let queue = ended()
        _ = queue.finished(throwing: .init(code: .closedByPeer, message: ""))
        #expect(describe(queue.batchRequested()) == "[1]", "what came before is delivered")
        #expect(describe(queue.batchRequested()) == "nothing")
        #expect(describe(queue.consumerWillWait(1)) == end, "the first end counts")
        #expect(describe(queue.consumerWillWait(1)) == end, "and stays")
    }

    @Test func discardingReturnsWhatNobodyTook() {
        let queue = make {
            _ = $0.received([1, 2], cost: 2)
            _ = $0.received([3], cost: 1)
            _ = $0.received([4, 5], cost: 2)
            _ = $0.batchRequested()
        }
        #expect(queue.discarded() == [[3], [4, 5]])
        #expect(queue.discarded() == [])
        #expect(describe(queue.batchRequested()) == "nothing")
        #expect(
            make {
                _ = $0.received([1], cost: 1); _ = $0.batchRequested()
            }.discarded() == []
        )
    }

    // MARK: Sequences

    @Test func oneOversizedBatchPausesAndResumes() {
        let queue = make { _ in }
        #expect(queue.received([1], cost: 1000).demand == .pause)
        #expect(describe(queue.batchRequested()) == "[1] and resume")
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
                guard let delivery = queue.batchRequested() else { break }
                #expect(delivery.batch == [expected, expected + 1])
                expected += 2
            }
        }
        while let delivery = queue.batchRequested() {
            #expect(delivery.batch == [expected, expected + 1])
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

    private func describe(_ delivery: Machine.Delivery?) -> String {
        delivery.map { "\($0.batch)\($0.resumesReading ? " and resume" : "")" } ?? "nothing"
    }

    private func describe(_ action: Machine.WaitAction) -> String {
        switch action {
        case .wait: "wait"
        case .askAgain: "ask again"
        case .refuse: "refuse"
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
        func batchRequested() -> Machine.Delivery? { machine.batchRequested() }
        func consumerWillWait(_ id: UInt64) -> Machine.WaitAction { machine.consumerWillWait(id) }
        func consumerCancelled(_ id: UInt64) -> Bool { machine.consumerCancelled(id) }
    }
}
