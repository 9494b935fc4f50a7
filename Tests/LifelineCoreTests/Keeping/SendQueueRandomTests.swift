import LifelineCore
import LifelineTestSupport
import Testing

/// Random operations against a plain list.
@Suite struct SendQueueRandomTests {
    /// The waiting sends, as a list. A send that ends is removed.
    private struct Model {
        struct Entry {
            let id: UInt64
            let byteCount: Int
            let policy: SendPolicy
            let deadline: MonotonicTime?
        }
        let maximumCount: Int
        let maximumByteCount: Int
        var entries: [Entry] = []
        var isReady = false
        var closeCode: ConnectionError.Code?
        var lastID: UInt64 = 0
        var inHand: UInt64?
        var isCancelled = false

        var byteCount: Int { entries.reduce(0) { $0 + $1.byteCount } }
        var nextDeadline: MonotonicTime? { entries.filter { $0.id != inHand }.compactMap(\.deadline).min() }

        mutating func end(_ id: UInt64, _ outcome: SendQueue.Outcome) -> SendQueue.Ended {
            entries.removeAll { $0.id == id }
            if inHand == id { inHand = nil }
            return SendQueue.Ended(id: id, outcome: outcome)
        }
    }

    private struct Run {
        var queue: SendQueue
        var model: Model
        var random: SeededGenerator
        var now = at(0)
        /// The outcome of each send that waited.
        var outcomes: [UInt64: SendQueue.Outcome] = [:]
        /// In the order in which they were sent.
        var sent: [UInt64] = []

        init(seed: UInt64) {
            random = SeededGenerator(seed: seed)
            var configuration = SendQueueConfiguration()
            // Small limits, so that they are reached, and large ones, so that ended sends are cleaned up.
            configuration.maximumMessageCount = [2, 10, 500].randomElement(using: &random)!
            configuration.maximumByteCount = [50, 1000, 100_000].randomElement(using: &random)!
            queue = SendQueue(configuration)
            model = Model(
                maximumCount: configuration.maximumMessageCount,
                maximumByteCount: configuration.maximumByteCount
            )
        }

        mutating func record(_ ended: [SendQueue.Ended]) {
            for end in ended {
                #expect(outcomes.updateValue(end.outcome, forKey: end.id) == nil, "\(end.id) ended twice")
                if end.outcome == .sent { sent.append(end.id) }
            }
        }

        mutating func offer() {
            let limit = Duration.milliseconds(Int.random(in: 0...5000, using: &random))
            let policy = [SendPolicy.wait(timeout: limit), .drop(after: limit), .fail].randomElement(using: &random)!
            let byteCount = Int.random(in: 0...60, using: &random)
            var expected = SendQueue.OfferAction.wait(model.lastID + 1)
            if let code = model.closeCode {
                expected = .fail(code)
            } else if model.isReady, model.entries.isEmpty {
                expected = .sendNow
            } else if !model.isReady, policy == .fail {
                expected = .fail(.notConnected)
            } else if model.entries.count == model.maximumCount || model.byteCount + byteCount > model.maximumByteCount
            {
                expected = .fail(.sendQueueFull)
            } else {
                model.lastID += 1
                let deadline = policy == .fail ? nil : now + limit
                model.entries.append(
                    .init(id: model.lastID, byteCount: byteCount, policy: policy, deadline: deadline)
                )
            }
            #expect(queue.offered(byteCount: byteCount, policy: policy, now: now) == expected)
        }

        mutating func cancel() {
            let id = UInt64.random(in: 0...(model.lastID + 1), using: &random)
            if model.inHand == id {
                model.isCancelled = true
                #expect(queue.cancelled(id) == .withdraw)
            } else if model.entries.contains(where: { $0.id == id }) {
                let end = model.end(id, .cancelled)
                #expect(queue.cancelled(id) == .end(end))
                record([end])
            } else {
                #expect(queue.cancelled(id) == .none)
            }
        }

        mutating func loseConnection() {
            let failing =
                model.isReady ? model.entries.filter { $0.policy == .fail && $0.id != model.inHand }.map(\.id) : []
            model.isReady = false
            let ended = failing.map { model.end($0, .failed(.notConnected)) }
            #expect(queue.becameUnready() == ended)
            record(ended)
        }

        mutating func takeNext() {
            let expected = model.isReady && model.inHand == nil ? model.entries.first?.id : nil
            #expect(queue.next() == expected)
            if let expected {
                model.inHand = expected
                model.isCancelled = false
            }
        }

        mutating func handOver(isAccepted: Bool) {
            let held = model.inHand ?? 0
            let id = Int.random(in: 0..<8, using: &random) == 0 ? model.lastID : held
            var expected: SendQueue.Ended?
            if id == model.inHand {
                let isImpatient = model.entries.first { $0.id == id }?.policy == .fail
                if isAccepted {
                    expected = model.end(id, .sent)
                } else if model.isCancelled {
                    expected = model.end(id, .cancelled)
                } else if let code = model.closeCode {
                    expected = model.end(id, .failed(code))
                } else if !model.isReady, isImpatient {
                    expected = model.end(id, .failed(.notConnected))
                } else {
                    model.inHand = nil
                }
            }
            #expect((isAccepted ? queue.handedOver(id) : queue.handOverFailed(id)) == expected)
            if let expected { record([expected]) }
        }

        mutating func passTime() {
            now = now + .milliseconds(Int.random(in: 0...800, using: &random))
            let due = model.entries.filter { $0.id != model.inHand && $0.deadline.map { $0 <= now } ?? false }
            let ended = due.sorted { ($0.deadline!, $0.id) < ($1.deadline!, $1.id) }.map { entry in
                let isDropped = if case .drop = entry.policy.kind { true } else { false }
                return model.end(entry.id, isDropped ? .dropped : .failed(.sendTimedOut))
            }
            #expect(queue.timerFired(now: now) == ended)
            record(ended)
        }

        mutating func close() {
            let code = ConnectionError.Code.closedLocally
            let failing = model.closeCode == nil ? model.entries.map(\.id).filter { $0 != model.inHand } : []
            let ended = failing.map { model.end($0, .failed(code)) }
            if model.closeCode == nil { model.closeCode = code }
            model.isReady = false
            #expect(queue.closed(ConnectionError(code: code, message: "")) == ended)
            record(ended)
        }

        mutating func step() {
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<40: offer()
            case 40..<48: cancel()
            case 48..<52:
                if model.closeCode == nil { model.isReady = true }
                queue.becameReady()
            case 52..<55: loseConnection()
            case 55..<73: takeNext()
            case 73..<89: handOver(isAccepted: true)
            case 89..<93: handOver(isAccepted: false)
            default: passTime()
            }
            #expect(queue.count == model.entries.count)
            #expect(queue.byteCount == model.byteCount)
            #expect(queue.nextDeadline == model.nextDeadline)
            #expect(queue.count <= model.maximumCount && queue.byteCount <= model.maximumByteCount)
        }
    }

    @Test(arguments: 0..<200 as Range<UInt64>)
    func randomOperations(seed: UInt64) {
        var run = Run(seed: seed)
        for _ in 0..<400 { run.step() }
        run.close()
        for _ in 0..<20 { run.step() }
        while run.model.inHand != nil { run.handOver(isAccepted: false) }
        #expect(run.queue.count == 0)
        #expect(run.outcomes.count == run.model.lastID, "each has ended")
        #expect(run.sent == run.sent.sorted(), "first in, first out")
    }

    /// Most sends are cancelled while the first one waits. The memory depends on the waiting sends, whichever deadline
    /// is the earliest.
    @Test(arguments: [Duration.seconds(9), .seconds(90)])
    func manyThatGiveUpBehindOneThatWaits(timeToLive: Duration) {
        var configuration = SendQueueConfiguration()
        configuration.maximumMessageCount = 3
        var queue = SendQueue(configuration)
        #expect(queue.offered(byteCount: 1, policy: .wait(timeout: .seconds(30)), now: at(0)) == .wait(1))
        for id in 2...10_000 as ClosedRange<UInt64> {
            #expect(queue.offered(byteCount: 1, policy: .drop(after: timeToLive), now: at(0)) == .wait(id))
            #expect(queue.cancelled(id) == .end(.init(id: id, outcome: .cancelled)))
            #expect(keptPlaceCount(in: queue) <= 2 * 3 + 33)
        }
        #expect(queue.nextDeadline == at(30))
    }
}
