package import LifelineCore
package import LifelineTesting

// What becomes of each message.
extension Witness {
    package func client(
        _ client: SimulatedClient,
        offered number: UInt64,
        _ payload: [UInt8],
        _ policy: SendPolicy
    ) {
        sends.append(Send(payload: payload, policy: policy, offeredAt: now))
        if number != UInt64(sends.count) { fail("a gap in the messages' numbers") }
    }

    package func client(_ client: SimulatedClient, accepted number: UInt64, end: UInt64, on attempt: UInt64) {
        let index = Int(number) - 1
        if sends[index].isAccepted { fail("message \(number) is accepted twice") }
        if sends[index].outcome != nil { fail("message \(number) is accepted after it has ended") }
        if state != .ready { fail("message \(number) is accepted while \(state)") }
        // First in, first out, over all connections.
        if number < lastAccepted { fail("message \(number) is overtaken by message \(lastAccepted)") }
        lastAccepted = number
        sends[index].isAccepted = true
        connections[attempt]?.accepted.append((number, end))
    }

    package func client(
        _ client: SimulatedClient,
        ended number: UInt64,
        _ outcome: SimulatedClient.SendOutcome
    ) {
        let index = Int(number) - 1
        let send = sends[index]
        see("\(outcome)")
        if send.outcome != nil { fail("message \(number) ends twice") }
        sends[index].outcome = outcome
        if send.isAccepted != (outcome == .accepted) { fail("message \(number) ends as \(outcome), untruly") }
        switch outcome {
        case .dropped:
            guard case .drop(let limit) = send.policy.kind else { return fail("message \(number) is dropped") }
            checkTime(number, send, limit)
        case .failed(.sendTimedOut):
            guard case .wait(let limit) = send.policy.kind else { return fail("message \(number) times out") }
            checkTime(number, send, limit)
        case .failed(.notConnected):
            if send.policy != .fail || state == .ready { fail("message \(number) fails for want of a connection") }
        case .failed(.closedLocally):
            if state != .draining, state != .closed { fail("message \(number) fails as if all were over") }
        case .accepted, .cancelled, .failed:
            break
        }
    }

    private func checkTime(_ number: UInt64, _ send: Send, _ limit: Duration) {
        if now < send.offeredAt + limit { fail("message \(number) ends before its time") }
    }

    package func client(
        _ client: SimulatedClient,
        closed attempt: UInt64,
        over stream: Int,
        for failure: ConnectionError.Code?,
        acknowledged: UInt64,
        undelivered: Int
    ) {
        clientLife.closed(stream, for: failure, self)
        guard let connection = connections[attempt] else { return fail("closes what it has not opened") }
        let expected = connection.accepted.count { $0.end > acknowledged }
        lastClosed = (connection.accepted.count, expected)
        if undelivered != expected { fail("counts \(undelivered) messages as undelivered, not \(expected)") }
        if acknowledged > connection.stream.arrivedClientByteCount { fail("the network acknowledges what is lost") }
        if undelivered > 0 { see("undelivered") }
        if connection.deliveredCount > connection.accepted.count - undelivered { see("delivered and not acknowledged") }
    }

    /// The server has read a message.
    package func delivered(_ message: SimulatedServer.ReceivedMessage, over stream: Int) {
        guard let attempt = attemptOfStream[stream], let connection = connections[attempt] else {
            return fail("a message on a connection that nobody made")
        }
        guard connection.deliveredCount < connection.accepted.count else {
            return fail("message \(message.number) is delivered, but was not accepted")
        }
        // In order, each once.
        let expected = connection.accepted[connection.deliveredCount].number
        if message.number != expected { fail("message \(message.number) is delivered in the place of \(expected)") }
        if message.payload != sends[Int(message.number) - 1].payload { fail("message \(message.number) is damaged") }
        connections[attempt]?.deliveredCount += 1
    }
}

// What has to hold after every step.
extension Witness {
    package func check(_ client: SimulatedClient) {
        if failure != nil { return }
        if client.state != state { fail("\(client.state) without a step") }
        if let fault = client.bookkeepingFault { fail(fault) }
        if isProbeDue { fail("the connection is not probed when the network has changed") }
        checkWaiting(client)
        checkLife(client)
    }

    /// Whoever waits has a reason to.
    private func checkWaiting(_ client: SimulatedClient) {
        switch state {
        case .backingOff:
            guard let next = lastTransition?.nextAttempt, let deadline = client.nextDeadline else {
                return fail("backs off without a deadline")
            }
            if deadline > next { fail("sleeps past the next attempt") }
        case .waitingForNetwork:
            if hasNetwork { fail("waits for a network that is there") }
        case .connecting, .ready:
            if !hasNetwork { fail("\(state) without network") }
        case .idle, .draining, .gaveUp, .closed:
            break
        }
    }

    /// Network and peer have been fine for long: the client is ready, or has said why it is not.
    package func checkRecovery(_ client: SimulatedClient) {
        switch state {
        case .ready, .gaveUp, .closed: break
        case .idle, .waitingForNetwork, .connecting, .backingOff, .draining:
            fail("still \(state) long after all is well")
        }
    }

    /// Everything sent has had time to end and to arrive.
    package func checkEnd(_ client: SimulatedClient) {
        for (index, send) in sends.enumerated() where send.outcome == nil { fail("message \(index + 1) never ends") }
        if state == .ready, let current = connections.keys.max(), let connection = connections[current],
            connection.deliveredCount < connection.accepted.count
        {
            fail("message \(connection.accepted[connection.deliveredCount].number) is accepted and never arrives")
        }
    }
}
