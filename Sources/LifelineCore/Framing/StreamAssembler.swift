/// What joins the chunks of a byte stream into frames, whichever the framing: `FrameAssembler` for varint-delimited
/// frames, `HeadedFrameAssembler` for framings with heads.
package protocol StreamAssembler: Sendable {
    /// What was done so far.
    var statistics: FrameAssembler.Statistics { get }
    /// Bytes of memory that the straddling frame takes up now.
    var heldByteCount: Int { get }
    /// Checks that the stream may end here.
    ///
    /// - Throws: `FramingError` `truncatedFrame` inside a frame, or why the stream was no longer one of frames.
    func finish() throws(FramingError)
}

extension FrameAssembler: StreamAssembler {}
extension HeadedFrameAssembler: StreamAssembler {}

/// Takes a byte stream as frames of one framing. Whoever reads the bytes keeps the assembler and hands both every chunk:
/// one call a chunk, in which all frames are found and taken by functions that are known when code is compiled.
package protocol StreamSink {
    /// Joins this sink's chunks.
    associatedtype Assembler: StreamAssembler
    /// Takes every frame that `chunk` completes, in order.
    ///
    /// - Throws: what the assembler's `receive` throws.
    mutating func receive(_ chunk: UnsafeRawBufferPointer, through assembler: inout Assembler) throws
}

extension StreamSink where Self: FrameSink, Assembler == FrameAssembler {
    package mutating func receive(
        _ chunk: UnsafeRawBufferPointer,
        through assembler: inout FrameAssembler
    ) throws {
        try assembler.receive(chunk, into: &self)
    }
}

extension StreamSink where Self: HeadedFrameSink {
    package mutating func receive<Framing: HeadedFraming>(
        _ chunk: UnsafeRawBufferPointer,
        through assembler: inout HeadedFrameAssembler<Framing>
    ) throws where Assembler == HeadedFrameAssembler<Framing>, Framing.InboundHead == Head {
        try assembler.receive(chunk, into: &self)
    }
}
