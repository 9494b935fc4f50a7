/// Whole frames that lie one after the other in memory which somebody else owns: as they came, and nothing was copied.
///
/// Its elements are the frames' payloads, in order. They and the run are valid only during the call that hands the run
/// over: what is to be kept has to be copied.
public struct FrameRun: Sequence {
    /// How many frames there are.
    public let count: Int
    /// The frames with their length prefixes.
    @usableFromInline let bytes: UnsafeRawBufferPointer

    /// - Parameters:
    ///   - bytes: whole frames with well-formed prefixes, and nothing else: no one looks again.
    ///   - count: how many.
    package init(unchecked bytes: UnsafeRawBufferPointer, count: Int) {
        self.bytes = bytes
        self.count = count
    }

    /// How many bytes the frames take, prefixes included.
    @inlinable public var byteCount: Int { bytes.count }

    /// The count.
    @inlinable public var underestimatedCount: Int { count }

    /// Starts with the first frame.
    @inlinable public func makeIterator() -> Iterator { Iterator(bytes) }

    /// Calls `body` with the payloads in their order, up to 64 at a time, which are a kilobyte of the stack.
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
            // The prefix was checked when the run was made: LEB128 of at most five bytes, and the payload is all there.
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

        /// Passes over the next frame. Returns its length, prefix included; nil at the end.
        package mutating func skip() -> Int? {
            guard let start = position, next() != nil else { return nil }
            return position.map { $0 - start }
        }
    }
}

extension FrameDecoder {
    /// What stands from a place on in a run of bytes.
    struct Scan {
        /// Why it ends where it does.
        enum Stop {
            /// There is no further byte, or no more is to be looked at.
            case end
            /// The bytes end inside a frame, which needs at least so many more.
            case incomplete(missing: Int)
            /// What follows is no frame.
            case failure(FramingError)
        }

        /// How many whole frames there are.
        var count = 0
        /// Where the last one ends.
        var end: Int
        var stop = Stop.end
    }

    /// Finds the whole frames from `offset` on, which must not be past the end of `bytes`, as far as `part` reaches.
    func scan(_ bytes: UnsafeRawBufferPointer, from offset: Int, part: PartLimit = .unlimited) -> Scan {
        guard let base = bytes.baseAddress else { return Scan(end: offset) }
        // In locals for the length of the scan.
        let (byteCount, limit, frameLimit) = (bytes.count, maximumFrameLength, part.frameCount)
        let partEnd = offset + min(byteCount - offset, part.byteCount)
        var (end, count) = (offset, 0)
        while end < partEnd, count < frameLimit {
            // Most prefixes have a byte, or two; what they declare is mostly there.
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
