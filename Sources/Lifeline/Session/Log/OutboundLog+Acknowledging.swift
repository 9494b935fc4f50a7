internal import LifelineCore

extension OutboundLog {
    /// Releases all frames up to a place, which must have been sent.
    ///
    /// - Parameters:
    ///   - place: the last place to acknowledge; nothing happens if all up to it were acknowledged before
    ///   - released: receives each frame that was not acknowledged before, in order
    @inline(__always)
    package mutating func acknowledge(
        upTo place: UInt64,
        _ released: (UInt64, Tag, UnsafeRawBufferPointer) -> Void
    ) {
        noteAcknowledged(place)
        if !stragglers.isEmpty { releaseStragglers(in: 0...place, released) }
        guard records.first <= place else { return }
        repeat {
            let record = records[records.first]
            if record.tag.isAcknowledged {
                dropAcknowledgedFirst()
            } else {
                release(record, at: records.first, released)
                records.removeFirst()
            }
        } while records.first <= place
        if acknowledgedCount > 0 { dropAcknowledgedFront() }
        freeSpace()
    }

    /// Releases the frames of a range of places, which must have been sent.
    ///
    /// - Parameters:
    ///   - places: the places; those acknowledged before are skipped
    ///   - released: receives each frame that was not acknowledged before, in order
    package mutating func acknowledge(
        _ places: ClosedRange<UInt64>,
        _ released: (UInt64, Tag, UnsafeRawBufferPointer) -> Void
    ) {
        noteAcknowledged(places.upperBound)
        if !stragglers.isEmpty { releaseStragglers(in: places, released) }
        guard records.first <= places.upperBound else { return }
        var place = max(places.lowerBound, records.first)
        while place <= places.upperBound {
            let record = records[place]
            if !record.tag.isAcknowledged {
                markAcknowledged(place)
                release(record, at: place, released)
            }
            place += 1
        }
        dropAcknowledgedFront()
        freeSpace()
    }

    /// Continues after a place that is being acknowledged, because the peer has received the frames before it too.
    @inline(__always)
    private mutating func noteAcknowledged(_ place: UInt64) {
        precondition(place < sentEnd, "A frame was acknowledged that was never sent.")
        if place >= nextToSend { skip(to: place + 1) }
        if place > highestAcknowledged { highestAcknowledged = place }
    }

    /// Skips frames that were to be sent again.
    @inline(never)
    private mutating func skip(to place: UInt64) {
        while nextToSend < place {
            resentSize.remove(Self.cost(Int(records[nextToSend].byteCount)))
            nextToSend += 1
        }
    }

    @inline(__always)
    private mutating func release(
        _ record: Record,
        at place: UInt64,
        _ released: (UInt64, Tag, UnsafeRawBufferPointer) -> Void
    ) {
        let cost = Self.cost(Int(record.byteCount))
        keptSize.remove(cost)
        unacknowledgedSize.remove(cost)
        if record.tag.isFiller { fillerCount -= 1 }
        released(place, record.tag, frame(of: record))
    }

    @inline(never)
    private mutating func releaseStragglers(
        in places: ClosedRange<UInt64>,
        _ released: (UInt64, Tag, UnsafeRawBufferPointer) -> Void
    ) {
        for place in stragglers.numbers(in: places) {
            let straggler = stragglers.remove(place)!
            let cost = Self.cost(straggler.bytes.count)
            keptSize.remove(cost)
            unacknowledgedSize.remove(cost)
            if straggler.tag.isFiller { fillerCount -= 1 }
            stragglerByteCount -= straggler.bytes.count + Straggler.overhead
            straggler.bytes.withUnsafeBytes { released(place, straggler.tag, $0) }
        }
    }

    // MARK: Space

    private mutating func markAcknowledged(_ place: UInt64) {
        acknowledgedCount += 1
        acknowledgedByteCount += space(of: place)
        // Keeps the counted space, because the space of the last frame may still grow up to the end of the buffer.
        records[place].byteCount = UInt32(space(of: place))
        records[place].tag.markAcknowledged()
    }

    /// Removes the first record, which is acknowledged, from the ring.
    private mutating func dropAcknowledgedFirst() {
        acknowledgedCount -= 1
        acknowledgedByteCount -= Int(records[records.first].byteCount)
        records.removeFirst()
    }

    private mutating func dropAcknowledgedFront() {
        while !records.isEmpty, records[records.first].tag.isAcknowledged { dropAcknowledgedFirst() }
    }

    /// Frees the space of removed frames.
    @inline(__always)
    private mutating func freeSpace() {
        if acknowledgedCount > 0, hasCostlyStragglers { moveStragglers() }
        guard !records.isEmpty else { return storage.removeAll() }
        storage.removeBytes(before: records[records.first].start)
        if storage.isTooSparse { shrinkStorage() }
    }

    /// Whether the log has much more memory than its frames need. It keeps some for a while, for another burst.
    @inline(__always) package var hasSpareMemory: Bool { storage.isSparse || records.isSparse }

    /// Frees the memory that the frames do not need.
    package mutating func giveBackMemory() {
        if storage.isSparse { shrinkStorage() }
        records.giveBackMemory()
    }

    /// Whether acknowledged frames that cannot be removed take up so much more space than the unacknowledged frames
    /// before them that the latter should be moved out.
    ///
    /// Every record is moved or dropped at most once, so these limits only save copies. 64 records and 16 KiB are
    /// little compared to a window.
    private var hasCostlyStragglers: Bool {
        let recordCount = Int(highestAcknowledged + 1 - records.first)
        if acknowledgedCount >= 64, acknowledgedCount > recordCount - acknowledgedCount { return true }
        guard acknowledgedByteCount >= 16 << 10 else { return false }
        let byteCount = Int(endOfSpace(of: highestAcknowledged) &- records[records.first].start)
        return acknowledgedByteCount > byteCount - acknowledgedByteCount
    }

    /// Moves all frames below the highest acknowledged place out of the buffer.
    @inline(never)
    private mutating func moveStragglers() {
        while records.first <= highestAcknowledged {
            let record = records[records.first]
            if !record.tag.isAcknowledged {
                let straggler = Straggler(tag: record.tag, bytes: [UInt8](frame(of: record)))
                stragglerByteCount += straggler.bytes.count + Straggler.overhead
                stragglers.append(records.first, straggler)
            }
            records.removeFirst()
        }
        (acknowledgedCount, acknowledgedByteCount) = (0, 0)
    }

    @inline(never)
    private mutating func shrinkStorage() {
        let distance = storage.shrink()
        for place in records.first..<records.next { records[place].start &-= distance }
    }
}
