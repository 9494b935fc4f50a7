internal import LifelineCore

// The receiver's window, and what the sender knows of it.
extension SimulatedStream {
    /// A host that has forgotten the connection keeps nothing, and answers with a reset.
    func room(for side: Side) -> Int {
        let unreadCount = ends[side.other.rawValue].state == .gone ? 0 : directions[side.rawValue].unread.count
        return SimulatedStream.bufferSize - unreadCount
    }

    /// The receiver has made room, and announces it.
    func tellOfRoom(_ sender: Side) {
        send(from: sender.other) {
            if self.isPathOpen { self.learnOfRoom(sender) }
        }
    }

    /// The sender receives a packet of the receiver, which always announces its room.
    func learnOfRoom(_ side: Side) {
        directions[side.rawValue].unansweredWindowProbes = 0
        if room(for: side) > 0 { directions[side.rawValue].isWindowClosed = false }
        pump(side)
    }

    /// There is no room: from now on the sender probes for it, as Linux does, because the peer may be gone, or its
    /// announcement lost.
    func closeWindow(_ side: Side) {
        if directions[side.rawValue].isWindowClosed { return }
        directions[side.rawValue].isWindowClosed = true
        directions[side.rawValue].windowEpoch += 1
        directions[side.rawValue].windowProbes = 0
        directions[side.rawValue].unansweredWindowProbes = 0
        probeWindowLater(side)
    }

    /// Probes after 200 ms, 400 ms and so on, up to 120 s. With answers it probes for ever; without, it gives up in the
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
