internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

// Time, and what happens to connections.
extension SessionScenario {
    func step() {
        switch below(50) {
        case 0..<6: push(from: randomRecord())
        case 6..<10: request(from: randomRecord())
        case 10: if below(2) == 0 { cancel(from: randomRecord()) }
        case 11..<16: for _ in 0..<burst() { goOnAsking(from: randomRecord()) }
        case 16..<22: for _ in 0..<burst() { respond(at: randomRecord()) }
        case 22..<28: for _ in 0..<2 { process(at: randomRecord()) }
        case 28..<42: for _ in 0..<below(10) { deliver() }
        case 42: advance(by: .milliseconds(below(200)))
        case 43..<45: if client.link == nil || below(20) == 0 { connect() }
        case 45: if below(2) == 0, let link = links.randomElement(using: &random) { cut(link) }
        case 46: noticeSomewhere()
        case 47: if below(2) == 0 { withdraw(from: randomRecord()) }
        case 48: advance(by: .milliseconds(below(20)))
        default:
            if below(12) == 0 { disturbServer() }
            if below(40) == 0 { end() }
        }
        tidy()
    }

    /// How many parts are sent at a time: credit is used up where there is room.
    private func burst() -> Int { sizes.isRoomy ? 1 + below(12) : 1 }

    /// Some of the bytes that are under way come to a side: often few, so that frames come in pieces.
    func deliver() {
        // Mostly over the newest connection; what is left of older ones comes, too.
        guard let link = below(3) == 0 ? links.randomElement(using: &random) : links.last else { return }
        let side: Link.Side = below(2) == 0 ? .client : .server
        switch below(5) {
        case 0: deliver(over: link, to: side, atMost: 1)
        case 1: deliver(over: link, to: side, atMost: 1 + below(20))
        default: deliver(over: link, to: side, atMost: below(2) == 0 ? 1 + below(max(200, sizes.capacity)) : .max)
        }
    }

    func deliver(over link: Link, to side: Link.Side, atMost byteCount: Int) {
        let before = link.deliveredByteCount(to: side)
        switch side {
        case .server:
            server.receive(over: link, atMost: byteCount, now: now)
        case .client:
            let frames = link.deliver(to: .client, atMost: byteCount)
            client.received(frames, over: link, now: now)
            if link.isAtEnd(at: .client), client.link === link { leave(link) }
        }
        // The bytes that came may have made room.
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
            capacity: sizes.capacity,
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
    func seen(_ link: Link, by side: Link.Side) {
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

    func restart() {
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
    func tidy() {
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
}
