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
        acceptedByteCount += UInt64(frame.count)
        outbound += frame
    }

    func flush() {
        let count = outbound.isEmpty ? 0 : stream.write(outbound[...], from: side)
        outbound.removeFirst(count)
        takenByteCount += count
        if outbound.count <= options.marks.low {
            replyByteCount = 0
            while !line.isEmpty, outbound.count < options.marks.high {
                let (number, frame) = line.removeFirst()
                accept(frame)
                owner?.channel(self, accepted: number)
            }
            if !outbound.isEmpty, count > 0 { return flush() }
            resumeReading()
        }
        if state == .closing, outbound.isEmpty, !outputEnded {
            outputEnded = true
            stream.finishWriting(side)
            closeIfBothEnded()
        }
    }

    func streamBecameWritable() {
        ledger.bytesAcknowledged(total: stream.acknowledgedByteCount(of: side))
        flush()
    }
}
