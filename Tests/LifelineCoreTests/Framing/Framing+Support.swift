import LifelineCore
import LifelineTestSupport

/// Keeps the frames that it gets.
struct Frames: FrameSink {
    var payloads: [[UInt8]] = []
    mutating func receive(frame: UnsafeRawBufferPointer) { payloads.append(Array(frame)) }
}

/// Keeps only the number and the lengths of the frames.
struct FrameCount: FrameSink {
    var count = 0
    var byteCount = 0
    /// The incoming bytes. Frames outside of them were copied.
    var chunk: UnsafeRawBufferPointer?
    var copiedCount = 0
    mutating func receive(frame: UnsafeRawBufferPointer) {
        count += 1
        byteCount += frame.count
        if let chunk, !frame.lies(within: chunk) { copiedCount += 1 }
    }
}

extension FrameAssembler {
    init(limit: Int) {
        self.init(decoder: FrameDecoder(maximumFrameLength: limit))
    }

    mutating func receive(_ bytes: some Collection<UInt8>, into sink: inout some FrameRunSink) throws {
        try Array(bytes).withUnsafeBytes { try receive($0, into: &sink) }
    }
}

extension FrameDecoder {
    func nextFrame(in bytes: [UInt8], from offset: Int = 0) throws -> Step {
        try bytes.withUnsafeBytes { try nextFrame(in: $0, from: offset) }
    }
}

/// The prefix for a length, from the definition of LEB128 instead of the code under test.
func leb128(_ value: UInt64) -> [UInt8] {
    value < 128 ? [UInt8(value)] : [UInt8(value & 127) | 128] + leb128(value >> 7)
}

/// A frame whose payload is `length` bytes of a recognisable pattern.
func frame(_ length: Int, seed: UInt8 = 1) -> [UInt8] {
    leb128(UInt64(length)) + payload(length, seed: seed)
}

func payload(_ length: Int, seed: UInt8 = 1) -> [UInt8] {
    (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 31) &+ seed }
}
