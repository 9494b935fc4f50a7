/// Finds varint-delimited frames in borrowed bytes.
///
/// It has no state, copies nothing, allocates nothing and never reads past the prefix, so a declared length is refused
/// before a byte of the body arrives. Another framing only needs to return the same `Step`: `FrameAssembler`, which
/// joins the chunks of a stream, uses nothing else.
package struct FrameDecoder: Sendable {
    /// The most bytes that a payload may have, prefix excluded.
    package let maximumFrameLength: Int

    /// Makes a decoder. A limit below 0 counts as 0, one that a prefix cannot declare as 2³²−1.
    package init(maximumFrameLength: Int) {
        self.maximumFrameLength = FrameDecoder.clamped(maximumFrameLength)
    }

    /// The result of decoding at an offset.
    package enum Step: Equatable {
        /// A whole frame, with the range of its payload. The next frame starts at the upper bound.
        case frame(payload: Range<Int>)
        /// The bytes end inside a frame. At least `missing` more are needed, which is 1 while the prefix is unfinished.
        case incomplete(missing: Int)
    }

    /// Decodes the frame that starts at `offset`, which must not be past the end of `bytes`.
    package func nextFrame(in bytes: UnsafeRawBufferPointer, from offset: Int) throws(FramingError) -> Step {
        switch Varint.decode(bytes, at: offset) {
        case .incomplete:
            return .incomplete(missing: 1)
        case .malformed:
            throw .malformedPrefix
        case .value(let declared, let prefixLength):
            guard let length = Int(exactly: declared), length <= maximumFrameLength else {
                throw .frameTooLarge(declaredLength: Int(clamping: declared), limit: maximumFrameLength)
            }
            let start = offset + prefixLength
            let available = bytes.count - start
            return available < length
                ? .incomplete(missing: length - available) : .frame(payload: start..<(start + length))
        }
    }

    package static func clamped(_ limit: Int) -> Int { min(max(limit, 0), Int(clamping: UInt32.max)) }
}
