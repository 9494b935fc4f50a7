import LifelineCore

@testable import Lifeline

/// A frame as a log hands it out.
struct LoggedFrame: Equatable {
    let place: UInt64
    let tag: OutboundLog.Tag
    let bytes: [UInt8]

    init(_ place: UInt64, _ tag: OutboundLog.Tag, _ bytes: [UInt8]) {
        self.place = place
        self.tag = tag
        self.bytes = bytes
    }
}

/// A frame of a given length, with its length prefix. `filler` determines its other bytes.
func logFrame(_ byteCount: Int, _ filler: Int = 0) -> [UInt8] {
    for prefixLength in 1...5 {
        let content = UInt64(byteCount - prefixLength)
        guard Varint.encodedLength(of: content) == prefixLength else { continue }
        var frame = [UInt8](repeating: UInt8(truncatingIfNeeded: filler), count: byteCount)
        frame[byteCount - 1] &+= 1
        for index in 0..<prefixLength {
            let bits = UInt8(content >> (7 * UInt64(index)) & 0x7F)
            frame[index] = index == prefixLength - 1 ? bits : bits | 0x80
        }
        return frame
    }
    preconditionFailure("No frame has \(byteCount) bytes.")
}

/// The cost of a frame, read from its length prefix.
func logCost(_ frame: [UInt8]) -> Int {
    frame.withUnsafeBytes { bytes in
        guard case .value(let length, _) = Varint.decode(bytes) else { return -1 }
        return Int(length) + 64
    }
}

let blankLogFrame: [UInt8] = [0x02, 0x7A, 0x00]

extension OutboundLog {
    /// Whether the log has an unacknowledged frame at a place.
    func contains(_ place: UInt64) -> Bool { tag(of: place) != nil }

    /// The tag of an unacknowledged frame.
    func tag(of place: UInt64) -> Tag? {
        guard place >= records.first else { return stragglers[place]?.tag }
        return place < records.next && !records[place].tag.isAcknowledged ? records[place].tag : nil
    }

    @discardableResult
    mutating func append(_ frame: [UInt8], capacity: Int? = nil, _ tag: Tag = Tag(.plain)) -> UInt64 {
        append(byteCount: frame.count, capacity: capacity, tag: tag) { target in
            target.copyMemory(from: frame, byteCount: frame.count)
        }
    }

    mutating func replace(_ place: UInt64, _ frame: [UInt8]) -> Bool {
        replace(place, byteCount: frame.count) { $0.copyMemory(from: frame, byteCount: frame.count) }
    }

    /// Sends frames, and returns the pieces that are handed out.
    mutating func sendPieces(
        within window: SessionWindow = SessionWindow(frameCount: .max, byteCount: .max),
        atMost byteCount: Int = .max
    ) -> (count: Int, pieces: [[UInt8]]) {
        var pieces: [[UInt8]] = []
        let count = send(within: window, atMost: byteCount) { pieces.append([UInt8]($0)) }
        return (count, pieces)
    }

    @discardableResult
    mutating func sendAll() -> [UInt8] { Array(sendPieces().pieces.joined()) }

    @discardableResult
    mutating func releasing(upTo place: UInt64) -> [LoggedFrame] {
        var released: [LoggedFrame] = []
        acknowledge(upTo: place) { released.append(LoggedFrame($0, $1, [UInt8]($2))) }
        return released
    }

    @discardableResult
    mutating func releasing(_ places: ClosedRange<UInt64>) -> [LoggedFrame] {
        var released: [LoggedFrame] = []
        acknowledge(places) { released.append(LoggedFrame($0, $1, [UInt8]($2))) }
        return released
    }

    func keptFrames() -> [LoggedFrame] {
        var frames: [LoggedFrame] = []
        forEachKept { frames.append(LoggedFrame($0, $1, [UInt8]($2))) }
        return frames
    }

    mutating func unsentFrames(from place: UInt64 = 0) -> [LoggedFrame] {
        var frames: [LoggedFrame] = []
        forEachUnsent(from: place) { frames.append(LoggedFrame($0, $1, [UInt8]($2))) }
        return frames
    }

    func bytes(of place: UInt64) -> [UInt8] { withFrame(place) { [UInt8]($0) } }
}
