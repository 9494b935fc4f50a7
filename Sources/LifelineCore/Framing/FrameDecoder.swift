/// Finds varint-delimited frames in bytes that somebody else owns.
///
/// It has no state, copies nothing, allocates nothing and never looks past the prefix, so that a declared length is
/// refused before a byte of the body has come. Any other framing needs only to answer with the same `Step`; what joins
/// the chunks of a stream (`FrameAssembler`) knows nothing else of it.
package struct FrameDecoder: Sendable {
    /// The most bytes that a payload may have, prefix excluded.
    package let maximumFrameLength: Int

    /// Makes a decoder. A limit below 0 counts as 0, one that no prefix can declare as 2³²−1.
    package init(maximumFrameLength: Int) {
        self.maximumFrameLength = FrameDecoder.clamped(maximumFrameLength)
    }

    /// What stands at a place in a run of bytes.
    package enum Step: Equatable {
        /// A whole frame. Its payload's place; the next frame starts at the upper bound.
        case frame(payload: Range<Int>)
        /// The bytes end inside a frame. At least `missing` more are needed, which is 1 while the prefix is unfinished.
        case incomplete(missing: Int)
    }

    /// Looks at the frame that starts at `offset`, which must not be past the end of `bytes`.
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
