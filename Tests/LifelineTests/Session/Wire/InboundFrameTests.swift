import Lifeline
import LifelineCore
import Testing

@Suite struct InboundFrameTests {
    private func read(_ bytes: [UInt8]) throws -> (kind: UInt32?, body: [UInt8]) {
        try bytes.withUnsafeBytes {
            let frame = try InboundFrame(parsing: $0)
            return (frame.kind?.rawValue, [UInt8](frame.body))
        }
    }

    private func frame(_ kind: UInt32?, _ body: [UInt8]) -> [UInt8] {
        wireBytes { FieldWriter.appendField(kind ?? 1, body, to: &$0) }
    }

    private let severalKinds = SessionViolation.undecodable("It has several kinds.")
    private let malformed = SessionViolation.undecodable("It is no protobuf message.")

    @Test func aFrameHasOneKindOrNone() throws {
        #expect(try read([]) == (nil, []))
        #expect(try read([0x42, 2, 7, 8]) == (8, [7, 8]))
        #expect(try read([0x7A, 0]) == (15, []))
        #expect(try read([0x82, 0x02, 1, 9]) == (32, [9]))
        // Kinds of later versions.
        #expect(try read([0xA2, 0x01, 0]) == (20, []))
        #expect(try read(Varint.encoded(UInt64(UInt32.max) & ~7 | 2) + [1, 5]) == ((1 << 29) - 1, [5]))
        for bytes in [[0x42, 0, 0x42, 0], [0x42, 0, 0x4A, 0], [0xA2, 0x01, 0, 0x42, 0]] as [[UInt8]] {
            #expect(throws: severalKinds) { try read(bytes) }
        }
    }

    @Test func otherWireTypesAreNoKinds() throws {
        let unknown: [UInt8] = [0x40, 5, 0x4D, 1, 2, 3, 4, 0x49, 1, 2, 3, 4, 5, 6, 7, 8, 0x53, 0x42, 0, 0x54]
        #expect(try read(unknown) == (nil, []))
        #expect(try read(unknown + [0x42, 1, 3] + unknown) == (8, [3]))
    }

    @Test func aMalformedFrameThrows() {
        let malformedFrames: [[UInt8]] = [
            [0x42], [0x42, 2, 0], [0x42, 0, 0], [0], [0x44], [0x46], [0x43], [2, 0], [0x42, 0x80],
        ]
        for bytes in malformedFrames {
            #expect(throws: malformed) { try read(bytes) }
        }
    }

    @Test func cutFramesThrowOrAreWhole() throws {
        for frame in sampleFrames {
            #expect(readsWhole(frame))
            let whole = try read(frame)
            for count in 1..<frame.count {
                #expect(throws: malformed) { try read(Array(frame.prefix(count))) }
                // The body is cut at the same place.
                guard count <= whole.body.count else { continue }
                readsWhole(self.frame(whole.kind, Array(whole.body[..<count])))
            }
        }
    }

    @Test(arguments: 0..<4)
    func mutatedFramesNeverTrap(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var validCount = 0
        for _ in 0..<20_000 {
            var frame = sampleFrames.randomElement(using: &random) ?? []
            for _ in 0..<Int.random(in: 1...4, using: &random) where !frame.isEmpty {
                // Most bytes that are not content are at the front.
                let end = Bool.random(using: &random) ? min(frame.count, 24) : frame.count
                let index = Int.random(in: 0..<end, using: &random)
                switch UInt8.random(in: 0...4, using: &random) {
                case 0: frame[index] = .random(in: 0...255, using: &random)
                case 1: frame[index] ^= 1 << UInt8.random(in: 0...7, using: &random)
                case 2: frame.remove(at: index)
                case 3: frame.insert(.random(in: 0...255, using: &random), at: index)
                default: frame.removeSubrange(index...)
                }
            }
            if readsWhole(frame) { validCount += 1 }
        }
        // Some changes are harmless, and most are not.
        #expect((100..<19_900).contains(validCount))
    }

    @Test func mutatedBodiesNeverTrap() throws {
        var random = SplitMix64(seed: 9)
        for _ in 0..<20_000 {
            let frame = sampleFrames.randomElement(using: &random) ?? []
            var (kind, body) = try read(frame)
            for _ in 0..<Int.random(in: 1...3, using: &random) where !body.isEmpty {
                body[.random(in: 0..<min(body.count, 40), using: &random)] = .random(in: 0...255, using: &random)
            }
            readsWhole(self.frame(kind, body))
        }
    }
}
