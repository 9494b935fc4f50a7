import LifelineCore
import Testing

@Suite struct RequestQueueTests {
    private var queue = RequestQueue<String>()

    @Test mutating func firstInFirstOut() {
        for serial: UInt32 in [5, 3, 4] { queue.append(serial, answerKind: nil) }
        #expect(queue.count == 3)
        for serial: UInt32 in [5, 3, 4] { #expect(queue.received("x") == serial) }
        #expect(queue.received("x") == nil)
        #expect(queue.count == 0)
    }

    @Test mutating func aKindThatIsNotExpectedIsAPush() {
        queue.append(1, answerKind: "pong")
        queue.append(2, answerKind: "list")
        #expect(queue.received("news") == nil)
        #expect(queue.received("list") == nil, "not its turn yet")
        #expect(queue.received("pong") == 1)
        #expect(queue.received("pong") == nil)
        #expect(queue.received("list") == 2)
    }

    @Test mutating func aLostConnectionEndsAllPlaces() {
        for serial: UInt32 in 1...3 { queue.append(serial, answerKind: nil) }
        #expect(queue.received("x") == 1)
        queue.removeAll()
        #expect(queue.count == 0 && queue.received("x") == nil)
        queue.append(9, answerKind: nil)
        #expect(queue.received("x") == 9)
    }

    @Test(arguments: [1, 500] as [UInt32])
    mutating func memoryFollowsWhatWaits(depth: UInt32) {
        for serial in 0..<depth { queue.append(serial, answerKind: nil) }
        for number: UInt32 in 0..<50_000 {
            queue.append(depth + number, answerKind: nil)
            #expect(queue.received("x") == number)
            #expect(queue.keptEntryCount <= 2 * Int(depth) + 64)
        }
        for serial: UInt32 in 0..<5000 { queue.append(serial, answerKind: nil) }
        for _ in 0..<(5000 + depth) { _ = queue.received("x") }
        #expect(queue.keptEntryCount == 0)
    }
}
