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
        guard state == .open else { return .refused }
        guard line.isEmpty, outbound.count < options.marks.high else {
            line.append((number, frame))
            return .waits
        }
        accept(frame)
        flush()
        return .accepted
    }

    /// Takes a frame back that waits. False when it was accepted meanwhile.
    func withdraw(_ number: UInt64) -> Bool {
        guard let index = line.firstIndex(where: { $0.number == number }) else { return false }
        line.remove(at: index)
        return true
    }

    /// Sends bytes that are no message, whatever waits.
    func sendUncounted(_ bytes: [UInt8]) {
        guard state == .open else { return }
        ledger.uncountedBytesAccepted(bytes.count)
        acceptedByteCount += UInt64(bytes.count)
        outbound += bytes
        flush()
    }

    private func accept(_ frame: [UInt8]) {
        ledger.frameAccepted(byteCount: frame.count)
        acceptedFrameCount += 1
        acceptedByteCount += UInt64(frame.count)
        messageEnd = acceptedByteCount
        outbound += frame
    }

    /// Hands the kernel what it takes of the write under way, or of a new one of all that was accepted.
    func flush() {
        let begins = writingByteCount == 0 && !outbound.isEmpty
        if begins {
            writingByteCount = outbound.count
            writtenByteCount += UInt64(writingByteCount)
        }
        let offered = writingByteCount
        let count = offered == 0 ? 0 : stream.write(outbound[..<offered], from: side)
        outbound.removeFirst(count)
        takenByteCount += count
        writingByteCount -= count
        if begins { watchWrite(byteCount: offered) }
        guard state == .open || state == .closing else { return }
        if offered > 0, writingByteCount == 0 { liveness?.writeCompleted() }
        if outbound.count <= options.marks.low {
            replyByteCount = 0
            while !line.isEmpty, outbound.count < options.marks.high {
                let (number, frame) = line.removeFirst()
                accept(frame)
                owner?.channel(self, accepted: number)
            }
            if !outbound.isEmpty, count > 0 { return flush() }
            resumeReading()
        } else if count > 0, writingByteCount == 0 {
            return flush()
        }
        if state == .closing, outbound.isEmpty, !outputEnded {
            outputEnded = true
            stream.finishWriting(side)
            // From now on the time is the peer's, for its end.
            startCloseTimer()
            closeIfBothEnded()
        }
    }

    func streamBecameWritable() {
        if isEnding { return finishIfAcknowledged() }
        ledger.bytesAcknowledged(total: stream.acknowledgedByteCount(of: side))
        flush()
    }
}
