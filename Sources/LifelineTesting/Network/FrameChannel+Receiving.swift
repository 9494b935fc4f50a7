internal import LifelineCore

// Receiving.
extension FrameChannel {
    private struct Sink: FrameSink {
        var messages: [SimulatedMessage] = []

        mutating func receive(frame: UnsafeRawBufferPointer) throws {
            guard let message = SimulatedMessage(frame) else { throw FramingError.malformedPrefix }
            messages.append(message)
        }
    }

    func streamBecameReadable() {
        readAvailable()
    }

    func readAvailable() {
        // A peer that asks and does not read the answers is not read either. Messages do not count: of two peers that
        // send much, each would wait for the other to read.
        let holds = replyByteCount >= options.marks.high
        if holds != isReadHeld {
            isReadHeld = holds
            readingChanged()
        }
        // What comes while it is being closed is dropped, which needs reading.
        guard (reads && !isReadHeld) || state == .closing, !inputEnded else { return }
        guard state == .open || state == .closing else { return }
        let (bytes, isEnd) = stream.read(side)
        if !bytes.isEmpty {
            lastInboundAt = now
            readCount += 1
            if liveness?.received(now: now) == true { armLivenessTimer() }
            if state == .open { receive(bytes) }
        }
        // What comes with the end is read before it.
        if isEnd, !isClosed { endInput() }
    }

    func resumeReading() {
        guard isReadHeld else { return }
        isReadHeld = false
        // Not from within a send.
        host.simulation.schedule(after: .zero) { self.readingChanged() }
    }

    private func receive(_ bytes: [UInt8]) {
        var sink = Sink()
        var failure: ConnectionError?
        do {
            try bytes.withUnsafeBytes { try assembler.receive($0, into: &sink) }
        } catch {
            failure = .violation(error)
        }
        for message in sink.messages where state == .open {
            switch message.kind {
            case .message:
                owner?.channel(self, received: message)
            case .ping:
                answer(message.number)
            case .pong:
                break
            }
        }
        if let failure, state == .open { fail(failure) }
    }

    private func answer(_ number: UInt64) {
        guard let answerDelay else { return }
        guard let pong = try? SimulatedMessage(kind: .pong, number: number).frame(encoder) else { return }
        replyByteCount += pong.count
        if answerDelay <= .zero { return sendUncounted(pong) }
        host.simulation.schedule(after: answerDelay) { self.host.whenAwake { self.sendUncounted(pong) } }
    }

    private func endInput() {
        inputEnded = true
        liveness?.inputEnded()
        if state == .open {
            do {
                try assembler.finish()
            } catch {
                return fail(.violation(error))
            }
            owner?.channelInputEnded(self)
        }
        closeIfBothEnded()
    }
}
