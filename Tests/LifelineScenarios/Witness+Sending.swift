internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

/// Records about the sends, in addition to those of the user.
struct Offers {
    struct Offer {
        /// The place in the order of offers; 0 before the offer.
        var place = 0
        /// The connection that was open at the time of the offer, if any.
        var connection: Int?
        var isWritten = false
    }

    var offers: [Int: Offer] = [:]
    var count = 0
    /// The numbers of the waiting messages, in order.
    var waiting: [Int] = []
    var lastLook = MonotonicTime(nanoseconds: 0)
}

// The fate of each message.
extension Witness {
    /// Records that a message is offered to the client.
    func offered(_ number: Int) {
        offers.count += 1
        let stands = user.state == .ready
        offers.offers[number] = Offers.Offer(place: offers.count, connection: stands ? connections.count : nil)
        offers.waiting.append(number)
    }

    /// Checks the outcome of a send.
    func ended(_ number: Int, _ end: ClientUser.SendEnd, isCancelled: Bool) {
        now = machine.simulation.now
        naps.look(at: machine)
        see(end.name)
        offers.waiting.removeAll { $0 == number }
        let send = user.sends[number - 1]
        let offeredAt = send.offeredAt ?? now
        let isAccepted = if case .accepted = end { true } else { false }
        let isWritten = offers.offers[number]?.isWritten == true
        if isWritten, !isAccepted { fail("message \(number) was sent, and ends as \(end)") }
        func checkTime(_ limit: Duration) {
            if now < offeredAt + limit { fail("message \(number) ends before its time") }
        }
        switch end {
        case .dropped:
            guard case .drop(let limit) = send.policy.kind else { return fail("message \(number) is dropped") }
            checkTime(limit)
        case .failed(.sendTimedOut):
            guard case .wait(let limit) = send.policy.kind else { return fail("message \(number) times out") }
            checkTime(limit)
        case .failed(.notConnected):
            let hasStood = isOver(Witness.slack, since: lastUnready) && connections.last?.isOpen == true
            if send.policy != .fail || hasStood {
                fail("message \(number) fails for want of a connection")
            }
        case .failed(.closedLocally):
            if firstEndRequest == nil { fail("message \(number) fails as if all were over") }
        case .failed(.sendQueueFull):
            if configuration.sendQueue == SendQueueConfiguration(), offers.waiting.count < 1_000 {
                fail("message \(number) finds the queue full")
            }
        case .failed(let code):
            fail("message \(number) fails for \(code)")
        case .cancelled:
            if !isCancelled { fail("message \(number) was not cancelled") }
        case .accepted:
            break
        }
    }

    func lookAtConnections() {
        user.host.forEachConnection { stream, status in
            let isKnown = connections.last?.stream === stream || connections.contains { $0.stream === stream }
            if !isKnown { add(stream) }
            if connections.last?.stream === stream { connections.last?.look(at: status, now) }
        }
        // Acknowledgements may arrive for a while after a connection has closed.
        if let last = connections.last, !user.host.hasConnection(last.stream) { last.look(at: nil, now) }
        if let standing, standing !== connections.last { standing.look(at: nil, now) }
    }

    private func add(_ stream: SimulatedStream) {
        let connection = WatchedConnection(stream, now)
        connections.append(connection)
        let index = connections.count
        stream.onClientBytes = { [weak self, weak connection] bytes in
            guard let self, let connection else { return }
            connection.wrote(bytes) { self.wrote($0, over: connection, index) }
        }
    }

    /// Checks a message that the client's kernel has taken.
    private func wrote(_ number: Int, over connection: WatchedConnection, _ index: Int) {
        guard let offer = offers.offers[number] else { return fail("message \(number) is sent, but nobody wanted it") }
        if offer.isWritten { fail("message \(number) is sent twice") }
        offers.offers[number]?.isWritten = true
        switch user.sends[number - 1].end {
        case nil, .accepted: break
        case let end?: fail("message \(number) is sent, although it was \(end.name)")
        }
        // First in, first out, except for messages that waited for room on an earlier connection when it was lost.
        guard offer.connection == nil || offer.connection == index else { return see("waited for another connection") }
        if offer.place < connection.lastOffer { fail("message \(number) is overtaken") }
        connection.lastOffer = offer.place
    }

    /// Checks a message that the server has read.
    func delivered(_ message: SimulatedServer.ReceivedMessage, over stream: Int) {
        guard let connection = connections.last(where: { $0.stream.number == stream }) else {
            return fail("a message on a connection that nobody made")
        }
        // In order, each once.
        let number = Int(message.number)
        guard let expected = connection.takeDelivered() else { return fail("message \(number) comes out of nothing") }
        if number != expected { fail("message \(number) is delivered in the place of \(expected)") }
        if message.payload != user.sends[number - 1].payload { fail("message \(number) is damaged") }
    }

    /// Checks the step that ends a connection, and its count of lost messages.
    func connectionEnded(_ event: ClientEvent) {
        let step = event.transition
        if step.from == .ready, step.to == .draining {
            if event.acceptedMessageCount != nil { fail("\(step) counts messages before the end") }
            return
        }
        guard let standing else { return fail("a connection ends that never stood") }
        clientLife.closed(standing.stream.number, for: step.reason.error?.code, at: step.time, self)
        checkReasonOfEnd(step)
        guard let accepted = event.acceptedMessageCount, let undelivered = event.undeliveredMessageCount else {
            return fail("\(step) does not say what was lost")
        }
        if let id = standing.id { acceptedCounts.append((id, accepted)) }
        standing.look(at: nil, now)
        let acknowledged = standing.acknowledgedCount { awake(since: $0) > Witness.slack }
        if !acknowledged.contains(accepted - undelivered) {
            fail("counts \(undelivered) of \(accepted) messages as undelivered, and \(acknowledged) have arrived")
        }
        if step.reason.code == .drained, undelivered > 0 { fail("drained, with \(undelivered) messages undelivered") }
        if undelivered > 0 { see("undelivered") }
        if standing.deliveredCount > accepted - undelivered { see("delivered and not acknowledged") }
        self.standing = nil
    }

    // MARK: Waiting

    func checkSends() {
        // Often enough, because these bounds are longer than those of a step.
        if offers.waiting.isEmpty || now - offers.lastLook < .milliseconds(50) { return }
        offers.lastLook = now
        let room = state == .ready ? connections.last?.roomSince : nil
        for number in offers.waiting {
            let send = user.sends[number - 1]
            guard let offeredAt = send.offeredAt else { continue }
            if let room, isOver(Witness.slack, since: max(room, offeredAt, stateSince)) {
                fail("message \(number) waits for nothing")
            }
            guard state != .ready, state != .idle else { continue }
            switch send.policy.kind {
            case .wait(let limit), .drop(let limit):
                if isOver(Witness.slack, since: max(offeredAt + limit, stateSince)) {
                    fail("message \(number) waits longer than it was to")
                }
            case .fail:
                if isOver(Witness.slack, since: max(offeredAt, stateSince)) { fail("message \(number) waits") }
            }
        }
    }

    /// Checks all sends, after they have had time to end and to arrive.
    func checkEnd() {
        for (index, send) in user.sends.enumerated() where send.end == nil { fail("message \(index + 1) never ends") }
        var accepted: [UInt64: [Int]] = [:]
        for (index, send) in user.sends.enumerated() {
            guard case .accepted(let id) = send.end else { continue }
            guard let id else { return fail("message \(index + 1) was accepted by no connection") }
            accepted[id, default: []].append(index + 1)
        }
        for (id, count) in acceptedCounts where accepted[id]?.count ?? 0 != count {
            fail("connection \(id) counts \(count) messages, and has accepted \(accepted[id]?.count ?? 0)")
        }
        for connection in connections {
            guard let id = connection.id else {
                if !connection.written.isEmpty { fail("messages on a connection that nobody knows of") }
                continue
            }
            let numbers = Set(accepted[id] ?? [])
            for (number, _) in connection.written where !numbers.contains(number) {
                fail("message \(number) was sent over connection \(id), which does not say so")
            }
        }
        guard state == .ready, let standing, let id = standing.id else { return }
        if standing.deliveredCount != accepted[id]?.count ?? 0 {
            fail("messages were accepted and never arrive")
        }
    }

    /// Checks the client after it was closed without disturbances, and has had time to close.
    func checkClosed() {
        if user.state != .closed { fail("still \(user.state) after it was closed") }
        if !user.hasRun { fail("run() does not return") }
        if !user.haveEventsEnded { fail("the steps do not end") }
        if !user.haveMessagesEnded { fail("the messages do not end") }
        if user.openCloseCount > 0 { fail("close() does not return") }
        if lastEvent?.transition.to != .closed { fail("nobody is told of the end") }
        if machine.openStreamCount > 0 { fail("a connection after the end") }
        for (index, send) in user.sends.enumerated() where send.end == nil { fail("message \(index + 1) never ends") }
    }
}

extension ClientUser.SendEnd {
    /// The name of the outcome, without the connection.
    var name: String {
        switch self {
        case .accepted: "accepted"
        case .dropped: "dropped"
        case .cancelled: "cancelled"
        case .failed(let code): "failed(\(code))"
        }
    }
}
