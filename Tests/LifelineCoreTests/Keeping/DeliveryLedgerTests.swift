import LifelineCore
import LifelineTestSupport
import Testing

@Suite struct DeliveryLedgerTests {
    /// A model: a plain list of the ends of frames.
    private struct Model {
        var ends: [UInt64] = []
        var total: UInt64 = 0
        var acknowledged: UInt64 = 0

        mutating func frameAccepted(byteCount: Int) {
            total += UInt64(byteCount)
            ends.append(total)
        }

        mutating func uncountedBytesAccepted(_ byteCount: Int) {
            total += UInt64(byteCount)
        }

        mutating func bytesAcknowledged(total: UInt64) {
            acknowledged = max(acknowledged, min(total, self.total))
            ends.removeAll { $0 <= acknowledged }
        }
    }

    @Test func aFrameCountsUntilItsLastByte() {
        var ledger = DeliveryLedger()
        ledger.frameAccepted(byteCount: 10)
        ledger.frameAccepted(byteCount: 300)
        #expect(ledger.unacknowledgedFrameCount == 2)
        ledger.bytesAcknowledged(total: 9)
        #expect(ledger.unacknowledgedFrameCount == 2 && ledger.unacknowledgedByteCount == 301)
        ledger.bytesAcknowledged(total: 10)
        #expect(ledger.unacknowledgedFrameCount == 1)
        ledger.bytesAcknowledged(total: 309)
        #expect(ledger.unacknowledgedFrameCount == 1 && ledger.unacknowledgedByteCount == 1)
        ledger.bytesAcknowledged(total: 310)
        #expect(ledger.unacknowledgedFrameCount == 0 && ledger.unacknowledgedByteCount == 0)
    }

    @Test func bytesThatAreNoFrameAreNotCounted() {
        var ledger = DeliveryLedger()
        ledger.uncountedBytesAccepted(5)
        #expect(ledger.unacknowledgedFrameCount == 0 && ledger.unacknowledgedByteCount == 5)
        ledger.frameAccepted(byteCount: 10)
        ledger.uncountedBytesAccepted(-1)
        ledger.uncountedBytesAccepted(5)
        ledger.bytesAcknowledged(total: 14)
        #expect(ledger.unacknowledgedFrameCount == 1 && ledger.unacknowledgedByteCount == 6)
        ledger.bytesAcknowledged(total: 15)
        #expect(ledger.unacknowledgedFrameCount == 0 && ledger.unacknowledgedByteCount == 5)
        ledger.frameAccepted(byteCount: 1)
        ledger.bytesAcknowledged(total: 20)
        #expect(ledger.unacknowledgedFrameCount == 1)
        ledger.bytesAcknowledged(total: 21)
        #expect(ledger.unacknowledgedFrameCount == 0 && ledger.unacknowledgedByteCount == 0)
    }

    @Test func senselessReportsChangeNothing() {
        var ledger = DeliveryLedger()
        ledger.bytesAcknowledged(total: .max)
        ledger.frameAccepted(byteCount: 0)
        ledger.frameAccepted(byteCount: -5)
        ledger.frameAccepted(byteCount: 5)
        #expect(ledger.unacknowledgedFrameCount == 1 && ledger.unacknowledgedByteCount == 5)
        ledger.bytesAcknowledged(total: 3)
        ledger.bytesAcknowledged(total: 0)
        #expect(ledger.unacknowledgedByteCount == 2, "acknowledged is acknowledged")
        ledger.bytesAcknowledged(total: .max)
        #expect(ledger.unacknowledgedFrameCount == 0 && ledger.unacknowledgedByteCount == 0)
        ledger.frameAccepted(byteCount: 7)
        #expect(ledger.unacknowledgedByteCount == 7, "what came after the report is not acknowledged by it")
    }

    @Test func theLargestLengths() {
        var ledger = DeliveryLedger()
        for length in [Int.max, 1, Int(UInt32.max) + 5, 127, 128] { ledger.frameAccepted(byteCount: length) }
        ledger.bytesAcknowledged(total: UInt64(Int.max) - 1)
        #expect(ledger.unacknowledgedFrameCount == 5)
        ledger.bytesAcknowledged(total: UInt64(Int.max) + 1)
        #expect(ledger.unacknowledgedFrameCount == 3)
        ledger.bytesAcknowledged(total: UInt64(Int.max) + 1 + UInt64(UInt32.max) + 5 + 127)
        #expect(ledger.unacknowledgedFrameCount == 1 && ledger.unacknowledgedByteCount == 128)
    }

    @Test func itAsksToBeTrimmedOver64KiB() {
        var ledger = DeliveryLedger()
        for _ in 0..<65_536 { ledger.frameAccepted(byteCount: 1) }
        #expect(!ledger.needsTrim)
        ledger.frameAccepted(byteCount: 1)
        #expect(ledger.needsTrim)
        ledger.bytesAcknowledged(total: 1)
        #expect(!ledger.needsTrim && ledger.unacknowledgedFrameCount == 65_536)
        ledger.bytesAcknowledged(total: 70_000)
        ledger.frameAccepted(byteCount: 1)
        #expect(ledger.unacknowledgedFrameCount == 1, "it goes on after its memory was given back")
    }

    /// Against the plain list: small and large frames, acknowledged in whole and in part, with bursts that grow the
    /// ring while its start is anywhere.
    @Test(arguments: 0..<100 as Range<UInt64>)
    func randomOperations(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var ledger = DeliveryLedger()
        var model = Model()
        for _ in 0..<400 {
            if Int.random(in: 0..<3, using: &random) > 0 {
                for _ in 0..<Int.random(in: 1...20, using: &random) {
                    let length = Int.random(in: 1...(1 << Int.random(in: 0...40, using: &random)), using: &random)
                    let pingLength = Int.random(in: 0...2, using: &random)
                    ledger.uncountedBytesAccepted(pingLength)
                    model.uncountedBytesAccepted(pingLength)
                    ledger.frameAccepted(byteCount: length)
                    model.frameAccepted(byteCount: length)
                }
            } else {
                let inFlight = model.total - model.acknowledged
                let total = model.acknowledged &- 5 &+ UInt64.random(in: 0...(inFlight + 10), using: &random)
                // Close to the start, the subtraction wraps around to a number that is too large.
                let report = min(total, model.total + 5)
                ledger.bytesAcknowledged(total: report)
                model.bytesAcknowledged(total: report)
            }
            #expect(ledger.unacknowledgedFrameCount == model.ends.count)
            #expect(ledger.unacknowledgedByteCount == model.total - model.acknowledged)
        }
    }
}
