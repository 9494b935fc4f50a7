internal import LifelineCore

// Transmission and arrival.
extension SimulatedStream {
    /// Sends waiting bytes, as far as the receiver has room.
    func pump(_ side: Side) {
        let index = side.rawValue
        guard ends[index].state == .open || ends[index].state == .closed else { return }
        guard !directions[index].hasLostBytes, !directions[index].endArrived else { return }
        while true {
            let room = directions[index].isWindowClosed ? 0 : room(for: side) - directions[index].inFlight
            let waiting = directions[index].pending.count - directions[index].inFlight
            var count = min(waiting, room, SimulatedStream.burstSize)
            if count <= 0 {
                if waiting > 0, directions[index].inFlight == 0 { closeWindow(side) }
                break
            }
            // Reads at the other end may end at any byte.
            if Int.random(in: 0..<4, using: &simulation.random) == 0 {
                count = Int.random(in: 1...count, using: &simulation.random)
            }
            directions[index].inFlight += count
            let (burst, epoch, arrived) = (count, directions[index].epoch, directions[side.other.rawValue].arrived)
            send(from: side, byteCount: burst) {
                if self.directions[index].epoch == epoch { self.arrive(burst, from: side, acknowledging: arrived) }
            }
        }
        if directions[index].end, !directions[index].endInFlight,
            directions[index].inFlight == directions[index].pending.count
        {
            directions[index].endInFlight = true
            let (epoch, arrived) = (directions[index].epoch, directions[side.other.rawValue].arrived)
            send(from: side) {
                if self.directions[index].epoch == epoch { self.arriveEnd(from: side, acknowledging: arrived) }
            }
        }
    }

    private func arrive(_ count: Int, from side: Side, acknowledging total: UInt64) {
        let index = side.rawValue
        guard canArrive(from: side) else { return }
        learnOfAcknowledgement(side.other, total)
        let arriving = min(count, directions[index].cut?.after ?? count)
        directions[index].unread += directions[index].pending.prefix(arriving)
        directions[index].pending.removeFirst(arriving)
        directions[index].inFlight -= arriving
        directions[index].arrived += UInt64(arriving)
        if let (after, cut) = directions[index].cut {
            directions[index].cut?.after = after - arriving
            if after == arriving {
                directions[index].cut = nil
                cutOff(cut)
            }
        }
        acknowledge(side)
        ends[side.other.rawValue].owner?.streamBecameReadable()
        // The rest of a burst that a silent cut has stopped.
        if arriving < count { arrive(count - arriving, from: side, acknowledging: total) }
    }

    private func arriveEnd(from side: Side, acknowledging total: UInt64) {
        guard canArrive(from: side) else { return }
        // The end also acknowledges the bytes before it. Otherwise a graceful close would not know that nothing is
        // lost.
        learnOfAcknowledgement(side.other, total)
        directions[side.rawValue].endArrived = true
        ends[side.other.rawValue].owner?.streamBecameReadable()
    }

    /// Returns whether a packet arrives. A lost packet is sent again; a host that has forgotten the connection answers
    /// with a reset.
    private func canArrive(from side: Side) -> Bool {
        guard isPathOpen else {
            lose(side)
            return false
        }
        if side == .client { openServerEnd() }
        switch ends[side.other.rawValue].state {
        case .opening, .open:
            return true
        case .closed where directions[side.rawValue].pending.isEmpty:
            // Only the end arrives.
            return true
        case .closed, .gone:
            sendReset(from: side.other)
            // The reset may be lost, too.
            lose(side)
            return false
        }
    }

    /// Packets under way are lost.
    private func lose(_ side: Side) {
        let index = side.rawValue
        directions[index].epoch += 1
        directions[index].inFlight = 0
        directions[index].endInFlight = false
        directions[index].hasLostBytes = true
        retransmitLater(side)
    }

    /// Sends again after 200 ms, 400 ms and so on, up to 120 s, as Linux does, and gives up in the end. One timer
    /// serves all lost packets.
    private func retransmitLater(_ side: Side) {
        let index = side.rawValue
        guard ends[index].state == .open || ends[index].state == .closed else { return }
        if directions[index].retransmitsLater { return }
        directions[index].retransmissions += 1
        if directions[index].retransmissions > SimulatedStream.maximumRetransmissions {
            return fail(side, .transmissionTimedOut)
        }
        directions[index].retransmitsLater = true
        schedule(after: SimulatedStream.retransmissionTimeout(directions[index].retransmissions)) {
            self.directions[index].retransmitsLater = false
            self.retransmit(side)
        }
    }

    private func retransmit(_ side: Side) {
        let index = side.rawValue
        if directions[index].hasLostAcknowledgement {
            directions[index].hasLostAcknowledgement = false
            if directions[index].acknowledged < directions[index].arrived {
                askForAcknowledgement(side)
            } else {
                // Data in the other direction has carried the acknowledgement meanwhile.
                pump(side)
                ends[index].owner?.streamBecameWritable()
            }
        }
        if directions[index].hasLostBytes {
            directions[index].hasLostBytes = false
            pump(side)
        }
    }

    /// Sends bytes once more that have arrived, so that the peer acknowledges them again.
    private func askForAcknowledgement(_ side: Side) {
        send(from: side) {
            guard self.isPathOpen else { return self.loseAcknowledgement(side) }
            guard self.ends[side.other.rawValue].state != .gone else {
                self.sendReset(from: side.other)
                // The reset may be lost, too.
                return self.loseAcknowledgement(side)
            }
            self.acknowledge(side)
        }
    }

    private func loseAcknowledgement(_ side: Side) {
        directions[side.rawValue].hasLostAcknowledgement = true
        retransmitLater(side)
    }

    /// The pause before the nth retransmission.
    static func retransmissionTimeout(_ count: Int) -> Duration {
        min(.milliseconds(200 << min(max(count - 1, 0), 10)), .seconds(120))
    }

    /// Acknowledges the arrived bytes to the sender.
    private func acknowledge(_ side: Side) {
        let index = side.rawValue
        let total = directions[index].arrived
        if directions[index].isAcknowledging { return }
        directions[index].isAcknowledging = true
        send(from: side.other) {
            self.directions[index].isAcknowledging = false
            guard self.ends[index].state != .gone else { return }
            guard self.isPathOpen else { return self.loseAcknowledgement(side) }
            self.noteAcknowledgement(of: side, total)
            if total < self.directions[index].arrived { self.acknowledge(side) }
            self.learnOfRoom(side)
            self.ends[index].owner?.streamBecameWritable()
        }
    }

    /// Packets of the other direction acknowledge bytes as well.
    private func learnOfAcknowledgement(_ side: Side, _ total: UInt64) {
        let before = directions[side.rawValue].acknowledged
        noteAcknowledgement(of: side, total)
        if directions[side.rawValue].acknowledged > before { ends[side.rawValue].owner?.streamBecameWritable() }
    }

    private func noteAcknowledgement(of side: Side, _ total: UInt64) {
        guard total > directions[side.rawValue].acknowledged else { return }
        directions[side.rawValue].acknowledged = total
        directions[side.rawValue].retransmissions = 0
    }
}
