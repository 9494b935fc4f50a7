import LifelineCore
import Testing

@Suite struct FrameDecoderTests {
    let decoder = FrameDecoder(maximumFrameLength: 4 << 20)

    @Test func findsPayloadsOneAfterTheOther() throws {
        let bytes: [UInt8] = [0x00, 0x03, 0x61, 0x62, 0x63, 0x02, 0x64]
        #expect(try decoder.nextFrame(in: bytes) == .frame(payload: 1..<1))
        #expect(try decoder.nextFrame(in: bytes, from: 1) == .frame(payload: 2..<5))
        #expect(try decoder.nextFrame(in: bytes, from: 5) == .incomplete(missing: 1))
        #expect(try decoder.nextFrame(in: bytes, from: 7) == .incomplete(missing: 1))
    }

    @Test func saysHowMuchOfABodyIsMissing() throws {
        #expect(try decoder.nextFrame(in: [0xAC, 0x02]) == .incomplete(missing: 300))
        #expect(try decoder.nextFrame(in: [0xAC, 0x02] + payload(299)) == .incomplete(missing: 1))
        #expect(try decoder.nextFrame(in: [0xAC, 0x02] + payload(300)) == .frame(payload: 2..<302))
    }

    /// A prefix is checked when it is complete, before any byte of the body arrives.
    @Test(arguments: [0, 1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152, 268_435_455, 268_435_456])
    func enforcesTheLimitExactly(limit: Int) throws {
        let decoder = FrameDecoder(maximumFrameLength: limit)
        let expected: FrameDecoder.Step = limit == 0 ? .frame(payload: 1..<1) : .incomplete(missing: limit)
        #expect(try decoder.nextFrame(in: leb128(UInt64(limit))) == expected)
        let error = #expect(throws: FramingError.self) { try decoder.nextFrame(in: leb128(UInt64(limit) + 1)) }
        #expect(error?.code == .frameTooLarge)
        #expect(error?.message.contains("\(limit + 1)") == true, "the message names the declared length")
        #expect(error?.message.contains("of \(limit).") == true, "the message names the limit")
    }

    @Test func takesTheLargestLengthThatAPrefixCanDeclare() throws {
        let decoder = FrameDecoder(maximumFrameLength: Int(UInt32.max))
        #expect(try decoder.nextFrame(in: [0xFF, 0xFF, 0xFF, 0xFF, 0x0F]) == .incomplete(missing: Int(UInt32.max)))
    }

    @Test func clampsLimits() {
        #expect(FrameDecoder(maximumFrameLength: -1).maximumFrameLength == 0)
        #expect(FrameDecoder(maximumFrameLength: .min).maximumFrameLength == 0)
        #expect(FrameDecoder(maximumFrameLength: .max).maximumFrameLength == Int(UInt32.max))
    }
}

@Suite struct FrameEncoderTests {
    @Test(arguments: [0, 1, 100])
    func refusesAPayloadOverTheLimit(limit: Int) throws {
        let encoder = FrameEncoder(maximumFrameLength: limit)
        try encoder.checkPayload(ofLength: limit)
        try frame(limit).withUnsafeBytes { try encoder.checkFrame($0) }
        let error = #expect(throws: FramingError.self) { try encoder.checkPayload(ofLength: limit + 1) }
        #expect(error?.code == .payloadTooLarge, "local misuse has a code of its own")
        #expect(throws: FramingError.self) { try frame(limit + 1).withUnsafeBytes { try encoder.checkFrame($0) } }
    }

    @Test(arguments: [[], [0x80], [2, 9], [1, 9, 9], [0x81, 0x00]])
    func refusesAFrameOfAnotherLengthThanItsPrefixSays(frame: [UInt8]) {
        let encoder = FrameEncoder(maximumFrameLength: 100)
        let error = #expect(throws: FramingError.self) { try frame.withUnsafeBytes { try encoder.checkFrame($0) } }
        #expect(error?.code == .malformedPrefix)
    }
}
