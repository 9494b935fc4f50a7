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
        // While the channel closes, it reads in order to drop what arrives.
        guard isStanding, (reads && !isReadHeld) || machine.isClosing, !hasInputEnded else { return }
        let (bytes, isEnd) = stream.read(side)
        if !bytes.isEmpty {
            readCount += 1
            if liveness?.received(now: now) == true { armLivenessTimer() }
            if machine.receivedBytes() == .parse { receive(bytes) }
        }
        // Bytes that arrive with the end are read before it.
        guard isEnd, isStanding else { return }
        hasInputEnded = true
        liveness?.inputEnded()
        perform(machine.inputEnded())
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
        for message in sink.messages where isOpen {
            switch message.kind {
            case .message:
                owner?.channel(self, received: message)
            case .ping:
                answer(message.number)
            case .pong:
                break
            }
        }
        if let failure, isOpen { abort(failure) }
    }

    private func answer(_ number: UInt64) {
        guard let answerDelay else { return }
        guard let pong = try? SimulatedMessage(kind: .pong, number: number).frame(encoder) else { return }
        if answerDelay <= .zero { return reply(pong) }
        host.simulation.schedule(after: answerDelay) { self.host.whenAwake { self.reply(pong) } }
    }
}
