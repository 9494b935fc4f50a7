import LifelineCore
import LifelineTestSupport
import Testing

@Suite struct FrameAssemblerTests {
    // MARK: The golden vectors

    @Test func threeEmptyMessages() throws {
        #expect(try frames(in: [[0, 0, 0]]) == [[], [], []])
    }

    @Test func prefixOfTwoMebibytesSplitAfterItsThirdByte() throws {
        let body = payload(2 << 20)
        #expect(try frames(in: [[0x80, 0x80, 0x80], [0x01] + body]) == [body])
    }

    @Test func unfinishedPrefixWaits() throws {
        #expect(try frames(in: [[0x80, 0x80, 0x80, 0x80]], isWhole: false) == [])
    }

    @Test func sixthByteIsMalformed() {
        expectFailure(.malformedPrefix, in: [0x80, 0x80, 0x80, 0x80, 0x80, 0x01])
    }

    @Test func hugeLengthIsRefusedBeforeAnyBody() {
        expectFailure(.frameTooLarge, in: [0xFF, 0xFF, 0xFF, 0xFF, 0x0F])
    }

    @Test func thirtyThirdBitIsMalformed() {
        expectFailure(.malformedPrefix, in: [0xFF, 0xFF, 0xFF, 0xFF, 0x1F])
    }

    @Test func longerFormOfZeroIsAnEmptyMessage() throws {
        #expect(try frames(in: [[0x80, 0x00]]) == [[]])
    }

    @Test(arguments: [[0x80], [0x05], [0x05, 1, 2, 3, 4], [0x00, 0x80, 0x80, 0x80, 0x80]] as [[UInt8]])
    func endOfStreamInsideAFrameIsTruncation(bytes: [UInt8]) throws {
        var assembler = FrameAssembler(limit: 4 << 20)
        var sink = Frames()
        try assembler.receive(bytes, into: &sink)
        #expect(throws: FramingError.self) { try assembler.finish() }
        do { try assembler.finish() } catch { #expect(error.code == .truncatedFrame) }
    }

    // MARK: Splits

    /// Empty frames, short ones, long forms of prefixes, and each prefix length that fits a test run at every split.
    private static let corpus: (bytes: [UInt8], payloads: [[UInt8]]) = {
        let lengths = [0, 1, 0, 0, 2, 127, 128, 129, 5, 300, 0]
        var bytes: [UInt8] = []
        var payloads: [[UInt8]] = []
        for (index, length) in lengths.enumerated() {
            bytes += frame(length, seed: UInt8(index))
            payloads.append(payload(length, seed: UInt8(index)))
        }
        bytes += [0x80, 0x80, 0x00, 0x81, 0x00, 0x07]
        payloads += [[], [7]]
        return (bytes, payloads)
    }()

    @Test func everySplitInTwo() throws {
        let (bytes, payloads) = Self.corpus
        for split in 0...bytes.count {
            #expect(try frames(in: [Array(bytes[..<split]), Array(bytes[split...])]) == payloads, "split at \(split)")
        }
    }

    @Test func byteByByte() throws {
        #expect(try frames(in: Self.corpus.bytes.map { [$0] }) == Self.corpus.payloads)
    }

    @Test(arguments: UInt64(0)..<200)
    func randomSplits(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let lengths = (0..<50).map { _ in Int.random(in: 0...Int.random(in: 0...20_000, using: &random), using: &random)
        }
        var rest = lengths.flatMap { frame($0) }[...]
        var chunks: [[UInt8]] = []
        while !rest.isEmpty {
            let count = Int.random(in: 0...Int.random(in: 1...60_000, using: &random), using: &random)
            chunks.append(Array(rest.prefix(count)))
            rest = rest.dropFirst(count)
        }
        #expect(try frames(in: chunks) == lengths.map { payload($0) })
    }

    /// A frame that begins within a part is taken with it, even if it spans chunks. Other frames are not.
    @Test(arguments: UInt64(0)..<100) func partsOfChunks(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let lengths = (0..<100).map { _ in Int.random(in: 0...Int.random(in: 0...400, using: &random), using: &random) }
        var rest = lengths.flatMap { frame($0) }[...]
        var assembler = FrameAssembler(limit: 1 << 20)
        var sink = Frames()
        while !rest.isEmpty {
            var chunk = rest.prefix(Int.random(in: 1...3_000, using: &random))
            rest = rest.dropFirst(chunk.count)
            while !chunk.isEmpty {
                let (length, before) = (Int.random(in: 1...500, using: &random), sink.payloads.count)
                let isAtBoundary = assembler.pendingLength == 0
                let taken = try Array(chunk).withUnsafeBytes {
                    try assembler.receivePart(of: $0, limit: PartLimit(byteCount: length), into: &sink)
                }
                try #require(taken > 0)
                let last = sink.payloads.last.map { $0.count + leb128(UInt64($0.count)).count } ?? 0
                if isAtBoundary, sink.payloads.count > before, assembler.pendingLength == 0 {
                    #expect(taken - last < length, "the last one began within the part")
                }
                #expect(taken == chunk.count || taken >= length, "the part was taken whole")
                chunk = chunk.dropFirst(taken)
            }
        }
        try assembler.finish()
        #expect(sink.payloads == lengths.map { payload($0) })
    }

    @Test func bytesBehindAPartAreNotRead() throws {
        var assembler = FrameAssembler(limit: 10)
        var sink = Frames()
        let bytes: [UInt8] = [0x01, 0xA1, 0x00, 0x0B]
        let taken = try bytes.withUnsafeBytes {
            try assembler.receivePart(of: $0, limit: PartLimit(byteCount: 3), into: &sink)
        }
        #expect(taken == 3)
        #expect(sink.payloads == [[0xA1], []])
        #expect(throws: FramingError.self) { try assembler.receive(bytes[taken...], into: &sink) }
    }

    /// The frames follow one that began in an earlier chunk.
    @Test func aPartHasSoManyFrames() throws {
        var assembler = FrameAssembler(limit: 10)
        var sink = Frames()
        try assembler.receive([0x02, 0xA1], into: &sink)
        let bytes: [UInt8] = [0xA2, 0x00, 0x01, 0xB1, 0x00]
        let taken = try bytes.withUnsafeBytes {
            try assembler.receivePart(of: $0, limit: PartLimit(frameCount: 2), into: &sink)
        }
        #expect(taken == 4)
        #expect(sink.payloads == [[0xA1, 0xA2], [], [0xB1]])
    }

    @Test func prefixesOfEveryLengthAtEverySplitOfThePrefix() throws {
        for length in [127, 128, 16_383, 16_384, 2_097_151, 2_097_152] {
            let bytes = frame(length)
            for split in 0...(bytes.count - length) {
                var assembler = FrameAssembler(limit: 4 << 20)
                var sink = FrameCount()
                try assembler.receive(bytes[..<split], into: &sink)
                try assembler.receive(bytes[split...] + [0], into: &sink)
                try assembler.finish()
                #expect(sink.count == 2)
                #expect(sink.byteCount == length)
            }
        }
    }

    @Test(arguments: 1...6)
    func badPrefixIsFoundAtEverySplit(split: Int) {
        let bytes: [UInt8] = [0x01, 0x2A, 0x80, 0x80, 0x80, 0x80, 0x10]
        var assembler = FrameAssembler(limit: 10)
        var sink = Frames()
        #expect(throws: FramingError.self) {
            try assembler.receive(bytes[..<split], into: &sink)
            try assembler.receive(bytes[split...], into: &sink)
        }
        #expect(sink.payloads == [[0x2A]], "the frame before it was delivered")
    }

    @Test func afterAFailureNothingIsDelivered() {
        var assembler = FrameAssembler(limit: 10)
        var sink = Frames()
        for _ in 0..<2 {
            let error = #expect(throws: FramingError.self) { try assembler.receive([0x0B, 0x00, 0x00], into: &sink) }
            #expect(error?.code == .frameTooLarge)
        }
        #expect(throws: FramingError.self) { try assembler.finish() }
        #expect(sink.payloads.isEmpty)
    }

    @Test func errorsOfTheSinkAreRethrown() {
        struct Refusal: Error {}
        struct Refusing: FrameSink {
            func receive(frame: UnsafeRawBufferPointer) throws { throw Refusal() }
        }
        var sink = Refusing()
        for chunks in [[[0x01, 0x00]], [[0x01], [0x00]]] as [[[UInt8]]] {
            var assembler = FrameAssembler(limit: 10)
            #expect(throws: Refusal.self) { for chunk in chunks { try assembler.receive(chunk, into: &sink) } }
        }
    }

    // MARK: Cost and memory

    @Test func wholeFramesAreNotCopied() throws {
        var assembler = FrameAssembler(limit: 4 << 20)
        var sink = FrameCount()
        for bytes in [[UInt8](repeating: 0, count: 1 << 20), frame(1 << 20) + frame(1000)] {
            try bytes.withUnsafeBytes { bytes in
                sink.chunk = bytes
                try assembler.receive(bytes, into: &sink)
            }
        }
        #expect(sink.count == (1 << 20) + 2)
        #expect(sink.copiedCount == 0)
        #expect(assembler.heldByteCount == 0)
    }

    @Test func largeFrameByteByByteCostsLinearly() throws {
        let bytes = frame(4 << 20)
        var assembler = FrameAssembler(limit: 4 << 20)
        var sink = FrameCount()
        var growth = BufferGrowth()
        try bytes.withUnsafeBytes { bytes in
            for index in bytes.indices {
                try assembler.receive(UnsafeRawBufferPointer(rebasing: bytes[index...index]), into: &sink)
                growth.byteCame(capacity: assembler.heldByteCount)
            }
        }
        #expect(sink.byteCount == 4 << 20)
        #expect(growth.movedByteCount <= 2 * bytes.count, "a sum of halves")
        #expect(growth.allocationCount <= 16, "256 bytes doubled up to 4 MiB")
        #expect(assembler.heldByteCount == 0, "the buffer is given back")
    }

    @Test func ofChunksOnlyTheFrameThatStraddlesIsKept() throws {
        let count = 2000
        let bytes = (0..<count).flatMap { _ in frame(1000) }
        var assembler = FrameAssembler(limit: 4 << 20)
        var sink = FrameCount()
        // 1,002 bytes a frame and 1,002 a chunk, with an offset of half a frame: each frame spans two chunks.
        for start in stride(from: -501, to: bytes.count, by: 1002) {
            try assembler.receive(bytes[max(0, start)..<min(start + 1002, bytes.count)], into: &sink)
            #expect(assembler.heldByteCount <= 1002 + 64)
        }
        #expect(sink.count == count)
    }

    /// A prefix that declares a large frame, and a body that arrives slowly.
    @Test(arguments: [[0xFF, 0xFF, 0xFF, 0x01], [0xFF, 0xFF, 0xFF, 0xFF, 0x0F]] as [[UInt8]])
    func memoryFollowsWhatWasReceived(prefix: [UInt8]) throws {
        var assembler = FrameAssembler(limit: Int(UInt32.max))
        var sink = FrameCount()
        var received = 0
        for chunk in [prefix] + (0..<2000).map({ payload(1 + $0 % 50) }) {
            try assembler.receive(chunk, into: &sink)
            received += chunk.count
            // The allocator rounds up to a page.
            #expect(assembler.heldByteCount <= 2 * received + FrameAssembler.minimumCapacity + 4096)
        }
        #expect(sink.count == 0)
    }

    // MARK: -

    private func frames(in chunks: [[UInt8]], isWhole: Bool = true) throws -> [[UInt8]] {
        var assembler = FrameAssembler(limit: 4 << 20)
        var sink = Frames()
        for chunk in chunks { try assembler.receive(chunk, into: &sink) }
        if isWhole { try assembler.finish() }
        return sink.payloads
    }

    /// Refused at the first byte that decides it, for whole input and byte by byte.
    private func expectFailure(_ code: FramingError.Code, in bytes: [UInt8]) {
        for chunks in [[bytes], bytes.map { [$0] }] {
            var assembler = FrameAssembler(limit: 4 << 20)
            var sink = Frames()
            let error = #expect(throws: FramingError.self) {
                for chunk in chunks { try assembler.receive(chunk, into: &sink) }
            }
            #expect(error?.code == code)
            #expect(assembler.heldByteCount <= FrameAssembler.minimumCapacity + 64)
        }
    }
}
