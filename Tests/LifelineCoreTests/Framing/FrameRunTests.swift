import LifelineCore
import LifelineTestSupport
import Testing

@Suite struct FrameRunTests {
    struct Vector: Sendable, CustomTestStringConvertible {
        let bytes: [UInt8]
        var payloads: [[UInt8]] = []
        var code: FramingError.Code?
        var testDescription: String { "\(bytes)" }
    }

    private static let vectors = [
        Vector(bytes: [0, 0, 0], payloads: [[], [], []]),
        Vector(bytes: [0x80, 0x80, 0x80, 0x80]),
        Vector(bytes: [0x80, 0x80, 0x80, 0x80, 0x80, 0x01], code: .malformedPrefix),
        Vector(bytes: [0xFF, 0xFF, 0xFF, 0xFF, 0x0F], code: .frameTooLarge),
        Vector(bytes: [0xFF, 0xFF, 0xFF, 0xFF, 0x1F], code: .malformedPrefix),
        Vector(bytes: [0x80, 0x00], payloads: [[]]),
        Vector(bytes: [0x81, 0x80, 0x80, 0x80, 0x00, 7, 0x00], payloads: [[7], []]),
        Vector(bytes: [1, 2, 0, 0x80, 0x80, 0x80, 0x80, 0x10], payloads: [[2], []], code: .malformedPrefix),
    ]

    @Test(arguments: vectors) func vector(_ vector: Vector) {
        for chunks in [[vector.bytes], vector.bytes.map { [$0] }] {
            let (runs, error) = runs(in: chunks)
            #expect(runs.flatMap { $0 } == vector.payloads)
            #expect(error?.code == vector.code)
        }
    }

    @Test func aTwoMebibyteFrameSplitAfterItsThirdByte() {
        let body = payload(2 << 20)
        let (runs, error) = runs(in: [[0x80, 0x80, 0x80], [0x01] + body + [0x00]])
        #expect(error == nil)
        #expect(runs == [[body], [[]]])
    }

    @Test func framesThatArePassedOverTellTheirLengths() {
        let bytes = frame(3) + frame(300) + frame(0) + [0x81, 0x80, 0x00, 7]
        let lengths = bytes.withUnsafeBytes { bytes in
            var frames = FrameRun(unchecked: bytes, count: 4).makeIterator()
            return (0..<5).map { _ in frames.skip() }
        }
        #expect(lengths == [4, 302, 1, 4, nil])
    }

    @Test func adjacentFramesAreOneRun() {
        let whole = frame(3) + frame(300) + frame(0)
        #expect(runs(in: [whole, whole]).runs.map(\.count) == [3, 3])
        // The frame that spans two chunks is copied to its own memory.
        let split = runs(in: [Array((whole + whole).prefix(100)), Array((whole + whole).dropFirst(100))])
        #expect(split.runs.map(\.count) == [1, 1, 4])
    }

    @Test(arguments: UInt64(0)..<200) func randomSplitsGiveWhatTheDecoderFinds(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var bytes: [UInt8] = []
        for _ in 0..<Int.random(in: 0...80, using: &random) {
            let lengths = [0, 1, 126, 127, 128, 300, Int.random(in: 0...20_000, using: &random)]
            let length = lengths.randomElement(using: &random) ?? 0
            bytes += frame(length, seed: .random(in: 0...255, using: &random))
        }
        if Bool.random(using: &random) { bytes += (0..<6).map { _ in .random(in: 0...255, using: &random) } }
        let expected = decoded(bytes)
        var rest = bytes[...]
        var chunks: [[UInt8]] = []
        while !rest.isEmpty {
            let count = Int.random(in: 0...Int.random(in: 1...30_000, using: &random), using: &random)
            chunks.append(Array(rest.prefix(count)))
            rest = rest.dropFirst(count)
        }
        let (runs, error) = runs(in: chunks)
        #expect(runs.flatMap { $0 } == expected.payloads)
        #expect(error == expected.error)
        #expect(runs.count <= 2 * chunks.count, "at most the one that straddled, and the rest")
    }

    // MARK: -

    private static let decoder = FrameDecoder(maximumFrameLength: 4 << 20)

    /// Returns the payloads of each run, and the error that ended the stream early.
    private func runs(in chunks: [[UInt8]]) -> (runs: [[[UInt8]]], error: FramingError?) {
        var assembler = FrameAssembler(decoder: Self.decoder)
        var sink = Runs()
        do {
            for chunk in chunks { try assembler.receive(chunk, into: &sink) }
            return (sink.payloads, nil)
        } catch {
            return (sink.payloads, error as? FramingError)
        }
    }

    /// Decodes frame by frame from the complete input.
    private func decoded(_ bytes: [UInt8]) -> (payloads: [[UInt8]], error: FramingError?) {
        var payloads: [[UInt8]] = []
        var offset = 0
        do {
            while offset < bytes.count, case .frame(let place) = try Self.decoder.nextFrame(in: bytes, from: offset) {
                payloads.append(Array(bytes[place]))
                offset = place.upperBound
            }
            return (payloads, nil)
        } catch {
            return (payloads, error as? FramingError)
        }
    }
}

/// Keeps the payloads of each run.
private struct Runs: FrameRunSink {
    var payloads: [[[UInt8]]] = []

    mutating func receive(_ run: FrameRun) {
        let frames = run.map { Array($0) }
        #expect(frames.count == run.count)
        #expect(run.byteCount >= frames.reduce(0) { $0 + $1.count + 1 })
        payloads.append(frames)
    }
}
