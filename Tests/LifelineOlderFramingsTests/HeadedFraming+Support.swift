import LifelineCore
import LifelineOlderFramings
import LifelineTestSupport
import Testing

/// A frame that was handed on.
struct HeadedFrame<Head: Equatable & Sendable>: Equatable, Sendable {
    var head: Head
    var content: [UInt8]
}

/// Keeps the frames that it gets.
struct HeadedFrames<Head: Equatable & Sendable>: HeadedFrameSink {
    var frames: [HeadedFrame<Head>] = []
    mutating func receive(head: Head, content: UnsafeRawBufferPointer) {
        frames.append(HeadedFrame(head: head, content: Array(content)))
    }
}

/// Keeps only the number and the lengths of the frames.
struct HeadedFrameCount<Head>: HeadedFrameSink {
    var count = 0
    var byteCount = 0
    /// The incoming bytes. Frames outside of them were copied.
    var chunk: UnsafeRawBufferPointer?
    var copiedCount = 0
    mutating func receive(head: Head, content: UnsafeRawBufferPointer) {
        count += 1
        byteCount += content.count
        if let chunk, !content.lies(within: chunk) { copiedCount += 1 }
    }
}

extension HeadedFrameAssembler {
    mutating func receive(
        _ bytes: some Collection<UInt8>,
        into sink: inout some HeadedFrameSink<Framing.InboundHead>
    ) throws {
        try Array(bytes).withUnsafeBytes { try receive($0, into: &sink) }
    }
}

extension HeadedFraming {
    func decodeHead(in bytes: [UInt8], scanned: Int = 0) throws -> HeadStep<InboundHead> {
        try bytes.withUnsafeBytes { try decodeHead(in: $0, scanned: scanned) }
    }

    /// The head's bytes, with a check that nothing else is written.
    func head(_ head: OutboundHead, contentLength: Int) throws -> [UInt8] {
        let length = try headLength(of: head, contentLength: contentLength)
        #expect(length <= Self.maximumHeadLength)
        var bytes = [UInt8](repeating: 0xAA, count: length + 8)
        let written = try bytes.withUnsafeMutableBytes { try writeHead(head, contentLength: contentLength, into: $0) }
        #expect(written == length)
        #expect(bytes[length...].allSatisfy { $0 == 0xAA })
        return Array(bytes[..<length])
    }

    func frame(_ head: OutboundHead, _ content: [UInt8]) throws -> [UInt8] {
        try self.head(head, contentLength: content.count) + content
    }

    func frames(in chunks: [[UInt8]], isWhole: Bool = true) throws -> [HeadedFrame<InboundHead>]
    where InboundHead: Equatable {
        var assembler = HeadedFrameAssembler(framing: self)
        var sink = HeadedFrames<InboundHead>()
        for chunk in chunks { try assembler.receive(chunk, into: &sink) }
        if isWhole {
            try assembler.finish()
            #expect(assembler.heldByteCount == 0)
        }
        return sink.frames
    }

    /// The error of a stream: whole, byte by byte, and at every split, or at some hundred splits of a long one. Each
    /// time, the same frames precede it.
    func failure(in bytes: [UInt8], after frameCount: Int = 0) -> FramingError.Code? where InboundHead: Equatable {
        var codes: Set<FramingError.Code?> = []
        let places = stride(from: 0, to: bytes.count, by: 1 + bytes.count / 200) + bytes.indices.suffix(3)
        let splits = places.map { [Array(bytes[..<$0]), Array(bytes[$0...])] }
        for chunks in splits + [bytes.map { [$0] }] {
            var assembler = HeadedFrameAssembler(framing: self)
            var sink = HeadedFrames<InboundHead>()
            do {
                for chunk in chunks { try assembler.receive(chunk, into: &sink) }
                codes.insert(nil)
            } catch {
                codes.insert((error as? FramingError)?.code)
                #expect(throws: FramingError.self, "it stays failed") { try assembler.receive([0], into: &sink) }
                #expect(throws: FramingError.self) { try assembler.finish() }
                #expect(assembler.heldByteCount == 0)
            }
            #expect(sink.frames.count == frameCount)
        }
        #expect(codes.count == 1, "the same at every split")
        return codes.first ?? nil
    }
}

/// Chunks of random lengths, some of them empty.
func randomChunks(of bytes: [UInt8], upTo longest: Int, using random: inout SeededGenerator) -> [[UInt8]] {
    var rest = bytes[...]
    var chunks: [[UInt8]] = []
    while !rest.isEmpty {
        let count = Int.random(in: 0...Int.random(in: 1...longest, using: &random), using: &random)
        chunks.append(Array(rest.prefix(count)))
        rest = rest.dropFirst(count)
    }
    return chunks
}

/// Bytes of a recognisable pattern.
func payload(_ length: Int, seed: UInt8 = 1) -> [UInt8] {
    (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 31) &+ seed }
}

func at(_ seconds: Double) -> MonotonicTime {
    MonotonicTime(nanoseconds: Int64(seconds * 1_000_000_000))
}
