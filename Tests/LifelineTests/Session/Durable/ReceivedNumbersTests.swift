import Lifeline
import LifelineTestSupport
import Testing

@Suite struct ReceivedNumbersTests {
    @Test func numbersInOrderLeaveNoGaps() {
        var numbers = ReceivedNumbers()
        #expect(!numbers.contains(1) && numbers.contains(0))
        for number in 1...1_000 as ClosedRange<UInt64> { numbers.insert(number) }
        #expect(numbers.floor == 1_000 && numbers.gapCount == 0 && numbers.bytes == [0xE8, 0x07])
        numbers.insert(5)
        #expect(numbers.floor == 1_000)
    }

    @Test func gapsClose() {
        var numbers = ReceivedNumbers()
        for number in [2, 4, 6, 5, 9, 3] as [UInt64] { numbers.insert(number) }
        #expect(numbers.floor == 0 && numbers.gapCount == 2)
        #expect((1...10).filter { numbers.contains($0) } == [2, 3, 4, 5, 6, 9])
        #expect(numbers.bytes == [0, 1, 5, 2, 1])
        numbers.insert(1)
        #expect(numbers.floor == 6 && numbers.gapCount == 1)
        numbers.raiseFloor(to: 8)
        #expect(numbers.floor == 9 && numbers.gapCount == 0)
    }

    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func itIsASet(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var (numbers, model) = (ReceivedNumbers(), Set<UInt64>())
        for _ in 0..<2_000 {
            let number = UInt64.random(in: 1...300, using: &random)
            if Int.random(in: 0..<100, using: &random) == 0 {
                let floor = number / 10
                numbers.raiseFloor(to: floor)
                if floor > 0 { model.formUnion(1...floor) }
            } else {
                numbers.insert(number)
                model.insert(number)
            }
            #expect((1...301).allSatisfy { numbers.contains($0) == model.contains($0) })
            #expect(ReceivedNumbers(bytes: numbers.bytes) == numbers)
        }
    }

    @Test func damageIsSeen() {
        let damaged: [[UInt8]] = [
            [], [0x80], [0, 1], [0, 0, 1], [0, 1, 0], [0, 1, 0x80],
            [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1, 1, 1],
        ]
        for bytes in damaged { #expect(ReceivedNumbers(bytes: bytes) == nil, "\(bytes)") }
        #expect(ReceivedNumbers(bytes: [0])?.floor == 0)
    }

    /// The peer chooses the floor.
    @Test func noFloorIsTooHigh() {
        for floor in [99, 100, 101, UInt64(Int64.max), .max - 1, .max] {
            var numbers = ReceivedNumbers()
            numbers.insert(100)
            numbers.raiseFloor(to: floor)
            #expect(numbers.floor == max(floor, 100) && numbers.gapCount == 0)
            numbers.insert(.max)
            #expect(numbers.contains(.max))
            numbers.raiseFloor(to: .max)
            #expect(numbers.floor == .max && ReceivedNumbers(bytes: numbers.bytes) == numbers)
        }
    }
}
