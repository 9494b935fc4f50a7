internal import LifelineCore

// Sending.
extension FrameChannel {
    enum OfferResult {
        case accepted
        /// `FrameChannelOwner` hears how it ends.
        case waits
        case refused
    }

    /// Takes a frame with a message of this number.
    func offer(_ frame: [UInt8], number: UInt64) -> OfferResult {
        guard isStanding else { return .refused }
        switch queue.offered(byteCount: frame.count) {
        case .accept(let schedulesFlush):
            accept(frame)
            if schedulesFlush { flush() }
            return .accepted
        case .wait(let id):
            line.append(Waiting(id: id, number: number, frame: frame))
            return .waits
        case .refuse:
            return .refused
        }
    }

    /// Takes a frame back that waits. False when it was accepted meanwhile.
    func withdraw(_ number: UInt64) -> Bool {
        guard let index = line.firstIndex(where: { $0.number == number }) else { return false }
        return queue.cancelled(id: line.remove(at: index).id)
    }

    /// Sends bytes that are no message, whatever waits.
    func sendUncounted(_ bytes: [UInt8]) {
        guard isStanding, let schedulesFlush = queue.appended(byteCount: bytes.count) else { return }
        append(bytes, flushing: schedulesFlush)
    }

    /// Sends what answers a ping.
    func reply(_ bytes: [UInt8]) {
        guard isStanding, let schedulesFlush = queue.replied(byteCount: bytes.count) else { return }
        if replies.queued(byteCount: bytes.count) {
            isReadHeld = true
            readingChanged()
        }
        append(bytes, flushing: schedulesFlush)
    }

    private func append(_ bytes: [UInt8], flushing: Bool) {
        ledger.uncountedBytesAccepted(bytes.count)
        acceptedByteCount += UInt64(bytes.count)
        outbound += bytes
        if flushing { flush() }
    }

    private func accept(_ frame: [UInt8]) {
        ledger.frameAccepted(byteCount: frame.count)
        acceptedFrameCount += 1
        acceptedByteCount += UInt64(frame.count)
        messageEnd = acceptedByteCount
        outbound += frame
    }

    func flush() {
        guard isStanding else { return }
        switch queue.flushStarted() {
        case .none:
            break
        case .write:
            let byteCount = outbound.count
            writingByteCount = byteCount
            writtenByteCount += UInt64(byteCount)
            replies.writeStarted()
            write()
            watchWrite(byteCount: byteCount)
            completeWrite()
        case .endOutput:
            stream.finishWriting(side)
            // From now on the time is the peer's, for its end.
            if closeTimer.isArmed { startCloseTimer() }
            perform(machine.outputEnded())
        }
    }

    /// Hands the kernel what it takes of the write under way.
    private func write() {
        let count = stream.write(outbound[..<writingByteCount], from: side)
        outbound.removeFirst(count)
        takenByteCount += count
        writingByteCount -= count
    }

    /// Goes on when the kernel has taken the write.
    private func completeWrite() {
        guard isStanding, writingByteCount == 0 else { return }
        liveness?.writeCompleted()
        if replies.writeCompleted() { resumeReading() }
        let action = queue.written()
        for id in action.admitted {
            guard let index = line.firstIndex(where: { $0.id == id }) else { continue }
            let waiting = line.remove(at: index)
            accept(waiting.frame)
            owner?.channel(self, accepted: waiting.number)
        }
        if action.scheduleFlush { flush() }
    }

    func streamBecameWritable() {
        if isEnding { return lookForAcknowledgements() }
        guard isStanding else { return }
        ledger.bytesAcknowledged(total: stream.acknowledgedByteCount(of: side))
        guard writingByteCount > 0 else { return }
        write()
        completeWrite()
    }
}
