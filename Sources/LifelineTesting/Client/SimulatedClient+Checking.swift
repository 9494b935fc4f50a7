package import LifelineCore

// What a check after every step looks at.
extension SimulatedClient {
    /// The first thing about timers and waiting that does not hold: everything that waits has a timer or an event to
    /// wait for, and no timer rings for nobody.
    package var bookkeepingFault: String? {
        let next = machine.nextDeadline
        if timer.deadline != next { return "the timer is set to another time than the machines' next deadline" }
        if next != nil, !timer.isArmed { return "the timer is not armed" }
        return connectionFault ?? sendFault
    }

    private var connectionFault: String? {
        let channel = self.channel
        if let channel, channel.isOpen, let deadline = channel.liveness?.deadline {
            if !channel.livenessTimer.isArmed { return "nobody looks whether the peer lives" }
            if let set = channel.livenessTimer.deadline, set > deadline {
                return "the peer's life is looked at too late"
            }
        }
        if (state == .ready && configuration.heartbeat != nil) != (machine.sleepWatch != nil) {
            return "the wrong sleep watch"
        }
        if machine.linkID != (channel == nil ? nil : channelID) { return "the machine has another connection" }
        if isFinished != (state == .closed && channel == nil) { return "finished while something of it is left" }
        if (channel?.isOpening == true) != connectTimer.isArmed { return "connecting without a limit" }
        if channel?.isClosing == true, channel?.closeTimer.isArmed != true { return "closing without a limit" }
        if let channel, channel.isStanding, channel.machine.isClosing, channel.hasInputEnded,
            channel.stream.hasFinishedWriting(.client)
        {
            return "both sides have ended the connection, and it is not closed"
        }
        if machine.closeDeadline != nil, channel?.isClosing != true {
            return "a limit for closing without a connection"
        }
        // One that both sides have ended is open no more.
        if host.openStreamCount != (channel == nil || channel?.isEnding == true ? 0 : 1) {
            return "\(host.openStreamCount) connections"
        }
        switch state {
        case .idle, .waitingForNetwork, .backingOff, .gaveUp, .closed:
            if let channel, !channel.isClosing { return "a connection while \(state)" }
        case .connecting:
            // Or the connection before it is still being closed.
            if channel?.isOpening != true, channel?.isClosing != true { return "connecting without an attempt" }
        case .ready:
            if channel?.isOpen != true { return "ready without a connection" }
        case .draining:
            if channel?.isClosing != true { return "draining what is not being closed" }
        }
        return nil
    }

    private var sendFault: String? {
        let line = channel?.waitingNumbers ?? []
        if machine.queuedCount != waiting.count { return "sends were forgotten" }
        for send in waiting.values {
            if send.number == inHand?.number { continue }
            if state == .ready, inHand == nil { return "message \(send.number) waits for nothing" }
            // One that has been in hand meanwhile ends as soon as the timer rings.
            let isDue = machine.nextDeadline.map({ $0 <= now }) ?? false
            if let deadline = send.deadline, deadline < now, !isDue, host.hasBeenAwake {
                return "message \(send.number) waits longer than it was to"
            }
        }
        if let inHand, !line.contains(inHand.number) { return "message \(inHand.number) is in nobody's hands" }
        if direct.count != line.count - (inHand == nil ? 0 : 1) { return "messages in line were forgotten" }
        if !line.isEmpty, channel?.awaitsRoom != true { return "messages in line wait for nothing" }
        if state == .closed, !waiting.isEmpty || !direct.isEmpty { return "messages wait although all is over" }
        return nil
    }

    /// When the timer rings.
    package var nextDeadline: MonotonicTime? { timer.deadline }

    /// When the connection last brought bytes; at first, when it was opened.
    package var lastInboundAt: MonotonicTime? { channel?.lastInboundAt }
}

extension SimulatedClient {
    /// The connection that there is.
    package var channelStatus: ChannelStatus? { channel.flatMap(ChannelStatus.init) }
}
