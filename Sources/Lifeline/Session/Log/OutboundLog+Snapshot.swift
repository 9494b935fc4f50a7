internal import LifelineCore

// The transfer of a lane to another server.
extension OutboundLog {
    /// Makes a log from the unacknowledged frames of another one. None of them is sent before `resume`.
    ///
    /// - Precondition: `lane.isSound`.
    init(_ lane: LaneSnapshot) {
        self.init()
        let first = lane.frames.first?.place ?? lane.next
        records = Ring(nextNumber: first)
        (nextToSend, sentEnd, highestAcknowledged) = (lane.sentEnd, lane.sentEnd, first - 1)
        var gaps: [ClosedRange<UInt64>] = []
        for frame in lane.frames {
            if next < frame.place {
                gaps.append(next...frame.place - 1)
                appendBlanks(through: frame.place - 1)
            }
            _ = append(byteCount: frame.bytes.count, tag: Tag(of: frame.role)) { target in
                frame.bytes.withUnsafeBytes { target.copyMemory(from: $0.baseAddress!, byteCount: $0.count) }
            }
        }
        if next < lane.next {
            gaps.append(next...lane.next - 1)
            appendBlanks(through: lane.next - 1)
        }
        for place in records.first..<sentEnd { unacknowledgedSize.add(Self.cost(Int(records[place].byteCount))) }
        for gap in gaps { acknowledge(gap) { _, _, _ in } }
    }

    /// Appends blanks in the places of acknowledged frames.
    private mutating func appendBlanks(through place: UInt64) {
        while next <= place {
            _ = append(byteCount: Self.blankByteCount, tag: Tag(.blank)) { Self.writeBlank(to: $0) }
        }
    }

    /// - Parameter role: the role of a frame in a snapshot.
    func snapshot(_ role: (UInt64, Tag) -> LaneSnapshot.Role) -> LaneSnapshot {
        var frames: [LaneSnapshot.Frame] = []
        forEachKept { place, tag, bytes in
            frames.append(LaneSnapshot.Frame(place: place, bytes: [UInt8](bytes), role: role(place, tag)))
        }
        return LaneSnapshot(next: next, sentEnd: sentEnd, frames: frames)
    }
}

extension OutboundLog.Tag {
    fileprivate init(of role: LaneSnapshot.Role) {
        switch role {
        case .plain: self.init(.plain)
        case .special: self.init(.awaited, hasDetails: true)
        case .method: self.init(.method)
        case .blank: self.init(.blank)
        }
    }
}

extension LaneSnapshot {
    /// The most places that are restored: more than any window has.
    private static var maximumPlaceCount: UInt64 { 1 << 20 }

    /// Whether such a lane is possible: places ascend, missing frames were sent, and no frame is empty.
    var isSound: Bool {
        let first = frames.first?.place ?? next
        guard first >= 1, first <= next, next < .max / 2, next - first <= Self.maximumPlaceCount, sentEnd >= first,
            sentEnd <= next
        else { return false }
        var last = first - 1
        for frame in frames {
            guard frame.place > last, frame.place < next, frame.bytes.count >= 2,
                frame.place == last + 1 || frame.place <= sentEnd
            else { return false }
            last = frame.place
        }
        return last == next - 1 || next == sentEnd
    }
}
