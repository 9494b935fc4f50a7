package import LifelineCore
package import LifelineTesting

// Attempts, their budget and their reasons.
extension Witness: SimulatedClientObserver {
    package func client(_ client: SimulatedClient, reports event: SimulatedClientEvent) {
        lastEvent = event
        switch event {
        case .networkUp:
            hasNetwork = true
            isProbeDue = state == .ready
            if [.waitingForNetwork, .backingOff, .gaveUp].contains(state) { attempts = 0 }
        case .networkLost:
            hasNetwork = false
        case .reconnect:
            if [.ready, .backingOff, .gaveUp].contains(state) { attempts = 0 }
        case .closed(let report):
            let isDead = report.failure?.code == .heartbeatTimeout
            if isDead { checkDeath(report.lastInboundAt, client.host) }
            checkOrder(of: report)
            connectionEnded(stoodUntil: isDead ? report.lastInboundAt ?? now : now)
        case .inputEnded:
            connectionEnded(stoodUntil: now)
        case .start, .close, .cancel, .timer, .connected, .connectFailed, .send, .late:
            break
        }
    }

    /// A connection that ends in order has written everything, and has seen the peer's end.
    private func checkOrder(of report: ClosureReport) {
        guard report.failure == nil else { return }
        if report.unwrittenByteCount > 0 { fail("in order, with \(report.unwrittenByteCount) bytes unwritten") }
        guard report.peerEndedInTime, let newest = connections.keys.max() else { return }
        if connections[newest]?.stream.hasServersEndArrived != true { fail("in order, without the peer's end") }
    }

    /// The reason for the end of a connection is what the connection says of it.
    private func checkReason(of step: ConnectionTransition) {
        guard case .closed(let report) = lastEvent, step.from == .ready || step.from == .draining else { return }
        let expected: TransitionReason.Code =
            switch report.failure?.code {
            case nil where step.from == .ready: .closedByPeer
            case nil: report.peerEndedInTime ? .drained : .connectionFailed
            case .closedByPeer, .truncated: .closedByPeer
            case .protocolViolation: .protocolViolation
            case .heartbeatTimeout: .heartbeatTimeout
            default: .connectionFailed
            }
        let isLast = step.reason.code == .attemptsUsedUp
        if !isLast, step.reason.code != expected { fail("\(step) for what is \(expected)") }
        if let failure = report.failure, step.reason.error?.code != failure.code {
            fail("\(step), not \(failure.code)")
        }
    }

    private func connectionEnded(stoodUntil end: MonotonicTime) {
        guard state == .ready, let readySince else { return }
        let backoff = configuration.backoff
        if end - readySince >= max(backoff.stabilityPeriod, min(backoff.initialDelay, backoff.cap)) { attempts = 0 }
    }

    package func client(_ client: SimulatedClient, runs action: ClientMachine.Action) {
        if case .late = lastEvent { fail("what was given up is listened to") }
        if isFinished { fail("something is done after the end") }
        switch action {
        case .transition(let step): check(step, client)
        case .publish(let step): check(step)
        case .connect: if state != .connecting { fail("connects while \(state)") }
        case .use: if state != .ready { fail("uses a connection while \(state)") }
        case .abort: see("abort")
        case .close: if state == .ready { fail("closes while \(state)") }
        case .probe:
            see("probe")
            isProbeDue = false
            if state != .ready { fail("probes while \(state)") }
        case .handOver: if state != .ready { fail("hands a message over while \(state)") }
        case .withdraw: see("withdraw")
        case .endSend: break
        case .finish:
            isFinished = true
            if state != .closed { fail("finishes while \(state)") }
            if publishedCount != transitionCount { fail("finishes before the last step is published") }
        }
    }

    /// Observers see every step in order, and with the end of each connection what was lost with it.
    private func check(_ published: PublishedStep) {
        publishedCount += 1
        let step = published.transition
        if step.number != publishedCount { fail("step \(step.number) is published in the place of \(publishedCount)") }
        if step.number > transitionCount { fail("step \(step.number) is published before it is made") }
        let isEnd = step.from == .draining || (step.from == .ready && step.to != .draining)
        if isEnd != (published.counts != nil) { fail("\(step) is published with \(published.counts as Any)") }
        if let counts = published.counts {
            let last = lastClosed
            if counts.accepted != last?.accepted || counts.undelivered != last?.undelivered {
                fail("\(step) is published with the counts of another connection")
            }
        }
    }

    package func client(_ client: SimulatedClient, began attempt: UInt64, over stream: SimulatedStream) {
        if state != .connecting { fail("begins an attempt while \(state)") }
        if connections[attempt] != nil { fail("an attempt's number is used twice") }
        connections[attempt] = Connection(stream: stream)
        attemptOfStream[stream.number] = attempt
    }

    package func clientTimerFired(_ client: SimulatedClient, isWanted: Bool) {
        if !isWanted { fail("a timer rings that nobody wants") }
    }

    private func checkAttempt(_ client: SimulatedClient) {
        attempts += 1
        if !hasNetwork { fail("an attempt without network") }
        if let maximum = configuration.backoff.maximumAttempts, attempts > maximum {
            fail("attempt \(attempts) of \(maximum)")
        }
    }

    private func check(_ step: ConnectionTransition, _ client: SimulatedClient) {
        transitionCount += 1
        see("\(step.from) → \(step.to)")
        see("\(step.reason.code)")
        if step.number != transitionCount { fail("step \(step.number) follows step \(transitionCount - 1)") }
        if step.from != state || step.to == state { fail("\(step) follows \(state)") }
        if step.time != now { fail("the time of \(step)") }
        checkReason(of: step)
        if step.reason.code == .tlsRejected, step.to != .gaveUp { fail("tries again what is rejected") }
        switch step.to {
        case .backingOff: checkDelay(step)
        case .gaveUp: checkGivingUp(step)
        case .waitingForNetwork: if hasNetwork { fail("waits for a network that is there") }
        case .connecting where state == .backingOff && step.reason.code == .retryDue: checkPunctuality(step, client)
        case .closed where state == .ready && step.reason.code != .cancelled: fail("closed without draining")
        case .ready where !hasNetwork: fail("connected without network")
        default: break
        }
        if state == .closed { fail("a step after the end") }
        state = step.to
        if state == .connecting { checkAttempt(client) }
        readySince = step.to == .ready ? now : nil
        lastTransition = step
    }

    /// Before retry n it waits initial delay × factorⁿ⁻¹, up to the cap, give or take the jitter.
    private func checkDelay(_ step: ConnectionTransition) {
        guard let next = step.nextAttempt else { return fail("backs off without end") }
        let backoff = configuration.backoff
        var base = backoff.initialDelay
        // The smallest factor over 1 comes up to every cap in so many steps.
        for _ in 1..<min(max(attempts, 1), 64) where base < backoff.cap { base = base * backoff.factor }
        let delay = Double((next - now).saturatedNanoseconds)
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

    private func checkPunctuality(_ step: ConnectionTransition, _ client: SimulatedClient) {
        guard let due = lastTransition?.nextAttempt else { return }
        if now < due { fail("tries again too early") }
        if now > due, now != client.host.lastWakeTime { fail("tries again too late") }
    }

    /// A peer is dead only after so much silence that every ping had its time.
    private func checkDeath(_ lastSignOfLife: MonotonicTime?, _ host: SimulatedHost) {
        guard let lastSignOfLife, let heartbeat = configuration.heartbeat else { return }
        see("heartbeat found the peer dead")
        if now - lastSignOfLife < heartbeat.timeout * heartbeat.allowedMisses {
            fail("the peer counts as dead \(now - lastSignOfLife) after its last byte")
        }
        let slept = host.lastWakeTime - host.lastSleepTime
        if now == host.lastWakeTime, slept > heartbeat.interval + heartbeat.timeout {
            fail("the peer counts as dead because the machine slept")
        }
    }
}
