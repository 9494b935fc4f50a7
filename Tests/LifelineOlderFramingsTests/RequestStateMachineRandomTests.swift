import LifelineCore
import LifelineOlderFramings
import LifelineTestSupport
import Testing

/// Random requests, connections and answers against plain lists.
@Suite struct RequestStateMachineRandomTests {
    @Test(arguments: 0..<150 as Range<UInt64>) func byOrder(seed: UInt64) {
        var run = Run(isOrdered: true, seed: seed)
        run.steps()
    }

    @Test(arguments: 0..<150 as Range<UInt64>) func bySerial(seed: UInt64) {
        var run = Run(isOrdered: false, seed: seed)
        run.steps()
    }

    private struct Entry {
        let action: (id: UInt64, serial: UInt32)
        let waiter: Int
        let kind: Int?
        let deadline: MonotonicTime
        var isWaiting = true
        /// The machine does not know of a connection that has accepted it.
        var isUnsent = true
        var isWritten = false
        /// It may still be accepted or refused.
        var isOnItsWay = true
        /// The connection that has accepted it, reported or not.
        var connection: Int?
    }

    private struct Run {
        var machine: RequestStateMachine<Int, Int>
        let isOrdered: Bool
        let maximumCount: Int
        var random: SeededGenerator
        var now = at(0)
        var entries: [Entry] = []
        /// The indices of requests that the peer has to answer, in order.
        var owed: [Int] = []
        /// The requests that have to be written or given up.
        var unwritten: Set<Int> = []
        var connection = 1
        var isReceiving = false
        var isOver = true
        var ended: Set<Int> = []
        var lateCount = 0

        init(isOrdered: Bool, seed: UInt64) {
            random = SeededGenerator(seed: seed)
            maximumCount = [1, 4, 50].randomElement(using: &random)!
            let matching = AnswerMatching(isOrdered: isOrdered)
            machine = RequestStateMachine(matching, maximumCount: maximumCount, takesPushes: true)
            self.isOrdered = isOrdered
        }

        var waiting: [Int] { entries.indices.filter { entries[$0].isWaiting } }

        mutating func end(_ index: Int) {
            entries[index].isWaiting = false
            #expect(ended.insert(entries[index].waiter).inserted, "\(entries[index].waiter) ended twice")
        }

        mutating func expect(
            _ result: [RequestStateMachine<Int, Int>.Ended],
            _ indices: [Int],
            _ code: RequestError.Code,
            sourceLocation: SourceLocation = #_sourceLocation
        ) {
            #expect(result.map(\.waiter) == indices.map { entries[$0].waiter }, sourceLocation: sourceLocation)
            #expect(result.allSatisfy { $0.error.code == code }, sourceLocation: sourceLocation)
            for index in indices { end(index) }
        }

        /// Accepted and written requests are lost.
        mutating func lose() -> [Int] {
            owed = []
            unwritten = unwritten.filter { entries[$0].isUnsent }
            return waiting.filter { !entries[$0].isUnsent }
        }

        mutating func begin() {
            let unsentCount = entries.count { $0.isUnsent }
            let heldCount = isOrdered ? owed.count + unwritten.count : 0
            let kind = Bool.random(using: &random) ? Int.random(in: 0...1, using: &random) : nil
            let deadline = now + .milliseconds(Int.random(in: 0...5000, using: &random))
            let isFull = max(unsentCount, heldCount, waiting.count) >= maximumCount
            do throws(RequestError) {
                let action = try machine.began(entries.count, answerType: kind.map { "\($0)" }, deadline: deadline)
                #expect(!isFull)
                unwritten.insert(entries.count)
                let (id, serial) = (action.id, action.serial)
                entries.append(Entry(action: (id, serial), waiter: entries.count, kind: kind, deadline: deadline))
            } catch {
                #expect(isFull && error.code == .tooManyInFlight)
            }
        }

        /// A connection accepts a request. The machine learns this now, later, or after the connection.
        mutating func accept() {
            guard let index = entries.indices.filter({ entries[$0].isOnItsWay }).randomElement(using: &random) else {
                return
            }
            let by = entries[index].connection ?? (isOver ? nil : connection)
            guard let by else { return }
            entries[index].connection = by
            // The write may be reported first.
            if Bool.random(using: &random) { return }
            entries[index].isOnItsWay = false
            entries[index].isUnsent = false
            let isLost = by < connection || isOver
            let result = machine.accepted(entries[index].action.id, by: by).map { [$0] } ?? []
            if isLost { unwritten.remove(index) }
            expect(result, isLost && entries[index].isWaiting ? [index] : [], .connectionLost)
        }

        mutating func write() {
            let candidates = entries.indices.filter { entries[$0].connection == connection && !entries[$0].isWritten }
            guard !isOver, let index = candidates.randomElement(using: &random) else { return }
            entries[index].isWritten = true
            entries[index].isUnsent = false
            let result = machine.wrote(serial: entries[index].action.serial)
            unwritten.remove(index)
            owed.append(index)
            expect(result, isReceiving ? [] : lose(), .connectionLost)
        }

        mutating func failToSend() {
            let candidates = entries.indices.filter { entries[$0].isOnItsWay && entries[$0].connection == nil }
            guard let index = candidates.randomElement(using: &random) else { return }
            entries[index].isOnItsWay = false
            entries[index].isUnsent = false
            unwritten.remove(index)
            let (reason, code): (any Error, RequestError.Code) =
                [
                    (CancellationError(), .cancelled),
                    (ConnectionError(code: .sendTimedOut, message: ""), .timedOut),
                    (ConnectionError(code: .sendQueueFull, message: ""), .notSent),
                ].randomElement(using: &random)!
            let result = machine.sendFailed(entries[index].action.id, reason).map { [$0] } ?? []
            expect(result, entries[index].isWaiting ? [index] : [], code)
        }

        mutating func cancel() {
            guard let index = entries.indices.randomElement(using: &random) else { return }
            let result = machine.cancelled(entries[index].action.id).map { [$0] } ?? []
            expect(result, entries[index].isWaiting ? [index] : [], .cancelled)
        }

        mutating func receive() {
            guard isReceiving else { return }
            let kind = Int.random(in: 0...1, using: &random)
            // A peer answers received requests by serial, maybe repeatedly.
            let sent = entries.indices.filter { entries[$0].isWritten && entries[$0].connection == connection }
            let picked = sent.randomElement(using: &random)
            let answered: Int? =
                isOrdered
                ? owed.first.flatMap { entries[$0].kind ?? kind == kind ? $0 : nil } : picked
            let head = picked.map { AnswerHead.answer(serial: entries[$0].action.serial) } ?? .push
            switch machine.received(isOrdered ? .ofType("\(kind)") : head) {
            case .push: #expect(answered == nil)
            case .drop:
                #expect(answered.map { !entries[$0].isWaiting } ?? false)
                lateCount += 1
            case .answer(let waiter):
                #expect(answered.map { entries[$0].waiter == waiter && entries[$0].isWaiting } ?? false)
                if let answered { end(answered) }
            }
            if let answered { owed.removeAll { $0 == answered } }
        }

        mutating func passTime() {
            now = now + .milliseconds(Int.random(in: 0...800, using: &random))
            let due = waiting.filter { entries[$0].deadline <= now }
                .sorted { (entries[$0].deadline, $0) < (entries[$1].deadline, $1) }
            expect(machine.timerFired(now: now), due, .timedOut)
        }

        mutating func changeConnection() {
            if isOver {
                connection += 1
                machine.connectionBegan()
                (isOver, isReceiving) = (false, true)
            } else if isReceiving, Bool.random(using: &random) {
                isReceiving = false
                let isRegular = Bool.random(using: &random)
                let reason = ConnectionError(code: .closedByPeer, message: "")
                let result = machine.inputEnded(isRegular ? .regular(reason) : .failed(reason))
                expect(result, isRegular ? lose() : [], .connectionLost)
            } else {
                (isOver, isReceiving) = (true, false)
                expect(machine.connectionClosed(connection), lose(), .connectionLost)
            }
        }

        mutating func steps() {
            for _ in 0..<500 {
                switch Int.random(in: 0..<100, using: &random) {
                case 0..<25: begin()
                case 25..<45: accept()
                case 45..<65: write()
                case 65..<70: failToSend()
                case 70..<75: cancel()
                case 75..<90: receive()
                case 90..<95: passTime()
                default: changeConnection()
                }
                #expect(machine.waitingCount == waiting.count)
                #expect(machine.lateAnswerCount == lateCount && machine.unknownAnswerCount == 0)
                #expect(machine.timerWillBeSet() == waiting.map { entries[$0].deadline }.min())
            }
            let unsent = waiting.filter { entries[$0].isUnsent }
            let sent = waiting.filter { !entries[$0].isUnsent }
            let last = machine.closed(ConnectionError(code: .closedLocally, message: ""))
            expect(Array(last.prefix(sent.count)), sent, .connectionLost)
            expect(Array(last.dropFirst(sent.count)), unsent, .notSent)
            #expect(ended.count == entries.count, "each has ended, once")
        }
    }
}
