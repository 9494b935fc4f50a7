import LifelineTestSupport
import Testing

@testable import LifelineCore

@Suite struct WebSocketEncodingTests {
    /// RFC 4648, section 10.
    @Test(
        arguments: [
            ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ]
    )
    func base64(text: String, encoded: String) {
        #expect(Base64.encode(text.utf8) == encoded)
        #expect(Base64.decode(encoded) == Array(text.utf8))
    }

    @Test(arguments: ["Z", "Zg", "Zg=", "Zg===", "Z===", "====", "Zh==", "Zm9=", "Z g=", "Zm9v\n", "Zg==Zg==", "Zm-_"])
    func noBase64(text: String) {
        #expect(Base64.decode(text) == nil)
    }

    @Test func base64RoundTrips() {
        var random = SeededGenerator(seed: 1)
        for length in 0..<200 {
            let bytes = random.bytes(length)
            #expect(Base64.decode(Base64.encode(bytes)) == bytes)
        }
    }

    // MARK: UTF-8

    /// The result for the pieces agrees with the standard library's for the whole, and an error comes as soon as no
    /// text can begin like this.
    @Test func textsInEverySplit() {
        let texts: [[UInt8]] = [
            Array("Grüezi 日本語 🎉 \u{10FFFF}\u{0}".utf8), [0xC0, 0xAF], [0xE0, 0x80, 0x80], [0xED, 0xA0, 0x80],
            [0xF0, 0x80, 0x80, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80], [0xFF], [0x80], [0xC2], [0xE2, 0x82],
            [0xF0, 0x9F, 0x8E], [0x61, 0xC2, 0x61], [0xED, 0x9F, 0xBF, 0xEE, 0x80, 0x80], Array("12345678é".utf8),
        ]
        for text in texts {
            let isValid = String(validating: text, as: UTF8.self) != nil
            for first in 0...text.count {
                for second in first...text.count {
                    var validator = UTF8Validator()
                    let pieces = [text[..<first], text[first..<second], text[second...]]
                    let isAccepted = pieces.allSatisfy { piece in Array(piece).withUnsafeBytes { validator.accepts($0) }
                    }
                    #expect((isAccepted && validator.isAtBoundary) == isValid)
                }
            }
        }
    }

    @Test func randomBytesAreJudgedAsTheStandardLibraryDoes() {
        var random = SeededGenerator(seed: 2)
        let pieces: [[UInt8]] = [
            [0x41], [0xC3, 0xA9], [0xE2, 0x82, 0xAC], [0xF0, 0x9F, 0x8E, 0x89], [0xC3], [0x80], [0xED, 0xA0, 0x80],
        ]
        var counts = [0, 0]
        for _ in 0..<20_000 {
            let length = Int.random(in: 0...12, using: &random)
            let kinds = Bool.random(using: &random) ? 4 : pieces.count
            let text = (0..<length).flatMap { _ in pieces[Int.random(in: 0..<kinds, using: &random)] }
            let isValid = String(validating: text, as: UTF8.self) != nil
            var validator = UTF8Validator()
            let isAccepted = text.withUnsafeBytes { validator.accepts($0) } && validator.isAtBoundary
            #expect(isAccepted == isValid)
            counts[isValid ? 1 : 0] += 1
        }
        #expect(counts.allSatisfy { $0 > 1000 })
    }

    @Test func aBadTextIsNoticedAtItsFirstBadByte() {
        var validator = UTF8Validator()
        #expect(([0xF4] as [UInt8]).withUnsafeBytes { validator.accepts($0) })
        #expect(!([0x90] as [UInt8]).withUnsafeBytes { validator.accepts($0) }, "before the character is whole")
    }

    // MARK: Runs of frames

    @Test func framesAreCutIntoRunsOfWholeFrames() {
        var random = SeededGenerator(seed: 3)
        for _ in 0..<500 {
            let maximum = Int.random(in: 1...400, using: &random)
            let lengths = (0..<Int.random(in: 1...20, using: &random)).map { _ in
                Int.random(in: 0...300, using: &random)
            }
            var bytes: [UInt8] = []
            var ends: Set<Int> = []
            for length in lengths {
                bytes += Varint.encoded(UInt64(length)) + [UInt8](repeating: 0xFF, count: length)
                ends.insert(bytes.count)
            }
            var start = 0
            while start < bytes.count {
                let length = Array(bytes[start...]).withUnsafeBytes {
                    FrameRuns.nextLength(in: $0, maximumLength: maximum)
                }
                #expect(length > 0 && ends.contains(start + length))
                let framesInside = ends.count { $0 > start && $0 <= start + length }
                #expect(length <= maximum || framesInside == 1)
                let next = ends.filter { $0 > start + length }.min()
                #expect(next.map { $0 - start > maximum } ?? true, "as many as fit")
                start += length
            }
        }
    }

    @Test func bytesWithoutAWholeFrameAreOneRun() {
        #expect(([0x80, 0x80] as [UInt8]).withUnsafeBytes { FrameRuns.nextLength(in: $0, maximumLength: 1) } == 2)
        #expect(([0x05, 0x00] as [UInt8]).withUnsafeBytes { FrameRuns.nextLength(in: $0, maximumLength: 1) } == 2)
    }
}
