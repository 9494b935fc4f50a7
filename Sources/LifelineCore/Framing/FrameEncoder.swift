/// Checks payloads against the limit.
package struct FrameEncoder: Sendable {
    /// The most bytes that a payload may have, prefix excluded.
    package let maximumFrameLength: Int
    private let uncountedLength: (@Sendable (UnsafeRawBufferPointer) -> Int)?

    /// Makes an encoder. A limit below 0 counts as 0, one that a prefix cannot declare as 2³²−1.
    ///
    /// - Parameter uncountedLength: returns the number of bytes in a frame's payload that `checkFrame` does not count;
    ///   nil to count all.
    package init(maximumFrameLength: Int, uncountedLength: (@Sendable (UnsafeRawBufferPointer) -> Int)? = nil) {
        self.maximumFrameLength = FrameDecoder.clamped(maximumFrameLength)
        self.uncountedLength = uncountedLength
    }

    /// Throws when a payload is over the limit.
    package func checkPayload(ofLength length: Int) throws(FramingError) {
        guard length <= maximumFrameLength else {
            throw .payloadTooLarge(length: length, limit: maximumFrameLength)
        }
    }

    /// Checks a frame with its prefix. Throws when the payload is over the limit, or does not have the declared length.
    package func checkFrame(_ frame: UnsafeRawBufferPointer) throws(FramingError) {
        guard case .value(let length, let prefixLength) = Varint.decode(frame), length == frame.count - prefixLength
        else {
            throw .malformedPrefix
        }
        guard let uncountedLength else { return try checkPayload(ofLength: frame.count - prefixLength) }
        let payload = UnsafeRawBufferPointer(rebasing: frame[prefixLength...])
        try checkPayload(ofLength: payload.count - uncountedLength(payload))
    }
}
