import Testing

@testable import Lifeline

/// The queues of which sessions are made.
@Suite struct SessionQueuesTests {
    @Test func fifoKeepsNumbersAndFollowsWhatIsLeft() {
        var random = SplitMix64(seed: 1)
        var fifo = FIFO<Int>(firstNumber: 7)
        var (first, next) = (7, 7)
        for round in 0..<20_000 {
            // It grows and shrinks by turns.
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
            #expect(fifo.keptCount <= 2 * fifo.count + 34)
        }
        while !fifo.isEmpty { fifo.removeFirst() }
        #expect(fifo.keptCount == 0 && fifo.nextNumber == UInt64(next))
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

    @Test(arguments: [1_025, 4_096, 65_536]) func queuesGiveMemoryBackWhenABurstIsOver(count: Int) {
        var fifo = FIFO<Int>(firstNumber: 0)
        var sparse = SparseQueue<Int>()
        for number in 0..<count {
            fifo.append(number)
            sparse.append(UInt64(number), number)
        }
        #expect(fifo.capacity >= count && sparse.capacity >= count)
        for number in 0..<count {
            fifo.removeFirst()
            sparse.remove(UInt64(number))
        }
        #expect(fifo.capacity <= 1024 && sparse.capacity <= 1024)
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
                #expect(queue.keptCount <= 2 * queue.count + 32)
            }
            #expect(Array(queue.numbers) == model.keys.sorted())
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
        #expect(queue.keptCount <= 34 && queue.first?.number == 1)
    }

    @Test func idsStandOnTheWireAsTheyAreRead() throws {
        let bytes = [UInt8](0x10...0x1F)
        let id = try #require(SessionID(bytes))
        #expect(id.bytes == bytes && id == SessionID(0x1011_1213_1415_1617, 0x1819_1A1B_1C1D_1E1F))
        #expect("\(id)" == "101112131415161718191a1b1c1d1e1f" && "\(SessionID(0, 10))".hasSuffix("000a"))
        #expect(SessionID(bytes.dropLast()) == nil && SessionID(bytes + [0]) == nil && SessionToken([]) == nil)
        #expect(Set([id, id, SessionID(1, 2), SessionID(2, 1)]).count == 3)
        // Every bit counts.
        for bit in 0..<64 {
            #expect(SessionID(0, 0) != SessionID(1 << bit, 0) && SessionID(0, 0) != SessionID(0, 1 << bit))
            #expect(SessionToken(0, 0) != SessionToken(1 << bit, 0) && SessionToken(0, 0) != SessionToken(0, 1 << bit))
        }
    }

    @Test func tokensDoNotShow() throws {
        let token = try #require(SessionToken([UInt8](0x10...0x1F)))
        let credentials = SessionCredentials(id: SessionID(1, 2), token: token)
        var dumped = ""
        dump(SessionHello.test(credentials), to: &dumped)
        for text in [
            "\(token)", String(reflecting: token), "\(credentials)", "\(SessionHello.test(credentials))", dumped,
        ] {
            // In hexadecimal, in decimal.
            #expect(!text.contains("1011") && !text.contains("\(0x1011_1213_1415_1617)"))
        }
        #expect(token.bytes == [UInt8](0x10...0x1F))
    }

    @Test func versionsMeetAtTheHighest() {
        func common(_ minimum: UInt32, _ maximum: UInt32) -> UInt32? {
            var hello = SessionHello.test()
            (hello.minimumVersion, hello.maximumVersion) = (minimum, maximum)
            return hello.commonVersion
        }
        #expect(common(1, 1) == 1 && common(0, .max) == 1 && common(1, 7) == 1)
        #expect(common(2, 3) == nil && common(0, 0) == nil && common(3, 1) == nil && common(.max, 0) == nil)
    }

    @Test func timeoutsAreNeverWithoutLimit() {
        let now = MonotonicTime.ms(5)
        #expect(MonotonicTime.ms(7).timeoutMilliseconds(now: now) == 2)
        #expect((MonotonicTime.ms(7) + .nanoseconds(1)).timeoutMilliseconds(now: now) == 3)
        #expect((now + .nanoseconds(1)).timeoutMilliseconds(now: now) == 1)
        #expect(now.timeoutMilliseconds(now: now) == 1 && MonotonicTime.ms(0).timeoutMilliseconds(now: now) == 1)
        let longest = MonotonicTime(nanoseconds: .max).timeoutMilliseconds(now: MonotonicTime(nanoseconds: .min))
        #expect(longest == UInt64(Int64.max) / 1_000_000 + 1)
    }

    @Test func windowsTakeWhatFitsAndOneThatDoesNot() {
        let window = SessionWindow(frameCount: 2, byteCount: 10)
        #expect(window.takes(11, besides: SessionSize()))
        #expect(window.takes(4, besides: SessionSize(frameCount: 1, byteCount: 6)))
        #expect(!window.takes(5, besides: SessionSize(frameCount: 1, byteCount: 6)))
        #expect(!window.takes(0, besides: SessionSize(frameCount: 1, byteCount: 11)))
        #expect(!window.takes(0, besides: SessionSize(frameCount: 2, byteCount: 0)))
        #expect(SessionWindow(frameCount: -1, byteCount: -1) == SessionWindow(frameCount: 0, byteCount: 0))
        #expect(!SessionWindow(frameCount: 0, byteCount: .max).takes(0, besides: SessionSize()))
        #expect(
            SessionWindow(frameCount: .max, byteCount: .max).takes(
                .max,
                besides: SessionSize(frameCount: 1, byteCount: 0)
            )
        )
    }

    @Test func pausesAreBounded() {
        #expect(SessionGoodbye(.full, pause: .seconds(-1)).pause == .zero)
        #expect(SessionGoodbye(.full, pause: .seconds(Int64.max)).pause == .longest)
        #expect(SessionGoodbye.Code.allCases.map(\.rawValue) == [1, 2, 3, 4, 5, 6, 7])
    }
}
