internal import LifelineCore

// Access to frames, which are named by their places.
extension OutboundLog {
    /// Calls a closure with the bytes of a frame that is not acknowledged.
    package func withFrame<Result>(_ place: UInt64, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        guard place >= records.first else { return straggler(at: place).bytes.withUnsafeBytes(body) }
        return body(frame(of: keptRecord(at: place)))
    }

    /// Replaces a frame that is not sent yet, if the new one fits into its space.
    ///
    /// - Parameters:
    ///   - place: the place of the frame, which keeps its tag
    ///   - byteCount: the length of the new frame with its length prefix
    ///   - write: writes all bytes of the new frame
    /// - Returns: whether there was room; if not, nothing has changed
    package mutating func replace(
        _ place: UInt64,
        byteCount: Int,
        write: (UnsafeMutableRawPointer) -> Void
    ) -> Bool {
        precondition(byteCount > 0, "A frame is never empty.")
        let record = unsentRecord(at: place)
        guard byteCount <= space(of: place) else { return false }
        let added = Self.cost(byteCount) - Self.cost(Int(record.byteCount))
        keptSize.byteCount += added
        if place < sentEnd {
            unacknowledgedSize.byteCount += added
            resentSize.byteCount += added
        }
        records[place].byteCount = UInt32(byteCount)
        write(storage.pointer(to: record.start))
        return true
    }

    /// Replaces a frame that is not sent yet by a blank one, which has a place and no content. Its space is freed when
    /// it is acknowledged.
    package mutating func blank(_ place: UInt64) {
        let hasRoom = replace(place, byteCount: Self.blankByteCount) { Self.writeBlank(to: $0) }
        precondition(hasRoom, "A frame with a kind has at least 3 bytes.")
        if !records[place].tag.isFiller { fillerCount += 1 }
        records[place].tag = Tag(.blank)
    }

    static var blankByteCount: Int { 3 }

    static func writeBlank(to frame: UnsafeMutableRawPointer) {
        // Length 2; field 15 with wire type 2; length 0.
        frame.storeBytes(of: 0x02, as: UInt8.self)
        frame.storeBytes(of: 0x7A, toByteOffset: 1, as: UInt8.self)
        frame.storeBytes(of: 0x00, toByteOffset: 2, as: UInt8.self)
    }

    /// Calls a closure with each frame that is not sent yet, from a place on, in order. It may change the bytes.
    package mutating func forEachUnsent(
        from place: UInt64 = 0,
        _ body: (UInt64, Tag, UnsafeMutableRawBufferPointer) -> Void
    ) {
        var place = max(place, nextToSend)
        while place < records.next {
            body(place, records[place].tag, mutableFrame(of: records[place]))
            place += 1
        }
    }

    /// Calls a closure with each frame that is not acknowledged, in order.
    package func forEachKept(_ body: (UInt64, Tag, UnsafeRawBufferPointer) -> Void) {
        for place in stragglers.numbers {
            let straggler = straggler(at: place)
            straggler.bytes.withUnsafeBytes { body(place, straggler.tag, $0) }
        }
        for place in records.first..<records.next where !records[place].tag.isAcknowledged {
            body(place, records[place].tag, frame(of: records[place]))
        }
    }

    // MARK: For the log alone

    @inline(__always)
    func mutableFrame(of record: Record) -> UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(start: storage.pointer(to: record.start), count: Int(record.byteCount))
    }

    @inline(__always)
    func frame(of record: Record) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: storage.pointer(to: record.start), count: Int(record.byteCount))
    }

    /// Returns how long a frame at a place of `records` may be.
    @inline(__always)
    func space(of place: UInt64) -> Int {
        Int(endOfSpace(of: place) &- records[place].start)
    }

    /// Returns the position after the space of a frame. The space is in one piece, and up to the end of the buffer if
    /// the next frame went to the start.
    @inline(__always)
    func endOfSpace(of place: UInt64) -> UInt32 {
        place + 1 < records.next ? records[place + 1].start : storage.endPosition
    }

    private func keptRecord(at place: UInt64) -> Record {
        let record = records[place]
        precondition(!record.tag.isAcknowledged, "The frame was acknowledged.")
        return record
    }

    private func unsentRecord(at place: UInt64) -> Record {
        precondition(place >= nextToSend, "Only a frame that is to be sent can be changed.")
        return records[place]
    }

    private func straggler(at place: UInt64) -> Straggler {
        guard let straggler = stragglers[place] else { preconditionFailure("The frame was acknowledged.") }
        return straggler
    }
}
