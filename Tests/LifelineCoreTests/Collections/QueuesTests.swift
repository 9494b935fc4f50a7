import Testing

@testable import LifelineCore

@Suite struct QueuesTests {
    @Test func fifoKeepsNumbersAndFollowsWhatIsLeft() {
        var random = SplitMix64(seed: 1)
        var fifo = FIFO<Int>(firstNumber: 7)
        var (first, next) = (7, 7)
        for round in 0..<20_000 {
            // The queue grows and shrinks in turns.
            let grows = random.next() % 10 < (round / 500 % 2 == 0 ? 7 : 3)
            if grows || first == next {
                fifo.append(next)
                next += 1
            } else {
                #expect(fifo.removeFirst() == first)
                first += 1
            }
            #expect(fifo.count == next - first && fifo.isEmpty == (first == next))
            #expect(fifo.numbers == UInt64(first)..<UInt64(next))
            #expect(fifo.first == (first == next ? nil : first))
            if first < next {
                let middle = (first + next) / 2
                #expect(fifo[UInt64(middle)] == middle)
            }
            #expect(fifo.elements.count <= 2 * fifo.count + 34)
        }
        while !fifo.isEmpty { fifo.removeFirst() }
        #expect(fifo.elements.count == 0 && fifo.nextNumber == UInt64(next))
    }

    @Test func fifoLetsGoOfWhatHasLeft() {
        final class Content: Sendable {}
        var fifo = FIFO<Content>(firstNumber: 0)
        weak var content: Content?
        do {
            let first = Content()
            content = first
            fifo.append(first)
        }
        for _ in 0..<40 { fifo.append(Content()) }
        #expect(content != nil)
        fifo.removeFirst()
        #expect(content == nil && fifo.count == 40)
    }

    @Test func fifoIsEmptied() {
        var fifo = FIFO<Int>(keptCapacity: 16)
        for number in 0..<50 { fifo.append(number) }
        #expect(fifo.popFirst() == 0)
        #expect(fifo.removeAll() == Array(1..<50))
        #expect(fifo.isEmpty && fifo.popFirst() == nil && fifo.numbers == 50..<50 && fifo.elements.capacity == 0)
        fifo.append(7)
        #expect(fifo[50] == 7)
        for number in 0..<50 { fifo.append(number) }
        while fifo.popFirst() != nil {}
        #expect(fifo.elements.capacity <= 16)
    }

    @Test(arguments: [1_025, 4_096, 65_536]) func queuesGiveMemoryBackWhenABurstIsOver(count: Int) {
        var fifo = FIFO<Int>(firstNumber: 0)
        var sparse = SparseQueue<Int>()
        for number in 0..<count {
            fifo.append(number)
            sparse.append(UInt64(number), number)
        }
        #expect(fifo.elements.capacity >= count && sparse.slots.capacity >= count)
        for number in 0..<count {
            fifo.removeFirst()
            sparse.remove(UInt64(number))
        }
        #expect(fifo.elements.capacity <= 1024 && sparse.slots.capacity <= 1024)
    }

    /// Each table has another random factor, so that other numbers collide.
    @Test func serialTableAgreesWithADictionary() {
        var random = SplitMix64(seed: 3)
        func below(_ bound: Int) -> Int { Int(random.next() % UInt64(bound)) }
        for round in 0..<40 {
            var table = SerialTable<Int>()
            var model: [UInt32: Int] = [:]
            for step in 0..<400 {
                let key = UInt32(below(round < 20 ? 20 : 200))
                switch below(4) {
                case 0:
                    #expect(table.insertNew(key, step) == (model[key] == nil))
                    if model[key] == nil { model[key] = step }
                case 1: (table[key], model[key]) = (step, step)
                case 2: (table[key], model[key]) = (nil, nil)
                default: #expect(table.removeValue(forKey: key) == model.removeValue(forKey: key))
                }
                let expected = model.sorted { $0.key < $1.key }
                #expect(table.elements.map(\.key) == expected.map(\.key) && table.count == model.count)
                let values = expected.map { table[$0.key] }
                #expect(values == expected.map(\.value))
            }
        }
    }

    @Test func sparseQueueAgreesWithADictionary() {
        for seed in UInt64(1)...20 {
            var random = SplitMix64(seed: seed)
            var queue = SparseQueue<Int>()
            var model: [UInt64: Int] = [:]
            var next: UInt64 = 1
            for round in 0..<2000 {
                if random.next() % 10 < (round / 300 % 2 == 0 ? 7 : 3) {
                    next += 1 + random.next() % 3
                    queue.append(next, round)
                    model[next] = round
                } else {
                    // Any number, or the first.
                    let number = random.next() % 2 == 0 ? random.next() % (next + 2) : model.keys.min() ?? 0
                    #expect(queue[number] == model[number])
                    if random.next() % 4 == 0 {
                        queue.update(number) { $0 += 1 }
                        model[number]? += 1
                    } else {
                        #expect(queue.remove(number) == model.removeValue(forKey: number))
                    }
                }
                #expect(queue.count == model.count && queue.isEmpty == model.isEmpty)
                #expect(queue.first?.number == model.keys.min())
                #expect(queue.slots.count <= 2 * queue.count + 32)
            }
            #expect(queue.numbers == model.keys.sorted())
            #expect(queue.elements == queue.numbers.map { model[$0] })
            #expect(queue.numbers.allSatisfy { queue[$0] == model[$0] })
        }
    }

    @Test func sparseQueueIsSmallThoughTheFirstStays() {
        var queue = SparseQueue<Int>()
        queue.append(1, 1)
        for number in UInt64(2)...100_000 {
            queue.append(number, 2)
            queue.remove(number)
        }
        #expect(queue.slots.count <= 34 && queue.first?.number == 1)
    }

    @Test func sparseQueueFindsTheNumbersOfARange() {
        for seed in UInt64(1)...20 {
            var random = SplitMix64(seed: seed)
            var queue = SparseQueue<Int>()
            #expect(queue.numbers(in: 0...UInt64.max).isEmpty)
            var numbers: [UInt64] = []
            var next: UInt64 = 1
            for _ in 0..<1000 {
                if random.next() % 10 < 6 {
                    next += 1 + random.next() % 3
                    queue.append(next, 1)
                    numbers.append(next)
                } else if let number = numbers.randomElement(using: &random) {
                    queue.remove(number)
                    numbers.removeAll { $0 == number }
                }
                let lower = random.next() % (next + 2)
                let range = lower...lower + random.next() % 50
                #expect(queue.numbers(in: range) == numbers.filter(range.contains))
            }
            #expect(queue.numbers(in: 0...UInt64.max) == numbers)
        }
    }

    /// The order of the deadlines.
    enum DeadlineOrder: CaseIterable { case random, ascending, descending, mixed }

    @Test(arguments: DeadlineOrder.allCases)
    func theHeapBringsDeadlinesInOrderAndForgetsThoseThatDoNotCount(order: DeadlineOrder) {
        for seed in UInt64(1)...20 {
            var random = SplitMix64(seed: seed)
            var heap = DeadlineHeap()
            var model: [UInt64: Int64] = [:]
            for id in UInt64(0)..<2000 {
                switch random.next() % 10 {
                case ..<5:
                    let deadline =
                        switch order {
                        case .random: Int64(random.next() % 100)
                        // Some are equal.
                        case .ascending: Int64(id / 40)
                        case .descending: 100 - Int64(id / 40)
                        case .mixed: random.next() % 8 == 0 ? Int64(random.next() % 100) : Int64(id / 20)
                        }
                    heap.insert(MonotonicTime(nanoseconds: deadline), id: id)
                    model[id] = deadline
                case ..<9:
                    // Mostly removes the oldest one.
                    let isAny = random.next() % 4 == 0
                    let ended = isAny ? model.keys.sorted().randomElement(using: &random) : model.keys.min()
                    if let ended { model[ended] = nil }
                default:
                    let now = (model.values.min() ?? 0) + Int64(random.next() % 10) - 2
                    while let due = heap.takeDue(now: MonotonicTime(nanoseconds: now)) {
                        let expected = model.filter { $0.value <= now }.min { ($0.value, $0.key) < ($1.value, $1.key) }
                        #expect(due == expected?.key)
                        model[due] = nil
                        heap.compact(liveCount: model.count) { model[$0] != nil }
                    }
                    #expect(model.values.allSatisfy { $0 > now })
                }
                heap.compact(liveCount: model.count) { model[$0] != nil }
                #expect(heap.next?.nanoseconds == model.values.min())
                #expect(heap.count <= 2 * model.count + 32)
            }
        }
    }
}
