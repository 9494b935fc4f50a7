import LifelineCore
import LifelineTestSupport
import Testing

@Suite struct RequestQueueTests {
    private var queue = RequestQueue<String, String>(maximumCount: 10)

    private mutating func begin(_ waiter: String, _ kind: String? = nil, deadline: MonotonicTime? = nil) throws
        -> UInt64
    {
        try queue.began(waiter, answerKind: kind, deadline: deadline)
    }

    @Test mutating func firstInFirstOut() throws {
        for waiter in ["a", "b", "c"] { _ = try begin(waiter) }
        for waiter in ["a", "b", "c"] { #expect(queue.received("x").answer == waiter) }
        #expect(queue.received("x").isPush)
        #expect(queue.count == 0)
        #expect(queue.expectedCount == 0)
    }

    @Test mutating func aKindThatIsNotExpectedIsAPush() throws {
        _ = try begin("a", "pong")
        _ = try begin("b", "list")
        #expect(queue.received("news").isPush)
        #expect(queue.received("list").isPush, "not its turn yet")
        #expect(queue.received("pong").answer == "a")
        #expect(queue.received("pong").isPush)
        #expect(queue.received("list").answer == "b")
    }

    /// The answer to one that was given up is not given to the next one.
    @Test mutating func whoGivesUpKeepsItsPlace() throws {
        let first = try begin("a", deadline: at(1))
        _ = try begin("b", deadline: at(2))
        let third = try begin("c")
        _ = try begin("d")
        #expect(queue.timerFired(now: at(1)).map(\.waiter) == ["a"])
        #expect(queue.cancelled(third) == "c")
        #expect(queue.cancelled(third) == nil)
        #expect(queue.cancelled(first) == nil)
        #expect(queue.count == 2)
        #expect(queue.expectedCount == 4)
        #expect(queue.received("x").isLate)
        #expect(queue.received("x").answer == "b")
        #expect(queue.received("x").isLate)
        #expect(queue.received("x").answer == "d")
        #expect(queue.lateResponseCount == 2)
        #expect(queue.received("x").isPush)
    }

    @Test mutating func aPlaceExpectsItsKind() throws {
        let id = try begin("a", "pong")
        #expect(queue.cancelled(id) == "a")
        #expect(queue.received("news").isPush)
        #expect(queue.received("pong").isLate)
    }

    @Test mutating func deadlines() throws {
        let late = try begin("late", deadline: at(9))
        _ = try begin("none")
        _ = try begin("soon", deadline: at(5))
        #expect(queue.nextDeadline == at(5))
        #expect(queue.timerFired(now: at(4.9)).isEmpty)
        let ended = queue.timerFired(now: at(5))
        #expect(ended.map(\.waiter) == ["soon"])
        #expect(ended.map(\.code) == [.timedOut])
        #expect(queue.nextDeadline == at(9))
        #expect(queue.cancelled(late) == "late")
        #expect(queue.nextDeadline == nil)
    }

    @Test mutating func placesCountForTheLimit() throws {
        for _ in 0..<10 { _ = try begin("a", deadline: at(1)) }
        #expect(queue.timerFired(now: at(1)).count == 10)
        #expect(queue.count == 0)
        let error = #expect(throws: RequestError.self) { try begin("b") }
        #expect(error?.code == .tooManyInFlight)
        #expect(queue.received("x").isLate)
        _ = try begin("b")
        for _ in 0..<9 { #expect(queue.received("x").isLate) }
        #expect(queue.received("x").answer == "b")
    }

    @Test mutating func aLostConnectionEndsAllInOrderAndAllPlaces() throws {
        _ = try begin("a")
        let id = try begin("b")
        _ = try begin("c", deadline: at(5))
        _ = queue.cancelled(id)
        let ended = queue.connectionLost()
        #expect(ended.map(\.waiter) == ["a", "c"])
        #expect(ended.allSatisfy { $0.code == .connectionLost })
        #expect(queue.expectedCount == 0)
        #expect(queue.nextDeadline == nil)
        #expect(queue.received("x").isPush)
        let next = try begin("d")
        #expect(next > id && queue.cancelled(id) == nil)
        #expect(queue.received("x").answer == "d")
    }

    @Test(arguments: [1, 500])
    mutating func memoryFollowsWhatWaits(depth: Int) throws {
        var queue = RequestQueue<Int, Int>(maximumCount: 10_000)
        for number in 0..<depth { _ = try queue.began(number, answerKind: nil, deadline: at(10)) }
        for number in 0..<50_000 {
            _ = try queue.began(depth + number, answerKind: nil, deadline: at(1e6))
            guard case .answer(_, number) = queue.received(0) else { Issue.record("\(number)"); return }
            #expect(queue.keptEntryCount <= 2 * depth + 64)
        }
        for _ in 0..<5000 { _ = try queue.began(0, answerKind: nil, deadline: nil) }
        for _ in 0..<(5000 + depth) { _ = queue.received(0) }
        #expect(queue.keptEntryCount == 0)
    }
}

/// Random operations against a plain list.
@Suite struct RequestQueueRandomTests {
    private struct Entry {
        let id: UInt64
        var waiter: Int?
        let kind: Int?
        let deadline: MonotonicTime?
    }

    private struct Run {
        var queue: RequestQueue<Int, Int>
        /// The places, in order; those that have ended have no waiter.
        var entries: [Entry] = []
        var random: SeededGenerator
        var now = at(0)
        var ids: [UInt64] = []
        var begunCount = 0
        var ended: Set<Int> = []
        var lateCount = 0

        init(seed: UInt64) {
            random = SeededGenerator(seed: seed)
            queue = RequestQueue(maximumCount: [1, 5, 200].randomElement(using: &random)!)
        }

        mutating func end(_ waiter: Int) {
            #expect(ended.insert(waiter).inserted, "\(waiter) ended twice")
        }

        mutating func begin() {
            let deadline =
                Bool.random(using: &random) ? now + .milliseconds(Int.random(in: 0...5000, using: &random)) : nil
            let kind = Bool.random(using: &random) ? Int.random(in: 0...2, using: &random) : nil
            guard entries.count < queue.maximumCount else {
                #expect(throws: RequestError.self) { try queue.began(-1, answerKind: kind, deadline: deadline) }
                return
            }
            do {
                let id = try queue.began(begunCount, answerKind: kind, deadline: deadline)
                #expect(ids.last.map { $0 < id } ?? true)
                ids.append(id)
                entries.append(Entry(id: id, waiter: begunCount, kind: kind, deadline: deadline))
                begunCount += 1
            } catch {
                Issue.record(error)
            }
        }

        mutating func receive() {
            let kind = Int.random(in: 0...2, using: &random)
            let isExpected = entries.first.map { $0.kind == nil || $0.kind == kind } ?? false
            switch queue.received(kind) {
            case .push:
                #expect(!isExpected)
            case .dropLate:
                lateCount += 1
                #expect(isExpected && entries[0].waiter == nil)
                entries.removeFirst()
            case .answer(let id, let waiter):
                #expect(isExpected && entries[0].waiter == waiter && entries[0].id == id)
                end(waiter)
                entries.removeFirst()
            }
        }

        mutating func cancel() {
            let id =
                Bool.random(using: &random)
                ? ids.randomElement(using: &random) : entries.randomElement(using: &random)?.id
            guard let id else { return }
            let index = entries.firstIndex { $0.id == id }
            let waiter = index.flatMap { entries[$0].waiter }
            #expect(queue.cancelled(id) == waiter)
            if let index, let waiter {
                entries[index].waiter = nil
                end(waiter)
            }
        }

        mutating func passTime() {
            now = now + .milliseconds(Int.random(in: 0...800, using: &random))
            let due = entries.indices.filter {
                entries[$0].waiter != nil && entries[$0].deadline.map { $0 <= now } ?? false
            }
            .sorted { (entries[$0].deadline!, $0) < (entries[$1].deadline!, $1) }
            #expect(queue.timerFired(now: now).map(\.waiter) == due.map { entries[$0].waiter })
            for index in due {
                end(entries[index].waiter!)
                entries[index].waiter = nil
            }
        }

        mutating func loseConnection() {
            let waiters = entries.compactMap(\.waiter)
            #expect(queue.connectionLost().map(\.waiter) == waiters)
            for waiter in waiters { end(waiter) }
            entries = []
        }

        mutating func step() {
            switch Int.random(in: 0..<200, using: &random) {
            case 0..<80: begin()
            case 80..<150: receive()
            case 150..<170: cancel()
            case 170..<199: passTime()
            default: loseConnection()
            }
            #expect(queue.count == entries.count { $0.waiter != nil })
            #expect(queue.expectedCount == entries.count)
            #expect(queue.nextDeadline == entries.filter { $0.waiter != nil }.compactMap(\.deadline).min())
            #expect(queue.lateResponseCount == lateCount)
        }
    }

    @Test(arguments: 0..<200 as Range<UInt64>)
    func randomOperations(seed: UInt64) {
        var run = Run(seed: seed)
        for _ in 0..<600 { run.step() }
        run.loseConnection()
        #expect(run.queue.count == 0)
        #expect(run.ended.count == run.begunCount, "each has ended")
    }
}

extension RequestQueue.ReceivedAction {
    var answer: Waiter? { if case .answer(_, let waiter) = self { waiter } else { nil } }
    var isLate: Bool { if case .dropLate = self { true } else { false } }
    var isPush: Bool { if case .push = self { true } else { false } }
}
