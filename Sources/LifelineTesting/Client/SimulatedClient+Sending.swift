internal import LifelineCore

// What becomes of sends.
extension SimulatedClient {
    func offer(_ payload: [UInt8], _ policy: SendPolicy) -> UInt64 {
        sendOutcomes.append(nil)
        let number = UInt64(sendOutcomes.count)
        observer?.client(self, offered: number, payload, policy)
        do {
            let message = SimulatedMessage(kind: .message, number: number, payload: payload)
            try offer(number, message.frame(encoder), policy)
        } catch {
            end(number, .failed(.messageRefused))
        }
        setTimer()
        return number
    }

    private func offer(_ number: UInt64, _ frame: [UInt8], _ policy: SendPolicy) {
        switch queue.offered(byteCount: frame.count, policy: policy, now: now) {
        case .sendNow:
            switch channel?.offer(frame, number: number) {
            case .accepted: accepted(number)
            case .waits: direct[number] = (frame, policy)
            case .refused, nil:
                // The connection has failed, and that is not reported yet.
                end(queue.becameUnready())
                offer(number, frame, policy)
            }
        case .wait(let id):
            let deadline: MonotonicTime? =
                switch policy.kind {
                case .wait(let limit), .drop(let limit): now + limit
                case .fail: nil
                }
            waiting[id] = Waiting(number: number, frame: frame, deadline: deadline)
        case .fail(let code):
            end(number, .failed(code))
        }
    }

    /// Hands what waits over to the connection, until that has no room.
    func handOver() {
        while state == .ready, inHand == nil, let channel {
            end(queue.timerFired(now: now))
            guard let id = queue.next(), let send = waiting[id] else { return }
            let (number, frame) = (send.number, send.frame)
            inHand = (id, number)
            switch channel.offer(frame, number: number) {
            case .accepted: handedOver(id, number)
            case .waits: return
            case .refused:
                end(queue.becameUnready())
                takeBack([number])
            }
        }
    }

    /// The connection has accepted a message that had to wait for room on it.
    func channel(_ channel: FrameChannel, accepted number: UInt64) {
        if let inHand, inHand.number == number, waiting[inHand.id] != nil {
            handedOver(inHand.id, number)
            handOver()
            setTimer()
        } else if direct.removeValue(forKey: number) != nil {
            accepted(number)
        }
    }

    private func handedOver(_ id: SendQueue.ID, _ number: UInt64) {
        inHand = nil
        observer?.client(self, accepted: number, end: channel?.messageEnd ?? 0, on: channelID)
        if let ended = queue.handedOver(id) { end([ended]) }
    }

    private func accepted(_ number: UInt64) {
        observer?.client(self, accepted: number, end: channel?.messageEnd ?? 0, on: channelID)
        end(number, .accepted)
    }

    /// The connection will not accept these any more.
    func takeBack(_ numbers: [UInt64]) {
        for number in numbers {
            if let (id, held) = inHand, held == number {
                inHand = nil
                if let ended = queue.handOverFailed(id) { end([ended]) }
            } else if let (frame, policy) = direct.removeValue(forKey: number) {
                offer(number, frame, policy)
            }
        }
        handOver()
        setTimer()
    }

    func withdraw(_ number: UInt64) {
        if direct[number] != nil, channel?.withdraw(number) == true {
            direct[number] = nil
            end(number, .cancelled)
        }
        // Few wait in a simulation; the real client knows a send's place.
        guard let id = waiting.first(where: { $0.value.number == number })?.key else { return }
        switch queue.cancelled(id) {
        case .end(let ended): end([ended])
        case .withdraw: if channel?.withdraw(number) == true { takeBack([number]) }
        case .none: break
        }
        setTimer()
    }

    func end(_ ended: [SendQueue.Ended]) {
        for end in ended {
            guard let number = waiting.removeValue(forKey: end.id)?.number else { continue }
            switch end.outcome {
            case .sent: self.end(number, .accepted)
            case .dropped: self.end(number, .dropped)
            case .cancelled: self.end(number, .cancelled)
            case .failed(let code): self.end(number, .failed(code))
            }
        }
    }

    private func end(_ number: UInt64, _ outcome: SendOutcome) {
        host.simulation.note("\(host.name): message \(number) \(outcome)")
        observer?.client(self, ended: number, outcome)
        sendOutcomes[Int(number) - 1] = outcome
    }
}
