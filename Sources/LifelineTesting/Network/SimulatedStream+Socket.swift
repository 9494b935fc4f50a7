// What a program does with its end.
extension SimulatedStream {
    /// Whether the end of the server's side has arrived at the client's kernel.
    package var hasServersEndArrived: Bool { directions[1].endArrived }

    /// Whether a side has said that it writes no more.
    func hasFinishedWriting(_ side: Side) -> Bool { directions[side.rawValue].end }

    /// Bytes that the peer's kernel has acknowledged.
    func acknowledgedByteCount(of side: Side) -> UInt64 { directions[side.rawValue].acknowledged }

    /// Bytes that the server's kernel has acknowledged.
    package var acknowledgedClientByteCount: UInt64 { acknowledgedByteCount(of: .client) }

    /// Whether the client's kernel takes bytes.
    package var hasClientRoom: Bool { directions[0].kept < SimulatedStream.bufferSize }

    /// Bytes that the side's kernel has taken.
    func takenByteCount(of side: Side) -> UInt64 {
        directions[side.rawValue].arrived + UInt64(directions[side.rawValue].pending.count)
    }

    /// Whether the side's kernel knows the connection no more.
    func isGone(_ side: Side) -> Bool { ends[side.rawValue].state == .gone }

    /// Hands bytes to the kernel. Returns how many it takes.
    func write(_ bytes: ArraySlice<UInt8>, from side: Side) -> Int {
        guard ends[side.rawValue].state == .open, !directions[side.rawValue].end else { return 0 }
        let count = min(bytes.count, SimulatedStream.bufferSize - directions[side.rawValue].kept)
        if count <= 0 { return 0 }
        directions[side.rawValue].pending += bytes.prefix(count)
        if side == .client { onClientBytes?(bytes.prefix(count)) }
        pump(side)
        return count
    }

    /// No more is written.
    func finishWriting(_ side: Side) {
        directions[side.rawValue].end = true
        pump(side)
    }

    /// What has arrived.
    func read(_ side: Side) -> (bytes: [UInt8], isEnd: Bool) {
        let sender = side.other
        let bytes = directions[sender.rawValue].unread
        directions[sender.rawValue].unread = []
        if bytes.count > SimulatedStream.bufferSize / 2 {
            tellOfRoom(sender)
        }
        return (bytes, directions[sender.rawValue].endArrived)
    }

    /// Closes in order, after `finishWriting`. What the kernel has is still sent, and its owner told of
    /// acknowledgements, until `release`.
    func close(_ side: Side) {
        guard ends[side.rawValue].state == .open else { return }
        // As Linux does: the peer is to know that somebody has not read everything.
        if !directions[side.other.rawValue].unread.isEmpty { return abort(side) }
        move(side, to: .closed)
    }

    /// Nobody wants to hear more of a connection that was closed.
    func release(_ side: Side) {
        ends[side.rawValue].owner = nil
    }

    /// Gives up: what is not on its way is dropped, and the peer is told if it can be reached.
    func abort(_ side: Side) {
        let state = ends[side.rawValue].state
        move(side, to: .gone)
        ends[side.rawValue].owner = nil
        if state == .open || state == .closed { sendReset(from: side) }
    }
}
