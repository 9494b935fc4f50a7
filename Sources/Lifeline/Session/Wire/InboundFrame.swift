/// A received frame without its length prefix: its kind and the bytes of the kind's message.
package struct InboundFrame {
    /// Nil for a frame without a kind, which is ignored.
    package let kind: FrameKind?
    /// The bytes of the kind's message, which are a part of the frame.
    package let body: UnsafeRawBufferPointer

    /// Finds the kind of a frame. Every length-delimited field is a kind, known or not; other fields are skipped.
    ///
    /// - Throws: `.undecodable` for a frame with several kinds, and for malformed protobuf.
    package init(parsing frame: UnsafeRawBufferPointer) throws(SessionViolation) {
        // Most frames are a tag and a length of one byte each, and a body that ends with the frame.
        if frame.count >= 2, Int(frame[1]) == frame.count &- 2, frame[1] < 0x80, frame[0] < 0x80, frame[0] >= 8,
            frame[0] & 7 == 2
        {
            kind = FrameKind(rawValue: UInt32(frame[0] &>> 3))
            body = UnsafeRawBufferPointer(rebasing: frame[2...])
            return
        }
        var kind: FrameKind?
        var body = UnsafeRawBufferPointer(start: nil, count: 0)
        var reader = FieldReader(frame)
        while let tag = reader.next() {
            guard tag.isDelimited else {
                reader.skip(tag)
                continue
            }
            guard kind == nil else { throw .undecodable("It has several kinds.") }
            kind = FrameKind(rawValue: tag.number)
            body = reader.bytesValue()
        }
        try reader.finish()
        self.kind = kind
        self.body = body
    }
}
