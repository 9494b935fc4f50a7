package import LifelineCore

/// Joins the chunks of a byte stream into frames of a framing with heads.
///
/// A content that is whole in a chunk is passed on in place, even if its head straddled chunks. A straddling part is
/// copied, each of its bytes once, and moved again only when its buffer doubles. After a straddling head, following
/// bytes of the chunk may be copied once in vain, up to the longest head. That is a constant number of moves for each
/// byte, however small the chunks.
///
/// The memory held is at most `2 × bytes received of the straddling part + FrameAssembler.minimumCapacity`, plus the
/// allocator's rounding, whatever a head declares. Between frames no memory is held.
package struct HeadedFrameAssembler<Framing: HeadedFraming>: Sendable {
    private struct Pending {
        let head: Framing.InboundHead
        let headLength: Int
        let contentLength: Int
    }

    /// The framing, which finds heads.
    package let framing: Framing
    /// The frame that has a complete head, and waits for its content.
    private var pending: Pending?
    /// The start of a head, or of the content of `pending`.
    private var partial: [UInt8] = []
    /// The least number of bytes that are missing in the head in `partial`.
    private var missingInHead = 0
    private var failure: FramingError?

    /// Makes an assembler at the start of a stream.
    package init(framing: Framing) {
        self.framing = framing
    }

    /// The bytes of memory that the straddling frame takes up now.
    package var heldByteCount: Int { partial.capacity }

    /// Passes every frame that `chunk` completes to `sink`, in order.
    ///
    /// - Throws: `FramingError` when the stream has no valid frame at a place, after the frames before it were passed
    ///   on, and from then on at every call. Also the sink's errors, after which the stream must be given up.
    package mutating func receive(
        _ chunk: UnsafeRawBufferPointer,
        into sink: inout some HeadedFrameSink<Framing.InboundHead>
    ) throws {
        if let failure { throw failure }
        do {
            var rest = try completeHead(from: chunk)
            while let frame = pending {
                guard try deliver(frame, from: &rest, into: &sink) else { return }
                try findHead(in: &rest)
            }
        } catch let error as FramingError {
            failure = error
            partial = []
            throw error
        }
    }

    /// Checks that the stream may end here.
    ///
    /// - Throws: `FramingError` `truncatedFrame` inside a frame, or the earlier error of the stream.
    package func finish() throws(FramingError) {
        if let failure { throw failure }
        if let pending {
            let missing = pending.contentLength - partial.count
            throw .truncatedFrame(received: pending.headLength + partial.count, missing: missing)
        }
        if !partial.isEmpty { throw .truncatedFrame(received: partial.count, missing: missingInHead) }
    }

    /// Continues the head that earlier chunks began, or begins one. Returns the bytes after it in the chunk.
    private mutating func completeHead(from chunk: UnsafeRawBufferPointer) throws -> UnsafeRawBufferPointer {
        var rest = chunk
        guard pending == nil else { return rest }
        if partial.isEmpty {
            try findHead(in: &rest)
            return rest
        }
        let scanned = partial.count
        // The end of the head is not known yet, only the latest possible end.
        keep(chunk.prefix(Framing.maximumHeadLength - scanned), of: Framing.maximumHeadLength)
        let step = try partial.withUnsafeBytes { try framing.decodeHead(in: $0, scanned: scanned) }
        switch step {
        case .incomplete(let missing):
            missingInHead = missing
            return UnsafeRawBufferPointer(rebasing: chunk.suffix(0))
        case .head(let head, let length, let contentLength):
            pending = Pending(head: head, headLength: length, contentLength: contentLength)
            partial = []
            return UnsafeRawBufferPointer(rebasing: chunk.dropFirst(length - scanned))
        }
    }

    /// Removes a head from the front of `rest`, or all bytes when the head is not complete.
    private mutating func findHead(in rest: inout UnsafeRawBufferPointer) throws(FramingError) {
        pending = nil
        guard !rest.isEmpty else { return }
        switch try framing.decodeHead(in: rest, scanned: 0) {
        case .incomplete(let missing):
            missingInHead = missing
            keep(rest[...], of: Framing.maximumHeadLength)
        case .head(let head, let length, let contentLength):
            pending = Pending(head: head, headLength: length, contentLength: contentLength)
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(length))
        }
    }

    /// Passes on a frame whose content is complete with the front of `rest`. If it is not, keeps all of `rest` and
    /// returns false.
    private mutating func deliver(
        _ frame: Pending,
        from rest: inout UnsafeRawBufferPointer,
        into sink: inout some HeadedFrameSink<Framing.InboundHead>
    ) throws -> Bool {
        let missing = frame.contentLength - partial.count
        guard rest.count >= missing else {
            keep(rest[...], of: frame.contentLength)
            return false
        }
        if partial.isEmpty {
            try sink.receive(head: frame.head, content: UnsafeRawBufferPointer(rebasing: rest.prefix(missing)))
        } else {
            keep(rest.prefix(missing), of: frame.contentLength)
            let content = partial
            partial = []
            try content.withUnsafeBytes { try sink.receive(head: frame.head, content: $0) }
        }
        rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(missing))
        return true
    }

    /// Adds to the straddling part, which has at most `longest` bytes when it is complete.
    private mutating func keep(_ bytes: Slice<UnsafeRawBufferPointer>, of longest: Int) {
        let count = partial.count + bytes.count
        if count > partial.capacity {
            // Twice the received length, not the declared one, and no more than is needed.
            partial.reserveCapacity(max(FrameAssembler.minimumCapacity, min(2 * count, longest)))
        }
        partial.append(contentsOf: bytes)
    }
}
