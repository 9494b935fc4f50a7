/// Receives the frames that a `FrameAssembler` completes, as many at once as are contiguous.
package protocol FrameRunSink {
    /// Receives frames, which are valid only during the call. An error ends the chunk.
    mutating func receive(_ run: FrameRun) throws
}

/// Receives frames one by one.
package protocol FrameSink: FrameRunSink {
    /// Receives one frame's payload, which is valid only during the call. An error ends the chunk.
    mutating func receive(frame: UnsafeRawBufferPointer) throws
}

extension FrameSink {
    package mutating func receive(_ run: FrameRun) throws {
        for frame in run { try receive(frame: frame) }
    }
}

/// Joins the chunks of a byte stream into frames.
///
/// All whole frames of a chunk are passed on together and in place. Only a frame that straddles chunks is copied, each
/// of its bytes once, and moved again only when its buffer doubles: a constant number of moves for each byte, however
/// small the chunks.
///
/// The memory held is at most `2 × bytes received of the straddling frame + minimumCapacity`, plus the allocator's
/// rounding, whatever the prefix declares. Between frames no memory is held.
package struct FrameAssembler: Sendable {
    /// The smallest buffer of a straddling frame. Most messages fit without growing it.
    package static let minimumCapacity = 256

    private var decoder: FrameDecoder
    private var partial: [UInt8] = []
    /// At least this many bytes are missing before `partial` is worth checking again. Above 0 while it is not empty.
    private var missing = 0
    private var failure: FramingError?
    /// The number of frames that were passed on.
    package private(set) var frameCount = 0

    /// Makes an assembler at the start of a stream.
    package init(decoder: FrameDecoder) {
        self.decoder = decoder
    }

    /// Raises the limit for frames that begin from now on. The limit does not count the prefix.
    package mutating func raiseLimit(to maximumFrameLength: Int) {
        decoder = FrameDecoder(maximumFrameLength: max(maximumFrameLength, decoder.maximumFrameLength))
    }

    /// The bytes of memory that the straddling frame takes up now.
    package var heldByteCount: Int { partial.capacity }

    /// The least length of the straddling frame, prefix included; 0 when there is none.
    package var pendingLength: Int { partial.isEmpty ? 0 : partial.count + missing }

    /// Passes the frames that `chunk` completes to `sink`, in order: first a frame that earlier chunks began, and then
    /// all others together.
    ///
    /// - Throws: `FramingError` when the stream has no valid frame at a place, after the frames before it were passed
    ///   on, and from then on at every call. Also the sink's errors, after which the stream must be given up.
    package mutating func receive(_ chunk: UnsafeRawBufferPointer, into sink: inout some FrameRunSink) throws {
        _ = try receivePart(of: chunk, limit: .unlimited, into: &sink)
    }

    /// Does the same with a part of `chunk`: a frame that earlier chunks began, and the following ones that `limit`
    /// allows.
    ///
    /// - Returns: the number of bytes taken. Pass the rest with the next call.
    package mutating func receivePart(
        of chunk: UnsafeRawBufferPointer,
        limit: PartLimit,
        into sink: inout some FrameRunSink
    ) throws -> Int {
        if let failure { throw failure }
        do {
            guard let offset = try completePartialFrame(from: chunk, into: &sink) else { return chunk.count }
            let scan = decoder.scan(chunk, from: offset, part: limit)
            if scan.count > 0 {
                let whole = UnsafeRawBufferPointer(rebasing: chunk[offset..<scan.end])
                frameCount &+= scan.count
                try sink.receive(FrameRun(unchecked: whole, count: scan.count))
            }
            switch scan.stop {
            case .end: return scan.end
            case .failure(let error): throw error
            case .incomplete(let missing):
                self.missing = missing
                append(chunk[scan.end...], stillMissing: missing)
                return chunk.count
            }
        } catch let error as FramingError {
            failure = error
            throw error
        }
    }

    /// Checks that the stream may end here.
    ///
    /// - Throws: `FramingError` `truncatedFrame` inside a frame, or the earlier error of the stream.
    package func finish() throws(FramingError) {
        if let failure { throw failure }
        if !partial.isEmpty { throw .truncatedFrame(received: partial.count, missing: missing) }
    }

    /// Completes the frame left over from earlier chunks. Returns the start of the rest of the chunk, or nil when the
    /// chunk was used up without completing the frame.
    private mutating func completePartialFrame(
        from chunk: UnsafeRawBufferPointer,
        into sink: inout some FrameRunSink
    ) throws -> Int? {
        guard !partial.isEmpty else { return 0 }
        var offset = 0
        while true {
            let count = min(missing, chunk.count - offset)
            missing -= count
            append(chunk[offset..<(offset + count)], stillMissing: missing)
            offset += count
            if missing > 0 { return nil }
            let step = try partial.withUnsafeBytes { try decoder.nextFrame(in: $0, from: 0) }
            switch step {
            case .incomplete(let missing):
                self.missing = missing
            case .frame:
                let frame = partial
                partial = []
                frameCount &+= 1
                try frame.withUnsafeBytes { try sink.receive(FrameRun(unchecked: $0, count: 1)) }
                return offset
            }
        }
    }

    private mutating func append(_ bytes: Slice<UnsafeRawBufferPointer>, stillMissing: Int) {
        let count = partial.count + bytes.count
        if count > partial.capacity {
            // Twice the received length, not the declared one, and no more than the frame needs.
            partial.reserveCapacity(max(FrameAssembler.minimumCapacity, min(2 * count, count + stillMissing)))
        }
        partial.append(contentsOf: bytes)
    }
}
