package import LifelineCore

/// Joins the chunks of a byte stream into frames of a framing with heads.
///
/// A content that lies whole in a chunk is handed on in place, even if its head straddled. What straddles is copied,
/// each of its bytes once, and moved again only when its buffer doubles; of a head that straddled, what the chunk that
/// completed it has behind it may be copied once in vain, up to the longest head. That is a constant number of moves a
/// byte, however small the chunks.
///
/// The memory held is at most `2 × bytes received of the straddling part + FrameAssembler.minimumCapacity`, plus what
/// the allocator rounds up to, whatever a head declares; between frames it is none.
package struct HeadedFrameAssembler<Framing: HeadedFraming>: Sendable {
    private struct Pending {
        let head: Framing.InboundHead
        let headLength: Int
        let contentLength: Int
    }

    /// How to find heads.
    package let framing: Framing
    /// The frame whose head is complete, and which waits for its content.
    private var pending: Pending?
    /// The start of a head, or of the content of `pending`.
    private var partial: [UInt8] = []
    /// At least so many bytes are missing in the head in `partial`.
    private var missingInHead = 0
    private var failure: FramingError?

    /// Makes an assembler at the start of a stream.
    package init(framing: Framing) {
        self.framing = framing
    }

    /// Bytes of memory that the straddling frame takes up now.
    package var heldByteCount: Int { partial.capacity }

    /// Hands every frame that `chunk` completes to `sink`, in order.
    ///
    /// - Throws: `FramingError` when the stream is no longer one of frames, after the frames before that place were
    ///   handed on, and from then on at every call; or what the sink throws, after which the stream must be given up.
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
    /// - Throws: `FramingError` `truncatedFrame` inside a frame, or why the stream was no longer one of frames.
    package func finish() throws(FramingError) {
        if let failure { throw failure }
        if let pending {
            let missing = pending.contentLength - partial.count
            throw .truncatedFrame(received: pending.headLength + partial.count, missing: missing)
        }
        if !partial.isEmpty { throw .truncatedFrame(received: partial.count, missing: missingInHead) }
    }

    /// Goes on with the head that earlier chunks began, or begins one. Returns what follows it in the chunk.
    private mutating func completeHead(from chunk: UnsafeRawBufferPointer) throws -> UnsafeRawBufferPointer {
        var rest = chunk
        guard pending == nil else { return rest }
        if partial.isEmpty {
            try findHead(in: &rest)
            return rest
        }
        let scanned = partial.count
        // Where the head ends is not known yet, only where it must have ended.
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

    /// Takes a head off the front of `rest`, or all of it when the head is not complete.
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

    /// Hands a frame on whose content is complete with the front of `rest`. Keeps all of `rest` and returns false when
    /// it is not.
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

    /// Adds to the part that straddles, which has at most `longest` bytes when it is complete.
    private mutating func keep(_ bytes: Slice<UnsafeRawBufferPointer>, of longest: Int) {
        let count = partial.count + bytes.count
        if count > partial.capacity {
            // Twice what has come rather than what was declared, and no more than is needed.
            partial.reserveCapacity(max(FrameAssembler.minimumCapacity, min(2 * count, longest)))
        }
        partial.append(contentsOf: bytes)
    }
}
