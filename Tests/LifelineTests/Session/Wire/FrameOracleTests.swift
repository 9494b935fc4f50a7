import LifelineCore
import Testing

/// Compares the hand-written parser with the code that is generated from the same messages.
struct FrameOracleTests {
    @Test func sampleFramesOfAllKindsAgree() {
        for frame in sampleFrames { expectAgreement(frame, isValid: true) }
    }

    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func damagedFramesAgree(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<5_000 {
            var frame = sampleFrames.randomElement(using: &random) ?? []
            for _ in 0..<Int.random(in: 1...3, using: &random) { damage(&frame, &random) }
            expectAgreement(frame, isValid: false)
        }
    }

    private func damage(_ frame: inout [UInt8], _ random: inout SplitMix64) {
        guard !frame.isEmpty else { return frame.append(0x42) }
        // The tags and lengths are at the front.
        let index = min(
            Int.random(in: 0..<frame.count, using: &random),
            Int.random(in: 0..<frame.count, using: &random)
        )
        switch Int.random(in: 0..<5, using: &random) {
        case 0: frame[index] = UInt8.random(in: 0...255, using: &random)
        case 1: frame[index] ^= 1 << UInt8.random(in: 0...7, using: &random)
        case 2: frame.remove(at: index)
        case 3: frame.insert(UInt8.random(in: 0...255, using: &random), at: index)
        default: frame.removeLast(frame.count - index)
        }
    }

    private func expectAgreement(_ frame: [UInt8], isValid: Bool) {
        // There are hundreds of thousands, so `#expect` would be too slow.
        for disagreement in FrameOracle.disagreements(frame, isValid: isValid) {
            Issue.record("\(disagreement): \(frame)")
        }
    }
}
