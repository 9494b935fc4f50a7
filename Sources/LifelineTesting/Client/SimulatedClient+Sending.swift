internal import LifelineCore

// What becomes of sends.
extension SimulatedClient {
    func offer(_ payload: [UInt8], _ policy: SendPolicy) -> UInt64 {
        sendOutcomes.append(nil)
        let number = UInt64(sendOutcomes.count)
        observer?.client(self, offered: number, payload, policy)
        do {
            let message = SimulatedMessage(kind: .message, number: number, payload: payload)
            try offer(number, message.frame(encoder), policy, since: now)
        } catch {
            end(number, .failed(.messageRefused))
        }
        setTimer()
        return number
    }

    private func offer(_ number: UInt64, _ frame: [UInt8], _ policy: SendPolicy, since start: MonotonicTime) {
        while let id = machine.directPath, let channel {
            switch channel.offer(frame, number: number) {
            case .accepted:
                return accepted(number)
            case .waits:
                direct[number] = InLine(frame: frame, policy: policy, start: start)
                return
            case .refused:
                report(.send) { machine, _ in machine.sendFailed(on: id) }
            }
        }
        switch machine.offered(byteCount: frame.count, policy: policy, since: start, now: now) {
        case .sendNow: break  // The direct path would have been open.
        case .fail(let code): end(number, .failed(code))
        case .wait(let id):
            let deadline: MonotonicTime? =
                switch policy.kind {
                case .wait(let limit), .drop(let limit): start + limit
                case .fail: nil
                }
            waiting[id] = Waiting(number: number, frame: frame, deadline: deadline)
        }
    }

    /// The connection has accepted a message that had to wait for room on it.
    func channel(_ channel: FrameChannel, accepted number: UInt64) {
        if let inHand, inHand.number == number {
            endHandOver(isAccepted: true)
        } else if direct.removeValue(forKey: number) != nil {
            accepted(number)
        }
    }

    private func accepted(_ number: UInt64) {
        observer?.client(self, accepted: number, end: channel?.messageEnd ?? 0, on: channelID)
        end(number, .accepted)
    }

    /// The connection will not accept these any more.
    func takeBack(_ numbers: [UInt64]) {
        for number in numbers {
            if let inHand, inHand.number == number {
                endHandOver(isAccepted: false)
            } else if let send = direct.removeValue(forKey: number) {
                offer(number, send.frame, send.policy, since: send.start)
            }
        }
        setTimer()
    }

    func handOver(_ id: SendQueue.ID) {
        guard let send = waiting[id], let channel else { return }
        inHand = (id, send.number)
        switch channel.offer(send.frame, number: send.number) {
        case .accepted: endHandOver(isAccepted: true)
        case .waits: break
        case .refused: endHandOver(isAccepted: false)
        }
    }

    private func endHandOver(isAccepted: Bool) {
        guard let (id, number) = inHand.take() else { return }
        if isAccepted { observer?.client(self, accepted: number, end: channel?.messageEnd ?? 0, on: channelID) }
        let connection = channelID
        report(.send) { $0.handOverEnded(id, on: connection, isAccepted: isAccepted, now: $1) }
    }

    func withdraw(_ id: SendQueue.ID) {
        guard let inHand, inHand.id == id, channel?.withdraw(inHand.number) == true else { return }
        endHandOver(isAccepted: false)
    }

    /// The sender of a message gives it up.
    func cancelSending(_ number: UInt64) {
        if direct[number] != nil, channel?.withdraw(number) == true {
            direct[number] = nil
            end(number, .cancelled)
        }
        // Few wait in a simulation; the real client knows a send's place.
        guard let id = waiting.first(where: { $0.value.number == number })?.key else { return }
        report(.send) { machine, _ in machine.sendCancelled(id) }
    }

    func end(_ ended: SendQueue.Ended) {
        guard let number = waiting.removeValue(forKey: ended.id)?.number else { return }
        switch ended.outcome {
        case .sent: end(number, .accepted)
        case .dropped: end(number, .dropped)
        case .cancelled: end(number, .cancelled)
        case .failed(let code): end(number, .failed(code))
        }
    }

    private func end(_ number: UInt64, _ outcome: SendOutcome) {
        host.note("message \(number) \(outcome)")
        observer?.client(self, ended: number, outcome)
        sendOutcomes[Int(number) - 1] = outcome
    }
}
