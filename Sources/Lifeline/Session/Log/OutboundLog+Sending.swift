extension OutboundLog {
    /// Hands out frames in order, as far as they fit.
    ///
    /// - Parameters:
    ///   - window: the most that may be sent and not acknowledged
    ///   - byteCount: the most bytes to hand out; a longer first frame is handed out nevertheless
    ///   - output: receives the bytes of whole frames, as many at a time as are contiguous
    /// - Returns: the number of frames
    @inline(__always)
    package mutating func send(
        within window: SessionWindow,
        atMost byteCount: Int,
        to output: (UnsafeRawBufferPointer) -> Void
    ) -> Int {
        guard hasUnsent else { return 0 }
        let begin = nextToSend
        var place = begin
        var sizes = (sent: SessionSize(), resent: SessionSize())
        // A frame to be sent again takes up the window once it was sent.
        let frameRoom = window.frameCount - (unacknowledgedSize.frameCount - resentSize.frameCount)
        var costRoom = window.byteCount - (unacknowledgedSize.byteCount - resentSize.byteCount)
        var byteRoom = byteCount
        var runStart = storage.index(of: records[begin].start)
        var runEnd = runStart
        while place < records.next, Int(place - begin) < frameRoom {
            let record = records[place]
            let length = Int(record.byteCount)
            let cost = Self.cost(length)
            guard cost <= costRoom, length <= byteRoom || place == begin else { break }
            costRoom &-= cost
            byteRoom &-= length
            if place < sentEnd { sizes.resent.add(cost) } else { sizes.sent.add(cost) }
            let start = storage.index(of: record.start)
            if start != runEnd {
                output(bytes(runStart..<runEnd))
                runStart = start
            }
            runEnd = start &+ length
            place += 1
        }
        if runStart != runEnd { output(bytes(runStart..<runEnd)) }
        nextToSend = place
        if place > sentEnd { sentEnd = place }
        unacknowledgedSize = unacknowledgedSize + sizes.sent
        resentSize.frameCount -= sizes.resent.frameCount
        resentSize.byteCount -= sizes.resent.byteCount
        return Int(place - begin)
    }

    /// How far sending has come.
    package struct SendingState: Sendable {
        fileprivate let nextToSend: UInt64
        fileprivate let sentEnd: UInt64
        fileprivate let unacknowledgedSize: SessionSize
        fileprivate let resentSize: SessionSize
    }

    package var sendingState: SendingState {
        SendingState(
            nextToSend: nextToSend,
            sentEnd: sentEnd,
            unacknowledgedSize: unacknowledgedSize,
            resentSize: resentSize
        )
    }

    /// Undoes the sending of frames that the connection has refused. Nothing was acknowledged meanwhile.
    package mutating func takeBack(to state: SendingState) {
        nextToSend = state.nextToSend
        sentEnd = state.sentEnd
        unacknowledgedSize = state.unacknowledgedSize
        resentSize = state.resentSize
    }

    /// Continues after the last place that the peer has received: on a new connection, later frames are sent again.
    ///
    /// - Parameter received: not below an acknowledged place, and not above a sent one
    package mutating func resume(behind received: UInt64) {
        precondition(received >= highestAcknowledged, "The peer has acknowledged more than it has received.")
        precondition(received < sentEnd, "The peer has received more than was sent.")
        nextToSend = received + 1
        resentSize = SessionSize()
        for place in nextToSend..<sentEnd { resentSize.add(Self.cost(Int(records[place].byteCount))) }
    }

    /// The bytes with the given indices in the storage.
    @inline(__always)
    private func bytes(_ indices: Range<Int>) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: storage.pointer(toIndex: indices.lowerBound), count: indices.count)
    }
}
