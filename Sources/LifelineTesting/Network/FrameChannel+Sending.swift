internal import LifelineCore

// Sending.
extension FrameChannel {
    /// Sends a frame with a message. Drops it if it would have to wait.
    func offer(_ frame: [UInt8]) {
        guard isStanding, case .accept(let schedulesFlush) = queue.offeredNow(byteCount: frame.count) else { return }
        append(frame, flushing: schedulesFlush)
    }

    /// Sends bytes that are not a message, without regard to waiting ones.
    func sendUncounted(_ bytes: [UInt8]) {
        guard isStanding, let schedulesFlush = queue.appended(byteCount: bytes.count) else { return }
        append(bytes, flushing: schedulesFlush)
    }

    /// Sends the answer to a ping.
    func reply(_ bytes: [UInt8]) {
        guard isStanding, let schedulesFlush = queue.replied(byteCount: bytes.count) else { return }
        if replies.queued(byteCount: bytes.count) {
            isReadHeld = true
            readingChanged()
        }
        append(bytes, flushing: schedulesFlush)
    }

    private func append(_ bytes: [UInt8], flushing: Bool) {
        acceptedByteCount += UInt64(bytes.count)
        outbound += bytes
        if flushing { flush() }
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
            // From now on, the time limit applies to the peer's end.
            if closeTimer.isArmed { startCloseTimer() }
            perform(machine.outputEnded())
        }
    }

    /// Offers the write in progress to the kernel, which takes a part of it.
    private func write() {
        let count = stream.write(outbound[..<writingByteCount], from: side)
        outbound.removeFirst(count)
        takenByteCount += count
        writingByteCount -= count
    }

    /// Continues after the kernel has taken the whole write.
    private func completeWrite() {
        guard isStanding, writingByteCount == 0 else { return }
        liveness?.writeCompleted()
        if replies.writeCompleted() { resumeReading() }
        if queue.written().scheduleFlush { flush() }
    }

    func streamBecameWritable() {
        guard isStanding, writingByteCount > 0 else { return }
        write()
        completeWrite()
    }
}
