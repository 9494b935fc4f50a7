// The calls of a program on its end.
extension SimulatedStream {
    /// Whether the end of the server's side has arrived at the client's kernel.
    package var hasServersEndArrived: Bool { directions[1].endArrived }

    /// Whether a side has ended its output.
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

    /// Whether the side's kernel has forgotten the connection.
    func isGone(_ side: Side) -> Bool { ends[side.rawValue].state == .gone }

    /// Offers bytes to the kernel. Returns the number that it takes.
    func write(_ bytes: ArraySlice<UInt8>, from side: Side) -> Int {
        guard ends[side.rawValue].state == .open, !directions[side.rawValue].end else { return 0 }
        let count = min(bytes.count, SimulatedStream.bufferSize - directions[side.rawValue].kept)
        if count <= 0 { return 0 }
        directions[side.rawValue].pending += bytes.prefix(count)
        if side == .client { onClientBytes?(bytes.prefix(count)) }
        pump(side)
        return count
    }

    /// Ends the output.
    func finishWriting(_ side: Side) {
        directions[side.rawValue].end = true
        pump(side)
    }

    /// Reads what has arrived.
    func read(_ side: Side) -> (bytes: [UInt8], isEnd: Bool) {
        let sender = side.other
        let bytes = directions[sender.rawValue].unread
        directions[sender.rawValue].unread = []
        if bytes.count > SimulatedStream.bufferSize / 2 {
            tellOfRoom(sender)
        }
        return (bytes, directions[sender.rawValue].endArrived)
    }

    /// Closes in order, after `finishWriting`. The kernel still sends what it has, and the owner receives
    /// acknowledgements, until `release`.
    func close(_ side: Side) {
        guard ends[side.rawValue].state == .open else { return }
        // As on Linux: the reset tells the peer that not everything was read.
        if !directions[side.other.rawValue].unread.isEmpty { return abort(side) }
        move(side, to: .closed)
    }

    /// Stops events of a closed connection.
    func release(_ side: Side) {
        ends[side.rawValue].owner = nil
    }

    /// Aborts the connection: drops the bytes that are not under way, and resets the peer if it can be reached.
    func abort(_ side: Side) {
        let state = ends[side.rawValue].state
        move(side, to: .gone)
        ends[side.rawValue].owner = nil
        if state == .open || state == .closed { sendReset(from: side) }
    }
}
