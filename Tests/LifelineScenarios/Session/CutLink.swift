internal import Lifeline
internal import LifelineCore

/// A connection of `SessionCutRun`: bytes in two directions, which come in pieces of any size, and the frames that they
/// complete. Nothing moves by itself.
final class CutLink {
    /// One of its ends.
    enum Side: Int {
        case client, server

        var other: Side { self == .client ? .server : .client }
    }

    private struct Direction {
        /// Bytes that have been written and have not come.
        var bytes: ArraySlice<UInt8> = []
        var deliveredByteCount = 0
        /// Whether its writer has ended it in order.
        var isEnded = false
        var isLost = false
        var frames = FrameSplitter()
    }

    /// Its number: ascending.
    let id: UInt64
    private var toClient = Direction()
    private var toServer = Direction()

    init(id: UInt64) { self.id = id }

    private subscript(side: Side) -> Direction {
        get { side == .client ? toClient : toServer }
        _modify { if side == .client { yield &toClient } else { yield &toServer } }
    }

    /// The number of bytes that came to a side.
    func deliveredByteCount(to side: Side) -> Int { self[side].deliveredByteCount }

    /// Whether everything has come to a side, and its writer has said that this was all.
    func isAtEnd(at side: Side) -> Bool { self[side].isEnded && !self[side].isLost && self[side].bytes.isEmpty }

    func mayWrite(from side: Side) -> Bool { !self[side.other].isEnded }

    /// Appends frames that a side writes, with their lengths in front.
    func write(_ bytes: [UInt8], from side: Side) {
        if !self[side.other].isLost { self[side.other].bytes += bytes }
    }

    /// A side writes nothing more. What it wrote still comes.
    func end(from side: Side) { self[side.other].isEnded = true }

    /// Nothing more comes to a side.
    func lose(to side: Side) {
        self[side].isLost = true
        self[side].bytes = []
    }

    /// Takes at most so many bytes to a side. Returns the frames that they complete.
    func deliver(to side: Side, atMost byteCount: Int = .max) -> [[UInt8]] {
        let part = self[side].bytes.prefix(byteCount)
        self[side].bytes = self[side].bytes.dropFirst(part.count)
        self[side].deliveredByteCount += part.count
        return self[side].frames.split(part)
    }
}
