internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

// Time, and what happens to connections.
extension SessionScenario {
    func step() {
        switch below(36) {
        case 0..<6: push(from: randomRecord())
        case 6..<8: request(from: randomRecord())
        case 8: cancel(from: randomRecord())
        case 9..<11: respond(at: randomRecord())
        case 11..<15: process(at: randomRecord())
        case 15..<23: for _ in 0..<below(8) { deliver() }
        case 23: advance(by: .milliseconds(below(200)))
        case 24..<26: if client.link == nil || below(20) == 0 { connect() }
        case 26: if below(2) == 0, let link = links.randomElement(using: &random) { cut(link) }
        case 27: noticeSomewhere()
        case 28: withdraw(from: randomRecord())
        case 29: advance(by: .milliseconds(below(20)))
        case 30: if below(12) == 0 { disturbServer() }
        case 31..<35: for _ in 0..<below(8) { deliver() }
        default: if below(40) == 0 { end() }
        }
        tidy()
    }

    /// Some of the bytes that are under way come to a side: often few, so that frames come in pieces.
    func deliver() {
        // Mostly over the newest connection; what is left of older ones comes, too.
        guard let link = below(3) == 0 ? links.randomElement(using: &random) : links.last else { return }
        let side: Link.Side = below(2) == 0 ? .client : .server
        switch below(5) {
        case 0: deliver(over: link, to: side, atMost: 1)
        case 1: deliver(over: link, to: side, atMost: 1 + below(20))
        default: deliver(over: link, to: side, atMost: below(2) == 0 ? 1 + below(200) : .max)
        }
    }

    func deliver(over link: Link, to side: Link.Side, atMost byteCount: Int) {
        let before = link.deliveredByteCount(to: side)
        switch side {
        case .server:
            server.receive(over: link, atMost: byteCount, now: now)
        case .client:
            let frames = link.deliver(to: .client, atMost: byteCount, now: now)
            client.received(frames, over: link, now: now)
            if link.isAtEnd(at: .client), client.link === link { leave(link) }
        }
        // What came in may have made room.
        side == .server ? client.pump(now: now) : pumpServer()
        result.totals.bytes += link.deliveredByteCount(to: side) - before
        if isTracing, link.deliveredByteCount(to: side) > before {
            note("link \(link.id): \(link.deliveredByteCount(to: side) - before) bytes to the \(side)")
        }
    }

    private func pumpServer() {
        for (_, end) in server.sessions { end.pump(now: now) }
    }

    func advance(by duration: Duration) {
        now = now + duration
        server.advanced(to: now)
        for end in [client] + server.sessions.map(\.end) {
            // Now and then for nothing.
            if end.machine.nextDeadline.map({ $0 <= now }) ?? false || below(8) == 0 {
                end.timerFired(now: now)
                let isSet = end.machine.nextDeadline.map { $0 > now } ?? true
                if !isSet { failure.note("a timer that has fired would fire again at once") }
            }
            end.pump(now: now)
        }
        for record in [clientRecord] + liveRecords { record.checkDeadlines(now: now) }
    }

    /// The client gives up what connection it has, without a word, and opens another one. What it wrote still comes, as
    /// long as nobody cuts that.
    func connect() {
        guard client.machine.endReason == nil, awayUntil <= now else { return }
        if let link = client.link { leave(link) }
        linkCount += 1
        let link = Link(
            id: linkCount,
            capacity: capacity,
            frameLimits: (client.options.maximumFrameLength, server.configuration.options.maximumFrameLength)
        )
        note("link \(link.id) is opened")
        result.totals.connections += 1
        links.append(link)
        server.accept(link, now: now)
        client.connected(over: link, now: now)
    }

    /// The client is done with a connection. Mostly the server sees it at some time; else only that a newer one comes.
    private func leave(_ link: Link) {
        note("the client leaves link \(link.id)")
        client.disconnected(now: now)
        if below(3) > 0 { unseenByServer.insert(link.id) }
        // Now and then in order: what it wrote comes, and then the end, maybe within a frame.
        if below(3) == 0 { link.end(from: .client) }
    }

    /// A connection dies: each direction at its own byte. Who sees it does so at once, later, or never.
    private func cut(_ link: Link) {
        result.totals.cuts += 1
        for side in Link.Side.allCases {
            // One direction alone may die.
            if below(4) == 0 { continue }
            if below(3) == 0 { link.refuse(from: side) }
            let count = link.deliverableByteCount(to: side)
            link.lose(to: side, after: count == 0 || below(2) == 0 ? 0 : below(count + 1))
        }
        note("link \(link.id) is cut")
        switch below(4) {
        case 0: seen(link, by: .client)
        case 1: seen(link, by: .server)
        case 2:
            seen(link, by: .client)
            seen(link, by: .server)
        default: break
        }
        unseenByClient.insert(link.id)
        if below(3) > 0 || link.refuses(from: .server) { unseenByServer.insert(link.id) }
    }

    /// A side sees that a connection is gone.
    private func seen(_ link: Link, by side: Link.Side) {
        if link.isWithinFrame(at: side) { result.totals.cutsWithinFrames += 1 }
        note("the \(side) sees that link \(link.id) is gone")
        switch side {
        case .client:
            unseenByClient.remove(link.id)
            if client.link === link { client.disconnected(now: now) }
        case .server:
            unseenByServer.remove(link.id)
            server.disconnected(link, now: now)
        }
    }

    private func noticeSomewhere() {
        let side: Link.Side = below(2) == 0 ? .client : .server
        let unseen = side == .client ? unseenByClient : unseenByServer
        if let link = links.first(where: { unseen.contains($0.id) }) { seen(link, by: side) }
    }

    private func disturbServer() {
        if below(3) == 0 {
            note("the server goes away")
            isDraining = true
            server.drain(until: now + .milliseconds(below(400)), now: now)
        } else {
            restart()
        }
    }

    private func restart() {
        note("the server restarts")
        isDraining = false
        result.totals.restarts += 1
        server.restart(endsSessionsFirst: below(2) == 0, now: now)
        // Connections end with the process, at whatever byte.
        for link in links { unseenByClient.insert(link.id) }
    }

    /// Somebody ends the session, at once or when everything is done.
    private func end() {
        let record = randomRecord()
        note("\(record.name) ends")
        record.isClosing = true
        if below(2) == 0 {
            let deadline = below(2) == 0 ? nil : now + .milliseconds(below(1_000))
            record.closeDeadline = .earliest(record.closeDeadline, deadline)
            record.end.close(by: deadline, now: now)
        } else {
            record.isAbandoned = true
            record.end.end(.abandoned, now: now)
        }
    }

    /// Forgets connections that neither side has.
    private func tidy() {
        links.removeAll { link in
            let isOver = client.link !== link && !server.knows(link)
            if isOver {
                unseenByClient.remove(link.id)
                unseenByServer.remove(link.id)
            }
            return isOver
        }
        // A client that has left reads nothing, and a server writes for a while.
        if links.count > 6 { seen(links[0], by: client.link === links[0] ? .client : .server) }
    }

    /// All is well from now on: everything that is under way has to come to its end. Then the client closes its
    /// session.
    func settle() {
        isQuiet = true
        note("all is well from now on")
        if isDraining { restart() }
        for link in links where link !== client.link || isDead(link) {
            seen(link, by: .client)
            seen(link, by: .server)
        }
        rest { clientRecord.isOver || client.machine.outbound.keptSize == SessionSize() }
        if failure.what != nil { return }
        if !clientRecord.isOver {
            clientRecord.checkRest()
            // The one that the client has.
            for record in liveRecords where record.end.link != nil { record.checkRest() }
        }
        note("the client closes its session")
        clientRecord.isClosing = true
        client.close(now: now)
        rest { clientRecord.isOver }
        if clientRecord.isOver == false { failure.note("the client does not close") }
        // Nobody comes back to what is left.
        for link in links { server.disconnected(link, now: now) }
        advance(by: server.configuration.registry.keptDuration)
        if !liveRecords.isEmpty || server.registeredCount > 0 { failure.note("sessions do not expire") }
        if let held = budget?.held, held != .none { failure.note("\(held) is held by no session") }
    }

    private func isDead(_ link: Link) -> Bool {
        Link.Side.allCases.contains { link.isLost(to: $0) || link.refuses(from: $0) }
    }

    /// Lets everything happen that can, until nothing does.
    private func rest(_ isDone: () -> Bool) {
        for _ in 0..<20_000 where failure.what == nil {
            var isIdle = true
            if client.link == nil, client.machine.endReason == nil, awayUntil <= now {
                connect()
                isIdle = false
            }
            tidy()
            for link in links {
                for side in Link.Side.allCases
                where link.deliverableByteCount(to: side) > 0 || hasEnded(link, for: side) {
                    deliver(over: link, to: side, atMost: 1 + below(300))
                    isIdle = false
                }
            }
            for record in [clientRecord] + liveRecords {
                while failure.what == nil, let index = record.running.firstIndex(where: { goesOn($0, at: record) }) {
                    respond(at: record, to: index)
                    isIdle = false
                }
                while !record.unprocessed.isEmpty { process(at: record); isIdle = false }
            }
            check()
            if !isIdle { continue }
            let deadlines =
                [client.machine.nextDeadline, server.nextDeadline] + liveRecords.map(\.end.machine.nextDeadline)
            // In the end the server sees which connections are left.
            for link in links where client.link !== link { seen(link, by: .server) }
            if client.machine.endReason == nil, awayUntil > now {
                advance(by: awayUntil - now)
                continue
            }
            if isDone(), liveRecords.allSatisfy({ $0.end.link == nil || isAtRest($0.end) }),
                client.machine.nextDeadline == nil
            {
                return
            }
            guard let next = deadlines.compactMap(\.self).min() else {
                return failure.note("it does not come to rest: \(([client] + liveRecords.map(\.end)).map(Self.line))")
            }
            advance(by: max(next - now, .milliseconds(1)))
        }
        failure.note("it never comes to rest")
    }

    /// Whether a handler does anything more by itself: one whose response nobody waits for has to be told so.
    private func goesOn(_ request: SessionRecord.Running, at record: SessionRecord) -> Bool {
        if request.isCancelled || record.end.link == nil { return true }
        return (serverRecords + [clientRecord]).contains { $0.openRequests[request.number] != nil }
    }

    /// Whether a side has yet to see that the other one has ended a connection.
    private func hasEnded(_ link: Link, for side: Link.Side) -> Bool {
        link.isAtEnd(at: side) && (side == .client ? client.link === link : server.reads(link))
    }

    /// What an end has left, for who looks for the reason.
    private static func line(_ end: End) -> String {
        let outbound = end.machine.outbound
        return "\(end.side): kept \(outbound.keptSize), sent \(outbound.unprocessedSize(.ordinary)),"
            + " \(outbound.unprocessedSize(.urgent)), not admitted \(outbound.unadmittedCount),"
            + " responses \(outbound.unadmittedResponseSize), came \(end.machine.inbound.progress)"
            + " limit \(end.options.outboundLimit), window \(end.options.inboundWindow), running \(end.options.maximumRunningCount)"
    }

    private func isAtRest(_ end: End) -> Bool {
        end.machine.nextDeadline == nil && end.machine.outbound.keptSize == SessionSize()
    }
}
