import LifelineCore
import LifelineOlderFramings
import LifelineTestSupport
import Testing

private let server = FixedHeader.ServerFraming(maximumContentLength: 4 << 20)
private let headLine = HeadLineFraming(maximumContentLength: 4 << 20)

/// The common parts of both framings with heads: splits, costs, memory.
@Suite struct HeadedFrameAssemblerTests {
    // MARK: Splits

    private static let lengths = [0, 1, 0, 0, 2, 31, 5, 60, 0]

    private static func fixedHeaderStream() throws -> (bytes: [UInt8], frames: [HeadedFrame<FixedHeader.Request>]) {
        let client = FixedHeader.ClientFraming(maximumContentLength: 4 << 20)
        let frames = lengths.enumerated().map { index, length in
            HeadedFrame(
                head: FixedHeader.Request(url: 9, serial: 0x401 + UInt32(index)),
                content: payload(length, seed: UInt8(index))
            )
        }
        return (try frames.flatMap { try client.frame($0.head, $0.content) }, frames)
    }

    private static func headLineStream() throws -> (bytes: [UInt8], frames: [HeadedFrame<HeadLine>]) {
        let frames = lengths.enumerated().map { index, length in
            HeadedFrame(head: HeadLine(type: "\"\(index)\"é"), content: payload(length, seed: UInt8(index)))
        }
        return (try frames.flatMap { try headLine.frame($0.head, $0.content) }, frames)
    }

    @Test func everySplitInTwo() throws {
        let (bytes, frames) = try Self.fixedHeaderStream()
        for split in 0...bytes.count {
            #expect(try server.frames(in: [Array(bytes[..<split]), Array(bytes[split...])]) == frames, "at \(split)")
        }
        let (lines, lineFrames) = try Self.headLineStream()
        for split in 0...lines.count {
            let chunks = [Array(lines[..<split]), Array(lines[split...])]
            #expect(try headLine.frames(in: chunks) == lineFrames, "at \(split)")
        }
    }

    /// Two frames are enough for every split of a head, a content and the next head.
    @Test func everySplitInThree() throws {
        let first = try headLine.frame(HeadLine(type: "a"), [13, 10, 123])
        let bytes = first + (try headLine.frame(HeadLine(type: "b"), []))
        let frames = [
            HeadedFrame(head: HeadLine(type: "a"), content: [13, 10, 123]),
            HeadedFrame(head: HeadLine(type: "b"), content: []),
        ]
        for split in 0...bytes.count {
            for second in split...bytes.count {
                let chunks = [Array(bytes[..<split]), Array(bytes[split..<second]), Array(bytes[second...])]
                #expect(try headLine.frames(in: chunks) == frames, "at \(split) and \(second)")
            }
        }
    }

    @Test func byteByByte() throws {
        let (bytes, frames) = try Self.fixedHeaderStream()
        #expect(try server.frames(in: bytes.map { [$0] }) == frames)
        let (lines, lineFrames) = try Self.headLineStream()
        #expect(try headLine.frames(in: lines.map { [$0] }) == lineFrames)
    }

    /// A frame without content is handed on with the last byte of its head.
    @Test func nothingWaitsForTheNextByte() throws {
        let (bytes, frames) = try Self.headLineStream()
        var assembler = HeadedFrameAssembler(framing: headLine)
        var sink = HeadedFrames<HeadLine>()
        var ends: [Int] = []
        for (index, byte) in bytes.enumerated() {
            try assembler.receive([byte], into: &sink)
            while ends.count < sink.frames.count { ends.append(index + 1) }
        }
        var expected: [Int] = []
        for frame in frames {
            expected.append((expected.last ?? 0) + (try headLine.frame(frame.head, frame.content).count))
        }
        #expect(ends == expected)
    }

    @Test func framesBeforeAFailureAreHandedOn() throws {
        let bytes = try headLine.frame(HeadLine(type: "a"), [1]) + Array("{}\r\n".utf8)
        #expect(headLine.failure(in: bytes, after: 1) == .malformedHead)
    }

    @Test func errorsOfTheSinkAreRethrown() throws {
        struct Refusal: Error {}
        struct Refusing: HeadedFrameSink {
            func receive(head: HeadLine, content: UnsafeRawBufferPointer) throws { throw Refusal() }
        }
        var sink = Refusing()
        let bytes = try headLine.frame(HeadLine(type: "a"), [1, 2])
        for split in 0..<bytes.count {
            var assembler = HeadedFrameAssembler(framing: headLine)
            #expect(throws: Refusal.self) {
                try assembler.receive(bytes[..<split], into: &sink)
                try assembler.receive(bytes[split...], into: &sink)
            }
        }
    }

    @Test(arguments: [1, 20, 24, 25, 26])
    func endOfStreamInsideAFrameIsTruncation(count: Int) throws {
        let bytes = try headLine.frame(HeadLine(type: "abc"), [1, 2, 3])
        #expect(bytes.count == 28)
        var assembler = HeadedFrameAssembler(framing: headLine)
        var sink = HeadedFrames<HeadLine>()
        try assembler.receive(bytes[..<count], into: &sink)
        let error = #expect(throws: FramingError.self) { try assembler.finish() }
        #expect(error?.code == .truncatedFrame)
        #expect(error?.message.contains("ended \(count) bytes") == true)
        try assembler.receive(bytes[count...], into: &sink)
        #expect(throws: Never.self) { try assembler.finish() }
    }

    // MARK: Cost and memory

    @Test func wholeFramesAreNotCopied() throws {
        var assembler = HeadedFrameAssembler(framing: headLine)
        var sink = HeadedFrameCount<HeadLine>()
        let small = try headLine.frame(HeadLine(type: "a"), [1])
        let large = try headLine.frame(HeadLine(type: "a"), payload(1 << 20))
        try ((0..<1000).flatMap { _ in small } + large).withUnsafeBytes { bytes in
            sink.chunk = bytes
            try assembler.receive(bytes, into: &sink)
        }
        #expect(sink.count == 1001 && sink.copiedCount == 0)
        #expect(assembler.heldByteCount == 0)
    }

    @Test func aContentBehindAStraddlingHeadIsNotKept() throws {
        var assembler = HeadedFrameAssembler(framing: headLine)
        var sink = HeadedFrameCount<HeadLine>()
        let bytes = try headLine.frame(HeadLine(type: "a"), payload(1 << 20))
        try assembler.receive(bytes[..<10], into: &sink)
        try bytes[10...].withUnsafeBytes { bytes in
            sink.chunk = bytes
            try assembler.receive(bytes, into: &sink)
        }
        #expect(sink.byteCount == 1 << 20 && sink.copiedCount == 0)
    }

    @Test func largeFrameByteByByteCostsLinearly() throws {
        let bytes = try headLine.frame(HeadLine(type: "a"), payload(1 << 20))
        var assembler = HeadedFrameAssembler(framing: headLine)
        var sink = HeadedFrameCount<HeadLine>()
        var growth = BufferGrowth()
        try bytes.withUnsafeBytes { bytes in
            for index in bytes.indices {
                try assembler.receive(UnsafeRawBufferPointer(rebasing: bytes[index...index]), into: &sink)
                growth.byteCame(capacity: assembler.heldByteCount)
            }
        }
        #expect(sink.byteCount == 1 << 20)
        #expect(growth.movedByteCount <= 2 * bytes.count, "a sum of halves")
        #expect(growth.allocationCount <= 16, "256 bytes doubled up to 1 MiB")
        #expect(assembler.heldByteCount == 0, "the buffer is given back")
    }

    /// The search for the end of a head reads each byte once, however it arrives: it continues where it stopped.
    @Test func aHeadByteByByteIsScannedOnce() throws {
        let head = Array("{\"type\":\"a\",\"size\":0".utf8) + [UInt8](repeating: 32, count: 4000)
        var scanned = 0
        for count in 1...head.count {
            // The earlier bytes are changed here: a repeated scan would find a line feed among them.
            let bytes = [UInt8](repeating: 10, count: scanned) + head[scanned..<count]
            #expect(try headLine.decodeHead(in: bytes, scanned: scanned) == .incomplete(missing: 1))
            scanned = count
        }
    }

    @Test func longestHeadByteByByteCostsLinearly() throws {
        let head = try headLine.head(HeadLine(type: String(repeating: "x", count: 4000)), contentLength: 0)
        var assembler = HeadedFrameAssembler(framing: headLine)
        var sink = HeadedFrameCount<HeadLine>()
        var growth = BufferGrowth()
        for byte in head {
            try assembler.receive([byte], into: &sink)
            growth.byteCame(capacity: assembler.heldByteCount)
        }
        #expect(sink.count == 1)
        #expect(growth.movedByteCount <= 2 * head.count, "a sum of halves")
        #expect(growth.allocationCount <= 6, "256 bytes doubled up to 4 KiB")
    }

    /// A head that declares a large content, and a content that arrives slowly.
    @Test func memoryFollowsWhatWasReceived() throws {
        let framing = FixedHeader.ServerFraming(maximumContentLength: Int(UInt32.max))
        var assembler = HeadedFrameAssembler(framing: framing)
        var sink = HeadedFrameCount<FixedHeader.Request>()
        var received = 0
        for chunk in [[UInt8](repeating: 0xFF, count: 12)] + (0..<2000).map({ payload(1 + $0 % 50) }) {
            try assembler.receive(chunk, into: &sink)
            received += chunk.count
            // The allocator rounds up to a page.
            #expect(assembler.heldByteCount <= 2 * received + FrameAssembler.minimumCapacity + 4096)
        }
        #expect(sink.count == 0)
    }

    @Test func anEndlessHeadIsGivenUp() throws {
        var assembler = HeadedFrameAssembler(framing: headLine)
        var sink = HeadedFrameCount<HeadLine>()
        var received = 0
        let error = #expect(throws: FramingError.self) {
            try assembler.receive("{".utf8, into: &sink)
            while received < 5000 {
                try assembler.receive("     ".utf8, into: &sink)
                received += 5
                #expect(assembler.heldByteCount <= 2 * 4096 + 4096)
            }
        }
        #expect(error?.code == .headTooLarge)
        #expect(assembler.heldByteCount == 0)
    }
}
