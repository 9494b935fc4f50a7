/// Whole contiguous frames in borrowed memory, as they were received, without a copy.
///
/// Its elements are the frames' payloads, in order. They and the run are valid only during the call that passes the
/// run. Copy bytes to keep them.
public struct FrameRun: Sequence {
    /// The number of frames.
    public let count: Int
    /// The frames with their length prefixes.
    @usableFromInline let bytes: UnsafeRawBufferPointer

    /// - Parameters:
    ///   - bytes: whole frames with well-formed prefixes, and nothing else. They are not checked again.
    ///   - count: the number of frames.
    package init(unchecked bytes: UnsafeRawBufferPointer, count: Int) {
        self.bytes = bytes
        self.count = count
    }

    /// The number of bytes of the frames, prefixes included.
    @inlinable public var byteCount: Int { bytes.count }

    /// The number of frames.
    @inlinable public var underestimatedCount: Int { count }

    /// Starts with the first frame.
    @inlinable public func makeIterator() -> Iterator { Iterator(bytes) }

    /// Calls `body` with the payloads in order, up to 64 at a time, which take a kilobyte of the stack.
    @inlinable package func withPayloads(
        _ body: (UnsafeBufferPointer<UnsafeRawBufferPointer>) throws -> Void
    ) rethrows {
        try withUnsafeTemporaryAllocation(of: UnsafeRawBufferPointer.self, capacity: 64) { payloads in
            var frames = makeIterator()
            while true {
                var count = 0
                while count < payloads.count, let frame = frames.next() {
                    payloads.initializeElement(at: count, to: frame)
                    count += 1
                }
                if count == 0 { return }
                try body(UnsafeBufferPointer(rebasing: payloads[..<count]))
            }
        }
    }

    /// Hands out one payload at a time.
    public struct Iterator: IteratorProtocol {
        @usableFromInline var position: UnsafeRawPointer?
        @usableFromInline let end: UnsafeRawPointer?

        @inlinable init(_ bytes: UnsafeRawBufferPointer) {
            position = bytes.baseAddress
            end = bytes.baseAddress.map { $0 + bytes.count }
        }

        /// The next frame's payload; nil at the end.
        @inlinable public mutating func next() -> UnsafeRawBufferPointer? {
            guard var position, position != end else { return nil }
            // The prefix was checked when the run was made: LEB128 of at most five bytes, followed by the whole
            // payload.
            var byte = position.load(as: UInt8.self)
            position += 1
            var length = Int(byte & 0x7F)
            var shift = 7
            while byte >= 0x80 {
                byte = position.load(as: UInt8.self)
                position += 1
                length |= Int(byte & 0x7F) &<< shift
                shift &+= 7
            }
            self.position = position + length
            return UnsafeRawBufferPointer(start: position, count: length)
        }

        /// Skips the next frame. Returns its length, prefix included; nil at the end.
        package mutating func skip() -> Int? {
            guard let start = position, next() != nil else { return nil }
            return position.map { $0 - start }
        }
    }
}

extension FrameDecoder {
    /// The result of scanning bytes for whole frames.
    struct Scan {
        /// The reason for the end of a scan.
        enum Stop {
            /// There are no more bytes, or the limit is reached.
            case end
            /// The bytes end inside a frame, which needs at least this many more.
            case incomplete(missing: Int)
            /// The following bytes are not a frame.
            case failure(FramingError)
        }

        /// The number of whole frames.
        var count = 0
        /// The end of the last frame.
        var end: Int
        var stop = Stop.end
    }

    /// Finds the whole frames from `offset` on, which must not be past the end of `bytes`, as far as `part` allows.
    func scan(_ bytes: UnsafeRawBufferPointer, from offset: Int, part: PartLimit = .unlimited) -> Scan {
        guard let base = bytes.baseAddress else { return Scan(end: offset) }
        // Kept in local variables during the scan.
        let (byteCount, limit, frameLimit) = (bytes.count, maximumFrameLength, part.frameCount)
        let partEnd = offset + min(byteCount - offset, part.byteCount)
        var (end, count) = (offset, 0)
        while end < partEnd, count < frameLimit {
            // Most prefixes have one or two bytes, and most declared payloads are complete.
            var length = Int(base.load(fromByteOffset: end, as: UInt8.self))
            var start = end &+ 1
            if length >= 0x80 {
                let second = start < byteCount ? Int(base.load(fromByteOffset: start, as: UInt8.self)) : 0x80
                length = second < 0x80 ? length & 0x7F | second << 7 : Int.max
                start &+= 1
            }
            if length <= limit, length <= byteCount &- start {
                end = start &+ length
            } else {
                do throws(FramingError) {
                    switch try nextFrame(in: bytes, from: end) {
                    case .frame(let payload): end = payload.upperBound
                    case .incomplete(let missing):
                        return Scan(count: count, end: end, stop: .incomplete(missing: missing))
                    }
                } catch {
                    return Scan(count: count, end: end, stop: .failure(error))
                }
            }
            count &+= 1
        }
        return Scan(count: count, end: end)
    }
}
