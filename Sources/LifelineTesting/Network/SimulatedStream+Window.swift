internal import LifelineCore

// What a receiver has room for, and what the sender knows of it.
extension SimulatedStream {
    /// Who is there no more keeps nothing, and answers with a reset.
    func room(for side: Side) -> Int {
        let unreadCount = ends[side.other.rawValue].state == .gone ? 0 : directions[side.rawValue].unread.count
        return SimulatedStream.bufferSize - unreadCount
    }

    /// The receiver has made room, and says so.
    func tellOfRoom(_ sender: Side) {
        send(from: sender.other) {
            if self.isPathOpen { self.learnOfRoom(sender) }
        }
    }

    /// The sender hears from the receiver, which always says how much room it has.
    func learnOfRoom(_ side: Side) {
        directions[side.rawValue].unansweredWindowProbes = 0
        if room(for: side) > 0 { directions[side.rawValue].isWindowClosed = false }
        pump(side)
    }

    /// There is no room: from now on the sender asks for it, as Linux does, for the peer may be gone, or what it said
    /// be lost.
    func closeWindow(_ side: Side) {
        if directions[side.rawValue].isWindowClosed { return }
        directions[side.rawValue].isWindowClosed = true
        directions[side.rawValue].windowEpoch += 1
        directions[side.rawValue].windowProbes = 0
        directions[side.rawValue].unansweredWindowProbes = 0
        probeWindowLater(side)
    }

    /// Asks after 200 ms, 400 ms and so on, up to 120 s: for ever, if there are answers; if not, it gives up in the
    /// end.
    private func probeWindowLater(_ side: Side) {
        let index = side.rawValue
        if directions[index].unansweredWindowProbes > SimulatedStream.maximumRetransmissions {
            return fail(side, .transmissionTimedOut)
        }
        directions[index].windowProbes += 1
        let epoch = directions[index].windowEpoch
        schedule(after: SimulatedStream.retransmissionTimeout(directions[index].windowProbes)) {
            let state = self.ends[index].state
            guard state == .open || state == .closed else { return }
            guard self.directions[index].isWindowClosed, self.directions[index].windowEpoch == epoch else { return }
            self.probeWindow(side)
        }
    }

    private func probeWindow(_ side: Side) {
        directions[side.rawValue].unansweredWindowProbes += 1
        send(from: side) {
            guard self.isPathOpen else { return }
            if self.ends[side.other.rawValue].state == .gone { return self.sendReset(from: side.other) }
            self.tellOfRoom(side)
        }
        probeWindowLater(side)
    }
}
