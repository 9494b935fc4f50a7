import LifelineTestSupport
import Testing

@testable import LifelineCore

/// A header is refused at the byte that makes it invalid, however it is split.
@Suite struct WebSocketHeaderCheckerTests {
    private static let toServer = WebSocketFrameRules(role: .server, receivesMessages: true)
    private static let toClient = WebSocketFrameRules(role: .client, receivesMessages: true)
    private static let frames = WebSocketFrameRules(role: .server, receivesMessages: false)

    @Test(
        arguments: [
            // Reserved bits and opcodes.
            ([0xC1], .protocolError, toServer), ([0xA2], .protocolError, toServer), ([0x90], .protocolError, toServer),
            ([0x83], .protocolError, toServer), ([0x07], .protocolError, toServer), ([0x8B], .protocolError, toServer),
            // Fragmented and long control frames.
            ([0x09], .protocolError, toServer), ([0x89, 0xFE], .protocolError, toServer),
            ([0x88, 0x7F], .protocolError, toClient),
            // Masking.
            ([0x82, 0x05], .protocolError, toServer), ([0x82, 0x85], .protocolError, toClient),
            // Text.
            ([0x81], .unsupportedData, frames), ([0x01], .unsupportedData, frames),
            // Lengths.
            ([0x82, 0xFE, 0x00, 0x7D], .protocolError, toServer), ([0x82, 0x7E, 0x00, 0x00], .protocolError, toClient),
            ([0x82, 0xFF, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF], .protocolError, toServer),
            ([0x82, 0x7F, 0, 0, 0, 0, 0, 0, 0, 0x01], .protocolError, toClient),
            ([0x82, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0], .protocolError, toServer),
        ] as [([UInt8], WebSocketCloseCode, WebSocketFrameRules)]
    )
    func violationsAreSeenAtTheirByteForEverySplit(
        header: [UInt8],
        code: WebSocketCloseCode,
        rules: WebSocketFrameRules
    ) {
        let isMasked = rules.role == .server
        let good: [UInt8] = [0x82, isMasked ? 0x82 : 0x02] + (isMasked ? [1, 2, 3, 4] : []) + [9, 9]
        let bytes = good + header + [0xFF, 0xFF, 0xFF]
        let valid = good.count + header.count - 1
        for split in 0...bytes.count {
            var checker = WebSocketHeaderChecker(rules)
            let first = check(bytes[..<split], &checker)
            let second = check(bytes[split...], &checker)
            let violation = first.violation ?? second.violation
            #expect(violation?.code == code, "split at \(split)")
            #expect(first.violation == nil ? split + second.validCount == valid : first.validCount == valid)
            #expect(first.violation == nil || (second.validCount, second.violation) == (0, nil), "told once")
        }
    }

    @Test(arguments: [0, 1, 125, 126, 127, 128, 65_535, 65_536, 65_537])
    func lengthsInAsFewBytesAsTheyNeed(length: Int) {
        for rules in [Self.toServer, Self.toClient] {
            let bytes = frame(length, rules, first: 0x82) + frame(0, rules, first: 0x89)
            var checker = WebSocketHeaderChecker(rules)
            let result = check(bytes[...], &checker)
            #expect(result.validCount == bytes.count && result.violation == nil)
            // The position of the next header is known.
            #expect(check([0xF0], &checker).violation?.code == .protocolError)
        }
    }

    @Test func randomFramesInRandomSplits() {
        var random = SeededGenerator(seed: 7)
        for _ in 0..<500 {
            let rules = [Self.toServer, Self.toClient, Self.frames].randomElement(using: &random)!
            var bytes: [UInt8] = []
            for _ in 0..<8 {
                let first: UInt8 = [0x82, 0x02, 0x00, 0x80, 0x89, 0x8A, 0x88].randomElement(using: &random)!
                let maximum = first >= 0x88 ? 125 : [10, 300, 70_000].randomElement(using: &random)!
                bytes += frame(Int.random(in: 0...maximum, using: &random), rules, first: first)
            }
            let bad = bytes.count
            bytes += [0x82, rules.role == .server ? 0x00 : 0x80]
            var checker = WebSocketHeaderChecker(rules)
            var (position, violation): (Int, WebSocketClosure?) = (0, nil)
            while position < bytes.count, violation == nil {
                let count = Int.random(in: 1...[1, 20, 100_000].randomElement(using: &random)!, using: &random)
                let result = check(bytes[position...].prefix(count), &checker)
                position += result.validCount
                violation = result.violation
            }
            #expect(position == bad + 1 && violation?.code == .protocolError)
        }
    }

    private func frame(_ length: Int, _ rules: WebSocketFrameRules, first: UInt8) -> [UInt8] {
        let mask: UInt8 = rules.role == .server ? 0x80 : 0
        let header: [UInt8] =
            switch length {
            case ...125: [mask | UInt8(length)]
            case ...65_535: [mask | 126] + bigEndian(length, byteCount: 2)
            default: [mask | 127] + bigEndian(length, byteCount: 8)
            }
        return [first] + header + (mask == 0 ? [] : [0xF0, 0xF1, 0xF2, 0xF3]) + [UInt8](repeating: 0xFF, count: length)
    }

    private func bigEndian(_ number: Int, byteCount: Int) -> [UInt8] {
        (0..<byteCount).reversed().map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    }

    private func check(
        _ bytes: ArraySlice<UInt8>,
        _ checker: inout WebSocketHeaderChecker
    ) -> (validCount: Int, violation: WebSocketClosure?) {
        Array(bytes).withUnsafeBytes { checker.check($0) }
    }
}
