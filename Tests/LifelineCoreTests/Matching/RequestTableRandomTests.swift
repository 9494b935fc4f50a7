import LifelineCore
import LifelineTestSupport
import Testing

/// Random operations against a plain list.
@Suite struct RequestTableRandomTests {
    private struct Entry {
        let id: UInt64
        let waiter: Int
        let deadline: MonotonicTime?
        var serial: UInt32 { UInt32(truncatingIfNeeded: id) }
    }

    private struct Run {
        var table: RequestTable<Int>
        let serials: ClosedRange<UInt32>
        /// The waiting requests, in the order in which they began.
        var entries: [Entry] = []
        var random: SeededGenerator
        var now = at(0)
        var ids: [UInt64] = []
        var usedSerials: Set<UInt32> = []
        var begunCount = 0
        var endedWaiters: Set<Int> = []
        var lateCount = 0
        var unknownCount = 0

        init(seed: UInt64) {
            random = SeededGenerator(seed: seed)
            // Few serials, so that they wrap around often, up to the highest one.
            serials = [UInt32(0)...15, 0x401...0x47F, (.max - 1000)...(.max - 1)].randomElement(using: &random)!
            table = RequestTable(maximumCount: [2, 7, 60].randomElement(using: &random)!, serials: serials)
        }

        mutating func end(_ entry: Entry) {
            entries.removeAll { $0.id == entry.id }
            #expect(endedWaiters.insert(entry.waiter).inserted, "\(entry.waiter) ended twice")
        }

        mutating func begin() {
            let deadline =
                Bool.random(using: &random) ? now + .milliseconds(Int.random(in: 0...5000, using: &random)) : nil
            let reserved = Bool.random(using: &random) ? UInt32.random(in: serials, using: &random) : nil
            guard entries.count < table.maximumCount else {
                #expect(throws: RequestError.self) { try table.began(-1, deadline: deadline, avoiding: reserved) }
                return
            }
            do {
                let id = try table.began(begunCount, deadline: deadline, avoiding: reserved)
                let entry = Entry(id: id, waiter: begunCount, deadline: deadline)
                #expect(serials.contains(entry.serial))
                #expect(entry.serial != reserved)
                #expect(!entries.contains { $0.serial == entry.serial }, "unique among those that wait")
                #expect(ids.last.map { $0 < id } ?? true, "ascending")
                ids.append(id)
                usedSerials.insert(entry.serial)
                entries.append(entry)
                begunCount += 1
            } catch {
                Issue.record(error)
            }
        }

        mutating func respond() {
            let lower = serials.lowerBound - min(serials.lowerBound, 2)
            let serial =
                Bool.random(using: &random)
                ? UInt32.random(in: lower...(serials.upperBound + 1), using: &random)
                : entries.randomElement(using: &random)?.serial ?? serials.lowerBound
            switch table.receivedResponse(serial: serial) {
            case .answer(let id, let waiter):
                guard let entry = entries.first(where: { $0.serial == serial }) else {
                    Issue.record("nothing waits for \(serial)")
                    return
                }
                #expect(entry.id == id && entry.waiter == waiter)
                end(entry)
            case .dropLate:
                lateCount += 1
                #expect(!entries.contains { $0.serial == serial })
                #expect(serials.contains(serial))
            case .dropUnknown:
                unknownCount += 1
                #expect(!usedSerials.contains(serial))
            }
        }

        mutating func cancel() {
            let id =
                Bool.random(using: &random)
                ? ids.randomElement(using: &random) : entries.randomElement(using: &random)?.id
            guard let id else { return }
            let entry = entries.first { $0.id == id }
            #expect(table.cancelled(id) == entry?.waiter)
            if let entry { end(entry) }
        }

        mutating func passTime() {
            now = now + .milliseconds(Int.random(in: 0...800, using: &random))
            let due = entries.filter { $0.deadline.map { $0 <= now } ?? false }
                .sorted { ($0.deadline!, $0.id) < ($1.deadline!, $1.id) }
            let ended = table.timerFired(now: now)
            #expect(ended.map { $0.id } == due.map(\.id))
            #expect(ended.map { $0.waiter } == due.map(\.waiter))
            for entry in due { end(entry) }
        }

        mutating func loseConnection() {
            let ended = table.connectionLost()
            #expect(ended.map { $0.id } == entries.map(\.id))
            for entry in entries { end(entry) }
        }

        mutating func step() {
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<45: begin()
            case 45..<75: respond()
            case 75..<85: cancel()
            case 85..<99: passTime()
            default: loseConnection()
            }
            #expect(table.count == entries.count)
            #expect(table.nextDeadline == entries.compactMap(\.deadline).min())
            #expect(table.lateResponseCount == lateCount)
            #expect(table.unknownResponseCount == unknownCount)
        }
    }

    @Test(arguments: 0..<200 as Range<UInt64>)
    func randomOperations(seed: UInt64) {
        var run = Run(seed: seed)
        for _ in 0..<600 { run.step() }
        run.loseConnection()
        #expect(run.table.count == 0)
        #expect(run.endedWaiters.count == run.begunCount, "each has ended")
    }
}
