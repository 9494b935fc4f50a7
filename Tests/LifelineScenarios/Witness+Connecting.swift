internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

// Steps, attempts, their budget and their reasons.
extension Witness {
    // MARK: Actions of the user

    func endRequested() { firstEndRequest = firstEndRequest ?? user.now }

    func wantsReconnection() { reconnections.append(user.now) }

    /// Records that the client is about to send a ping.
    func pinged() {
        if probeDueSince != nil { see("probe") }
        probeDueSince = nil
    }

    func networkReported(isUp: Bool) {
        networkReports.append((machine.simulation.now, isUp))
        probeDueSince = isUp && user.state == .ready && hasHeartbeat ? machine.simulation.now : nil
    }

    /// Whether the client may have believed, at `time`, that the network is up, or that it is down.
    private func mayHaveNetwork(_ isUp: Bool, at time: MonotonicTime) -> Bool {
        for report in networkReports.reversed() where report.time <= time {
            if report.isUp == isUp { return true }
            // It may still believe the earlier reports if this one is recent.
            if naps.awake(from: report.time, to: time) > Witness.slack { return false }
        }
        return false
    }

    // MARK: Steps

    /// The documented steps.
    private static let legal: [ConnectionState: Set<ConnectionState>] = [
        .idle: [.connecting, .waitingForNetwork, .closed],
        .waitingForNetwork: [.connecting, .closed],
        .connecting: [.ready, .waitingForNetwork, .backingOff, .gaveUp, .closed],
        .ready: [.waitingForNetwork, .connecting, .backingOff, .gaveUp, .draining, .closed],
        .backingOff: [.connecting, .waitingForNetwork, .closed],
        .draining: [.closed],
        .gaveUp: [.connecting, .waitingForNetwork, .closed],
    ]

    /// Checks a step that is reported to the user.
    func received(_ event: ClientEvent) {
        now = machine.simulation.now
        naps.look(at: machine)
        let step = event.transition
        see("\(step.from) → \(step.to)")
        see("\(step.reason.code)")
        if event.missedCount > 0 || step.number != (lastEvent?.transition.number ?? 0) + 1 {
            fail("step \(step.number) follows step \(lastEvent?.transition.number ?? 0)")
        }
        if step.from != lastEvent?.transition.to ?? .idle { fail("\(step) follows another state") }
        if Witness.legal[step.from]?.contains(step.to) != true { fail("\(step) is no step that is documented") }
        if step.time > now || step.time < lastEvent?.transition.time ?? step.time { fail("the time of \(step)") }
        checkReason(of: step)
        if step.from == .ready { refillAfterStableConnection(step) }
        if step.from == .ready || step.from == .draining { connectionEnded(event) }
        switch step.to {
        case .connecting: checkAttempt(step)
        case .backingOff: checkDelay(step)
        case .gaveUp: checkGivingUp(step)
        case .waitingForNetwork:
            if !mayHaveNetwork(false, at: step.time) { fail("waits for a network that is there") }
        case .closed where step.from == .ready && step.reason.code != .cancelled:
            fail("closed without draining")
        case .ready: becameReady(step)
        default: break
        }
        lastEvent = event
    }

    private func becameReady(_ step: ConnectionTransition) {
        if !mayHaveNetwork(true, at: step.time) { fail("connected without network") }
        standing = connections.last { $0.beganAt <= step.time }
        standing?.id = attemptCount
        if standing == nil { fail("ready without a connection") }
        readySince = step.time
    }

    private func checkReason(of step: ConnectionTransition) {
        switch step.reason.code {
        case .networkUp:
            attempts = 0
            if !mayHaveNetwork(true, at: step.time) { fail("\(step), and nobody said so") }
        case .networkLost:
            if !mayHaveNetwork(false, at: step.time) { fail("\(step), and nobody said so") }
        case .reconnectRequested:
            attempts = 0
            if !reconnections.contains(step.time) { fail("\(step), which nobody wanted") }
        case .closedByUser, .cancelled, .drained:
            guard let firstEndRequest, firstEndRequest <= step.time else { return fail("\(step), which nobody wanted") }
        case .retryDue: checkPunctuality(step)
        case .tlsRejected:
            if step.to != .gaveUp { fail("tries again what is rejected") }
        default: break
        }
    }

    /// Checks that the reason for the end of a connection agrees with its error.
    func checkReasonOfEnd(_ step: ConnectionTransition) {
        let given: [TransitionReason.Code] = [
            .networkLost, .reconnectRequested, .closedByUser, .cancelled, .attemptsUsedUp,
        ]
        if given.contains(step.reason.code) { return }
        let expected: TransitionReason.Code =
            switch step.reason.error?.code {
            case nil: step.from == .ready ? .closedByPeer : .drained
            case .closedByPeer, .truncated: .closedByPeer
            case .protocolViolation: .protocolViolation
            case .heartbeatTimeout: .heartbeatTimeout
            default: .connectionFailed
            }
        if step.reason.code != expected { fail("\(step) for what is \(expected)") }
        let isInOrder = step.reason.error == nil || step.reason.code == .drained
        if isInOrder, standing?.stream.hasServersEndArrived != true { fail("\(step), without the peer's end") }
    }

    private func refillAfterStableConnection(_ step: ConnectionTransition) {
        let ends: [TransitionReason.Code] = [
            .closedByPeer, .connectionFailed, .heartbeatTimeout, .protocolViolation, .attemptsUsedUp,
        ]
        guard ends.contains(step.reason.code) else { return }
        // A peer that was found dead counts as alive until its last bytes.
        let isDead = step.reason.error?.code == .heartbeatTimeout
        let end = isDead ? standing?.lastReadAt ?? readySince : step.time
        let backoff = configuration.backoff
        let period = max(backoff.stabilityPeriod, min(backoff.initialDelay, backoff.cap))
        if end - readySince >= period { attempts = 0 }
    }

    // MARK: Attempts

    private func checkAttempt(_ step: ConnectionTransition) {
        attempts += 1
        attemptCount += 1
        if !mayHaveNetwork(true, at: step.time) { fail("an attempt without network") }
        if step.attempt != attempts { fail("\(step) is attempt \(attempts)") }
        if let maximum = configuration.backoff.maximumAttempts, attempts > maximum {
            fail("attempt \(attempts) of \(maximum)")
        }
    }

    /// Checks that the delay before retry n is initial delay × factorⁿ⁻¹, up to the cap, plus or minus the jitter.
    private func checkDelay(_ step: ConnectionTransition) {
        guard let next = step.nextAttempt else { return fail("backs off without end") }
        let backoff = configuration.backoff
        var base = backoff.initialDelay
        // The smallest factor above 1 reaches every cap in this number of steps.
        for _ in 1..<min(max(attempts, 1), 64) where base < backoff.cap { base = base * backoff.factor }
        let delay = Double((next - step.time).saturatedNanoseconds)
        let expected = Double(min(base, backoff.cap).saturatedNanoseconds)
        // A nanosecond for rounding.
        if abs(delay - expected) > expected * backoff.jitter + 1 {
            fail("attempt \(attempts) is followed by a delay of \(delay), not \(expected) nanoseconds")
        }
        if let maximum = backoff.maximumAttempts, attempts >= maximum { fail("backs off without attempts left") }
    }

    private func checkGivingUp(_ step: ConnectionTransition) {
        if step.reason.code == .attemptsUsedUp {
            if attempts != configuration.backoff.maximumAttempts { fail("gave up after attempt \(attempts)") }
            if step.reason.error == nil { fail("gave up without saying why") }
        } else if step.reason.code != .tlsRejected {
            fail("gave up for \(step.reason)")
        }
    }

    private func checkPunctuality(_ step: ConnectionTransition) {
        guard let due = lastEvent?.transition.nextAttempt else { return fail("a retry that was not announced") }
        if step.time < due { fail("tries again too early") }
        if naps.awake(from: due, to: step.time) > Witness.slack { fail("tries again too late") }
    }
}

// Checks that the client never waits without a reason.
extension Witness {
    func lookAtState() {
        let newest = user.state
        if newest != state { (state, stateSince) = (newest, now) }
        if state != .ready { lastUnready = now }
        let isTold = state == lastEvent?.transition.to ?? .idle
        behindSince = isTold ? nil : behindSince ?? now
    }

    func checkWaiting() {
        let connection = configuration.connection
        // After its end, a connection has this time to write the rest, and again to wait for the last acknowledgements.
        let closing = connection.closeTimeout * 2 + Witness.slack
        if let behindSince, isOver(closing, since: behindSince) { fail("nobody is told that it is \(state)") }
        if machine.openStreamCount > 1 { fail("\(machine.openStreamCount) connections at a time") }
        let (reportedAt, isUp) = networkReports[networkReports.count - 1]
        let knownSince = max(reportedAt, stateSince)
        switch state {
        case .backingOff:
            if let due = lastEvent?.transition.nextAttempt, due >= stateSince, isOver(Witness.slack, since: due) {
                fail("sleeps past the next attempt")
            }
        case .waitingForNetwork:
            if isUp, isOver(Witness.slack, since: knownSince) { fail("waits for a network that is there") }
        case .connecting, .ready:
            if !isUp, isOver(Witness.slack, since: knownSince) { fail("\(state) without network") }
        case .idle, .draining, .gaveUp, .closed:
            break
        }
        switch state {
        case .idle, .waitingForNetwork, .backingOff, .gaveUp, .closed:
            if machine.openStreamCount > 0, isOver(closing, since: stateSince) { fail("a connection while \(state)") }
        case .connecting:
            let limit = connection.connectTimeout + closing
            // The client does not connect while too many messages wait for the user.
            if user.reads, isOver(limit, since: max(stateSince, user.readsSince)) { fail("connects without end") }
        case .ready:
            let isOpen = connections.last?.isOpen == true
            if !isOpen, isOver(Witness.slack, since: max(stateSince, connections.last?.closedAt ?? stateSince)) {
                fail("ready without a connection")
            }
        case .draining:
            break
        }
        if let due = probeDueSince {
            if state != .ready || stateSince > due || connections.last?.reads != true {
                probeDueSince = nil
            } else if isOver(Witness.slack, since: due) {
                fail("the connection is not probed when the network has changed")
            }
        }
    }

    /// Checks that the client is ready or has given a reason why not, a long time after all disturbances ended.
    func checkRecovery() {
        switch state {
        case .ready, .gaveUp, .closed: break
        case .idle, .waitingForNetwork, .connecting, .backingOff, .draining:
            fail("still \(state) long after all is well")
        }
    }
}
