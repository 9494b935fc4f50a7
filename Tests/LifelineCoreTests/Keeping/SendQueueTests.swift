import LifelineCore
import Testing

@Suite struct SendQueueTests {
    /// Three messages or 100 bytes.
    private func queue() -> SendQueue {
        var configuration = SendQueueConfiguration()
        configuration.maximumMessageCount = 3
        configuration.maximumByteCount = 100
        return SendQueue(configuration)
    }

    private func ended(_ id: UInt64, _ outcome: SendQueue.Outcome) -> SendQueue.Ended {
        SendQueue.Ended(id: id, outcome: outcome)
    }

    private let reason = ConnectionError(code: .closedLocally, message: "closed by the test")

    /// Hands over all waiting messages.
    private func drain(_ queue: inout SendQueue) -> [UInt64] {
        var ids: [UInt64] = []
        while let id = queue.next() {
            #expect(queue.handedOver(id) == ended(id, .sent))
            ids.append(id)
        }
        return ids
    }

    @Test func waitingMessagesAreHandedOverInOrder() {
        var queue = queue()
        for id in 1...3 as ClosedRange<UInt64> {
            #expect(queue.offered(byteCount: 10, policy: .wait(), now: at(0)) == .wait(id))
        }
        #expect(queue.next() == nil, "there is no connection")
        queue.becameReady()
        #expect(drain(&queue) == [1, 2, 3])
        #expect(queue.count == 0 && queue.byteCount == 0 && queue.nextDeadline == nil)
    }

    @Test func nothingOvertakesWhatWaits() {
        var queue = queue()
        queue.becameReady()
        #expect(queue.offered(byteCount: 10, policy: .fail, now: at(0)) == .sendNow)
        #expect(queue.becameUnready().isEmpty)
        #expect(queue.offered(byteCount: 10, policy: .wait(), now: at(0)) == .wait(1))
        queue.becameReady()
        #expect(queue.offered(byteCount: 10, policy: .fail, now: at(0)) == .wait(2))
        #expect(queue.next() == 1)
        #expect(queue.next() == nil, "one at a time")
        #expect(queue.offered(byteCount: 10, policy: .wait(), now: at(0)) == .wait(3))
        #expect(queue.handedOver(1) == ended(1, .sent))
        #expect(drain(&queue) == [2, 3])
        #expect(queue.offered(byteCount: 10, policy: .wait(), now: at(0)) == .sendNow)
    }

    @Test func failFailsWithoutConnection() {
        var queue = queue()
        #expect(queue.offered(byteCount: 1, policy: .fail, now: at(0)) == .fail(.notConnected))
        #expect(queue.error(for: .notConnected).code == .notConnected)
    }

    /// The messages are accepted with a connection, which is lost before their turn.
    @Test func failFailsWhenTheConnectionIsLost() {
        var queue = queue()
        #expect(queue.offered(byteCount: 1, policy: .wait(), now: at(0)) == .wait(1))
        queue.becameReady()
        #expect(queue.offered(byteCount: 1, policy: .fail, now: at(0)) == .wait(2))
        #expect(queue.offered(byteCount: 1, policy: .wait(), now: at(0)) == .wait(3))
        #expect(queue.becameUnready() == [ended(2, .failed(.notConnected))])
        #expect(queue.becameUnready().isEmpty)
        queue.becameReady()
        #expect(drain(&queue) == [1, 3])
    }

    @Test func theBoundsHold() {
        var queue = queue()
        #expect(queue.offered(byteCount: 101, policy: .wait(), now: at(0)) == .fail(.sendQueueFull))
        #expect(queue.offered(byteCount: .max, policy: .wait(), now: at(0)) == .fail(.sendQueueFull))
        #expect(queue.offered(byteCount: 99, policy: .wait(), now: at(0)) == .wait(1))
        #expect(queue.offered(byteCount: 2, policy: .wait(), now: at(0)) == .fail(.sendQueueFull))
        #expect(queue.offered(byteCount: .max, policy: .wait(), now: at(0)) == .fail(.sendQueueFull))
        #expect(queue.offered(byteCount: 1, policy: .wait(), now: at(0)) == .wait(2))
        #expect(queue.offered(byteCount: 0, policy: .wait(), now: at(0)) == .wait(3))
        #expect(queue.offered(byteCount: 0, policy: .wait(), now: at(0)) == .fail(.sendQueueFull))
        #expect(queue.error(for: .sendQueueFull).message.contains("3 messages or 100 bytes"))
        #expect(queue.cancelled(1) == .end(ended(1, .cancelled)))
        #expect(queue.offered(byteCount: 99, policy: .wait(), now: at(0)) == .wait(4))
        #expect(queue.byteCount == 100 && queue.count == 3)
    }

    @Test func absurdBoundsTakeNothing() {
        var configuration = SendQueueConfiguration()
        configuration.maximumMessageCount = .min
        configuration.maximumByteCount = .min
        var queue = SendQueue(configuration)
        #expect(queue.offered(byteCount: 0, policy: .wait(), now: at(0)) == .fail(.sendQueueFull))
        queue.becameReady()
        #expect(queue.offered(byteCount: 10, policy: .wait(), now: at(0)) == .sendNow)
    }

    @Test func deadlines() {
        var queue = queue()
        #expect(queue.offered(byteCount: 1, policy: .wait(timeout: .seconds(9)), now: at(0)) == .wait(1))
        #expect(queue.offered(byteCount: 1, policy: .drop(after: .seconds(5)), now: at(0)) == .wait(2))
        #expect(queue.offered(byteCount: 1, policy: .wait(timeout: .seconds(5)), now: at(0)) == .wait(3))
        #expect(queue.nextDeadline == at(5))
        #expect(queue.timerFired(now: at(4.999)).isEmpty)
        #expect(queue.timerFired(now: at(5)) == [ended(2, .dropped), ended(3, .failed(.sendTimedOut))])
        #expect(queue.nextDeadline == at(9))
        #expect(queue.timerFired(now: at(100)) == [ended(1, .failed(.sendTimedOut))])
        #expect(queue.nextDeadline == nil && queue.count == 0 && queue.byteCount == 0)
    }

    @Test(arguments: [Duration.seconds(-1), .seconds(Int64.min), .zero, .seconds(Int64.max)])
    func absurdTimeoutsCountAsTheNearest(timeout: Duration) {
        let nearest = timeout > .zero ? at(365 * 24 * 3600) : at(0)
        for policy in [SendPolicy.wait(timeout: timeout), .drop(after: timeout)] {
            var queue = queue()
            #expect(queue.offered(byteCount: 1, policy: policy, now: at(0)) == .wait(1))
            #expect(queue.nextDeadline == nearest)
            #expect(queue.offered(byteCount: 1, policy: policy, now: MonotonicTime(nanoseconds: .max)) == .wait(2))
            #expect(queue.timerFired(now: nearest).map(\.id) == [1])
        }
    }

    // MARK: In hand

    /// A handed-over message ends only by the result of the hand-over, so that it is never both dropped and sent.
    @Test func handedOverMessagesDoNotExpire() {
        var queue = queue()
        #expect(queue.offered(byteCount: 1, policy: .drop(after: .seconds(5)), now: at(0)) == .wait(1))
        queue.becameReady()
        #expect(queue.next() == 1)
        #expect(queue.nextDeadline == nil)
        #expect(queue.timerFired(now: at(6)).isEmpty)
        #expect(queue.becameUnready().isEmpty)
        #expect(queue.handOverFailed(1) == nil, "it waits again")
        #expect(queue.nextDeadline == at(5))
        #expect(queue.timerFired(now: at(6)) == [ended(1, .dropped)])
        #expect(queue.handedOver(1) == nil)
        #expect(queue.handOverFailed(1) == nil)
    }

    @Test func aFailedHandOverKeepsItsPlace() {
        var queue = queue()
        for _ in 1...3 { _ = queue.offered(byteCount: 1, policy: .wait(), now: at(0)) }
        queue.becameReady()
        #expect(queue.next() == 1)
        _ = queue.becameUnready()
        #expect(queue.next() == nil)
        queue.becameReady()
        #expect(queue.next() == nil, "the old hand-over is not over")
        #expect(queue.handOverFailed(2) == nil && queue.handedOver(3) == nil, "these are not in hand")
        #expect(queue.handOverFailed(1) == nil)
        #expect(drain(&queue) == [1, 2, 3])
    }

    @Test func handedOverMessagesAreWithdrawn() {
        var queue = queue()
        for _ in 1...2 { _ = queue.offered(byteCount: 1, policy: .wait(), now: at(0)) }
        queue.becameReady()
        #expect(queue.next() == 1)
        #expect(queue.cancelled(1) == .withdraw)
        #expect(queue.cancelled(1) == .withdraw)
        #expect(queue.handOverFailed(1) == ended(1, .cancelled))
        #expect(queue.cancelled(1) == .none)
        #expect(queue.next() == 2)
        #expect(queue.cancelled(2) == .withdraw)
        #expect(queue.handedOver(2) == ended(2, .sent), "the connection was faster")
    }

    @Test func anImpatientOneInHandFailsWithTheConnection() {
        var queue = queue()
        _ = queue.offered(byteCount: 1, policy: .drop(after: .zero), now: at(0))
        queue.becameReady()
        #expect(queue.offered(byteCount: 1, policy: .fail, now: at(0)) == .wait(2))
        #expect(queue.timerFired(now: at(0)) == [ended(1, .dropped)])
        #expect(queue.next() == 2)
        #expect(queue.handOverFailed(2) == nil, "the connection stands: it is to be tried again")
        #expect(queue.next() == 2)
        #expect(queue.becameUnready().isEmpty)
        #expect(queue.handOverFailed(2) == ended(2, .failed(.notConnected)))
        #expect(queue.count == 0)
    }

    // MARK: Closed

    @Test func closingFailsEverythingInOrder() {
        var queue = queue()
        for _ in 1...3 { _ = queue.offered(byteCount: 1, policy: .wait(), now: at(0)) }
        #expect(queue.cancelled(2) == .end(ended(2, .cancelled)))
        #expect(queue.closed(reason) == [ended(1, .failed(.closedLocally)), ended(3, .failed(.closedLocally))])
        #expect(queue.closed(.refused).isEmpty)
        #expect(queue.error(for: .closedLocally).message == reason.message)
        queue.becameReady()
        #expect(queue.offered(byteCount: 1, policy: .wait(), now: at(0)) == .fail(.closedLocally))
        #expect(queue.next() == nil && queue.nextDeadline == nil && queue.becameUnready().isEmpty)
    }

    @Test(arguments: [false, true])
    func closingLeavesTheOneInHandToItsHandOver(isAccepted: Bool) {
        var queue = queue()
        for _ in 1...2 { _ = queue.offered(byteCount: 1, policy: .wait(), now: at(0)) }
        queue.becameReady()
        #expect(queue.next() == 1)
        #expect(queue.closed(reason) == [ended(2, .failed(.closedLocally))])
        if isAccepted {
            #expect(queue.handedOver(1) == ended(1, .sent))
        } else {
            #expect(queue.handOverFailed(1) == ended(1, .failed(.closedLocally)))
        }
        #expect(queue.count == 0 && queue.byteCount == 0)
    }
}
