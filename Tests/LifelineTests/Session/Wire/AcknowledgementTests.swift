import LifelineCore
import Testing

@testable import Lifeline

@Suite struct AcknowledgementTests {
    private func read(_ body: [UInt8]) throws -> Acknowledgement {
        try body.withUnsafeBytes { try Acknowledgement(parsing: $0) }
    }

    private func packed(_ numbers: [UInt64]) -> [UInt8] {
        let content = numbers.flatMap(Varint.encoded)
        return [0x1A] + Varint.encoded(UInt64(content.count)) + content
    }

    @Test func theBytesAreThoseOfTheProtocol() throws {
        let acknowledgement = Acknowledgement(ordinary: 5, urgent: 1, ranges: [7...7, 10...12])
        let bytes = wireBytes { acknowledgement.write(to: &$0) }
        #expect(bytes == [12, 0x32, 10, 0x08, 5, 0x10, 1, 0x1A, 4, 1, 1, 2, 3])
        #expect(try read(frameBody(.acknowledgement, bytes)) == acknowledgement)
        #expect(wireBytes { Acknowledgement().write(to: &$0) } == [2, 0x32, 0])
        #expect(wireBytes { Acknowledgement(urgent: 300).write(to: &$0) } == [5, 0x32, 3, 0x10, 0xAC, 2])
    }

    @Test func rangesArePackedOrNotAndStandAnywhere() throws {
        let expected = Acknowledgement(ordinary: 5, urgent: 0, ranges: [7...7, 10...12])
        #expect(try read([0x18, 1, 0x18, 1, 0x18, 2, 0x18, 3, 0x08, 5]) == expected)
        #expect(try read(packed([1]) + [0x18, 1] + packed([2, 3]) + packed([]) + [0x08, 5]) == expected)
        #expect(try read([0x08, 9, 0x08, 5, 0x22, 1, 0xFF, 0x1D, 1, 2, 3, 4, 0x1A, 4, 1, 1, 2, 3]) == expected)
    }

    @Test func randomAcknowledgementsComeBack() throws {
        var random = SplitMix64(seed: 1)
        func number(_ bits: Int) -> UInt64 { random.next() >> UInt64(64 - Int.random(in: 1...bits, using: &random)) }
        for _ in 0..<500 {
            var acknowledgement = Acknowledgement(ordinary: number(50), urgent: number(64))
            var last = acknowledgement.ordinary
            for _ in 0..<Int.random(in: 0...40, using: &random) {
                let start = last + 2 + number(50)
                last = start + number(50)
                acknowledgement.ranges.append(start...last)
            }
            let bytes = try frameBody(.acknowledgement, wireBytes { acknowledgement.write(to: &$0) })
            #expect(try read(bytes) == acknowledgement)
        }
    }

    @Test func theLastPlaceIsTheHighestNumber() throws {
        #expect(try read([0x08] + Varint.encoded(.max)).ordinary == .max)
        let highest = Acknowledgement(ordinary: .max - 3, ranges: [.max - 1 ... .max])
        #expect(try read(frameBody(.acknowledgement, wireBytes { highest.write(to: &$0) })) == highest)
    }

    @Test func rangesThatBreakTheRulesThrow() {
        let broken: [[UInt64]] = [
            [1], [1, 1, 1], [0, 1], [1, 0], [1, 1, 0, 1], [1, 1, 1, 0], [.max, 1], [1, .max], [.max, .max],
            [5, 5, .max, 1],
        ]
        for numbers in broken {
            #expect(throws: SessionViolation.self, "\(numbers)") { try read(packed(numbers)) }
            #expect(throws: SessionViolation.self, "\(numbers)") {
                try read(numbers.flatMap { [0x18] + Varint.encoded($0) })
            }
        }
        let highest: [UInt8] = [0x08] + Varint.encoded(.max)
        #expect(throws: SessionViolation.self) { try read(highest + packed([1, 1])) }
        #expect(throws: SessionViolation.undecodable("It is no protobuf message.")) { try read([0x1A, 2, 1, 0x80]) }
    }

    @Test func aFrameHasAtMost1024Ranges() throws {
        let most = [UInt64](repeating: 1, count: 2_048)
        #expect(try read(packed(most)).ranges.count == 1_024)
        #expect(throws: SessionViolation.self) { try read(packed(most + [1, 1])) }
        #expect(throws: SessionViolation.self) { try read(packed(most) + [0x18, 1]) }
        let acknowledgement = try read(packed(most))
        #expect(try read(frameBody(.acknowledgement, wireBytes { acknowledgement.write(to: &$0) })) == acknowledgement)
    }

    @Test func rangesWithoutGapsAreNotWritten() async {
        await #expect(processExitsWith: .failure) {
            var bytes: [UInt8] = []
            Acknowledgement(ordinary: 5, ranges: [6...7]).write(to: &bytes)
        }
    }

    /// As many ranges as the limit allows fit into a frame, however far apart they are.
    @Test(arguments: [4 << 10, 16 << 10, 4 << 20]) func asManyRangesAsTheLimitSaysFitIntoAFrame(frameLimit: Int) {
        let count = Acknowledgement.rangeLimit(frameLimit: frameLimit)
        #expect(count > 100)
        let step = UInt64.max / UInt64(2 * count + 2)
        var ranges: [ClosedRange<UInt64>] = []
        for number in 1...UInt64(count) {
            let start = 2 * number * step
            ranges.append(start...start + step - 1)
        }
        var bytes: [UInt8] = []
        Acknowledgement(ordinary: step, urgent: .max, ranges: ranges).write(to: &bytes)
        #expect(bytes.count <= frameLimit)
    }
}
