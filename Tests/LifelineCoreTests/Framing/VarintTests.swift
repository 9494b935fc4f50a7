import LifelineCore
import Testing

/// Each length of prefix, at both ends of its range.
private let boundaries: [(value: UInt32, length: Int)] = [
    (0, 1), (1, 1), (127, 1), (128, 2), (16_383, 2), (16_384, 3), (2_097_151, 3), (2_097_152, 4),
    (268_435_455, 4), (268_435_456, 5), (.max, 5),
]

@Suite struct VarintTests {
    @Test(arguments: boundaries)
    func roundTripsAtTheBoundsOfEachLength(value: UInt32, length: Int) {
        var bytes = [UInt8](repeating: 0xAA, count: Varint.maximumLength)
        let written = bytes.withUnsafeMutableBytes { Varint.encode(UInt64(value), into: $0) }
        #expect(written == length)
        #expect(Varint.encodedLength(of: UInt64(value)) == length)
        #expect(Array(bytes[..<written]) == leb128(UInt64(value)))
        #expect(bytes[written...].allSatisfy { $0 == 0xAA })
        #expect(bytes.withUnsafeBytes { Varint.decode($0) } == .value(value, length: length))
    }

    @Test(arguments: [1 << 32, 1 << 35 - 1, 1 << 35, 1 << 63 - 1, 1 << 63, .max] as [UInt64])
    func writesLongOnes(value: UInt64) {
        let bytes = Varint.encoded(value)
        #expect(bytes == leb128(value) && bytes.count == Varint.encodedLength(of: value))
    }

    @Test(arguments: boundaries)
    func waitsForTheRestOfEachLength(value: UInt32, length: Int) {
        let bytes = leb128(UInt64(value))
        for count in 0..<length {
            #expect(bytes[..<count].withUnsafeBytes { Varint.decode($0) } == .incomplete)
        }
    }

    @Test func acceptsLongerFormsThanNeeded() {
        for (bytes, value) in [([0x80, 0x00], 0), ([0x81, 0x80, 0x00], 1), ([0xFF, 0x80, 0x80, 0x80, 0x00], 127)]
            as [([UInt8], UInt32)]
        {
            #expect(bytes.withUnsafeBytes { Varint.decode($0) } == .value(value, length: bytes.count))
        }
    }

    @Test(arguments: UInt8(0x10)...0xFF)
    func refusesAFifthByteWithMoreThanFourBits(fifth: UInt8) {
        #expect([0x80, 0x80, 0x80, 0x80, fifth].withUnsafeBytes { Varint.decode($0) } == .malformed)
    }

    @Test func readsAtAnOffset() {
        let bytes: [UInt8] = [0xFF, 0xAC, 0x02, 0x07]
        #expect(bytes.withUnsafeBytes { Varint.decode($0, at: 1) } == .value(300, length: 2))
        #expect(bytes.withUnsafeBytes { Varint.decode($0, at: 4) } == .incomplete)
    }
}
