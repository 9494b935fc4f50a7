import LifelineCore
import Testing

@testable import Lifeline

@Suite struct RingTests {
    @Test func aNewRingIsEmptyAndHoldsNothing() {
        let ring = Ring<Int>(nextNumber: 5)
        #expect(ring.first == 5 && ring.next == 5 && ring.count == 0 && ring.isEmpty && ring.bytesHeld == 0)
    }

    @Test func elementsAreFoundByTheirNumbers() {
        var ring = Ring<Int>(nextNumber: 1)
        for element in 1...100 { ring.append(element * 10) }
        #expect(ring.first == 1 && ring.next == 101 && ring.count == 100)
        for number in UInt64(1)...100 { #expect(ring[number] == Int(number) * 10) }
        ring[50] += 7
        #expect(ring[50] == 507)
    }

    @Test func numbersMayBeginAnywhere() {
        var ring = Ring<Int>(nextNumber: .max - 40)
        for element in 0..<30 { ring.append(element) }
        for _ in 0..<10 { ring.removeFirst() }
        #expect(ring.first == .max - 30 && ring[.max - 30] == 10 && ring[.max - 11] == 29)
    }

    @Test func allElementsAreRemoved() {
        var ring = Ring<UInt8>(nextNumber: 1)
        for _ in 0..<1000 { ring.append(1) }
        ring.removeAll(nextNumber: 9)
        #expect(ring.first == 9 && ring.next == 9 && ring.bytesHeld == 0)
        ring.append(2)
        #expect(ring[9] == 2)
    }

    @Test func aSmallBufferIsKeptAndALargeOneGivenBack() {
        var ring = Ring<UInt64>(nextNumber: 0)
        ring.append(1)
        let small = ring.bytesHeld
        ring.removeFirst()
        #expect(small > 0 && ring.bytesHeld == small)
        for _ in 0..<10_000 { ring.append(1) }
        #expect(ring.bytesHeld >= 80_000)
        while !ring.isEmpty { ring.removeFirst() }
        #expect(ring.bytesHeld > 64 * 8 && ring.bytesHeld <= 8_192 * 8 && ring.isSparse)
        ring.giveBackMemory()
        #expect(ring.bytesHeld <= 64 * 8 && !ring.isSparse)
    }

    @Test func aRingAgreesWithAnArrayWhileItGrowsAndShrinks() {
        for seed in UInt64(1)...20 {
            var random = SplitMix64(seed: seed)
            var ring = Ring<UInt64>(nextNumber: seed)
            var model: [UInt64] = []
            var first = seed
            for round in 0..<3000 {
                if model.isEmpty || random.next() % 10 < (round / 700 % 2 == 0 ? 8 : 2) {
                    let element = random.next()
                    ring.append(element)
                    model.append(element)
                } else {
                    ring.removeFirst()
                    model.removeFirst()
                    first += 1
                }
                let isRight =
                    ring.first == first && ring.next == first + UInt64(model.count) && ring.count == model.count
                    && ring.isEmpty == model.isEmpty && (!ring.isSparse || ring.bytesHeld <= 8 * 8_192)
                #expect(isRight)
                if let index = model.indices.randomElement(using: &random) {
                    #expect(ring[first + UInt64(index)] == model[index])
                }
                if round % 100 == 0 {
                    ring.giveBackMemory()
                    #expect(ring.bytesHeld <= 8 * max(8 * model.count, 64))
                    #expect((ring.first..<ring.next).map { ring[$0] } == model)
                }
            }
        }
    }
}
