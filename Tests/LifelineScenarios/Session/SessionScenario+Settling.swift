internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

// How a story comes to its end.
extension SessionScenario {
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
        if sizes.isRoomy, budget == nil, !clientRecord.isOver { restUnread() }
        if failure.what != nil { return }
        rest { clientRecord.isOver || client.machine.keptSize == SessionSize() }
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

    /// Streams that nobody reads for a while, among them those of a call.
    private struct Unread {
        var call: Int?

        func contains(_ stream: Stream) -> Bool {
            switch stream {
            case .pushes: stream == SessionScenario.slowStream
            case .requestParts(let number), .responseParts(let number): number == call
            }
        }
    }

    /// Nobody reads one method's pushes, and a call: everything else comes to its end.
    private func restUnread() {
        note("nobody reads some streams")
        for record in [clientRecord] + liveRecords { fillSlowStream(from: record) }
        let unread = Unread(call: below(2) == 0 ? askUnread(from: clientRecord) : nil)
        rest(leaving: unread) { [unowned self] in
            (client.link != nil || clientRecord.isOver)
                && ([clientRecord] + liveRecords).allSatisfy { record in
                    record.isOver || record.end.link == nil
                        || record.isAtRest(besides: unread.call, isUnread: unread.contains)
                }
        }
        for record in [clientRecord] + liveRecords {
            let streams = Set(record.waiting.compactMap { record.numbers[$0].flatMap { record.sent[$0]?.stream } })
            result.totals.unreadStreams += streams.count { $0.isPushes }
            result.totals.unreadPartStreams += streams.count { !$0.isPushes }
        }
    }

    private func isDead(_ link: Link) -> Bool {
        Link.Side.allCases.contains { link.isLost(to: $0) || link.refuses(from: $0) }
    }

    /// Lets everything happen that can, until nothing does.
    ///
    /// - Parameter unread: what nobody reads; then it is done as soon as `isDone` says so.
    private func rest(leaving unread: Unread? = nil, _ isDone: () -> Bool) {
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
                    deliver(over: link, to: side, atMost: 1 + below(max(300, sizes.capacity)))
                    isIdle = false
                }
            }
            for record in [clientRecord] + liveRecords where goOn(record, leaving: unread) { isIdle = false }
            check()
            if !isIdle { continue }
            if unread != nil, isDone() { return }
            let deadlines =
                [client.machine.nextDeadline, server.nextDeadline] + liveRecords.map { $0.end.machine.nextDeadline }
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

    /// Has the users of an end do all that they can. Returns whether they did anything.
    private func goOn(_ record: SessionRecord, leaving unread: Unread?) -> Bool {
        var isAnything = false
        while failure.what == nil,
            let index = record.running.firstIndex(where: { $0.number != unread?.call && goesOn($0, at: record) })
        {
            respond(at: record, to: index)
            isAnything = true
        }
        if let running = record.running.first(where: { $0.number == unread?.call && !$0.isCancelled }) {
            isAnything = fillResponse(to: running, at: record) || isAnything
        }
        for number in record.openCalls.sorted()
        where record.calls[number]?.hasEnded == false && number != unread?.call {
            goOnAsking(number, from: record)
            isAnything = true
        }
        while failure.what == nil, let index = record.unread.firstIndex(where: { unread?.contains($0.stream) != true })
        {
            process(at: record, index)
            isAnything = true
        }
        return isAnything
    }

    /// Whether a handler does anything more by itself: one whose response nobody waits for has to be told so.
    private func goesOn(_ request: SessionRecord.Running, at record: SessionRecord) -> Bool {
        if request.isCancelled || record.end.link == nil { return true }
        return (serverRecords + [clientRecord]).contains { $0.openCalls.contains(request.number) }
    }

    /// Whether a side has yet to see that the other one has ended a connection.
    private func hasEnded(_ link: Link, for side: Link.Side) -> Bool {
        link.isAtEnd(at: side) && (side == .client ? client.link === link : server.reads(link))
    }

    /// Describes what an end has left, for those who look for the reason.
    private static func line(_ end: End) -> String {
        "\(end.side): kept \(end.machine.keptSize), \(end.machine.keptByteCount) bytes in all,"
            + " \(end.machine.waitingCount) wait, \(end.machine.requestCount) requests, \(end.machine.runningCount) run,"
            + " limit \(end.options.outboundLimit), window \(end.options.inboundWindow),"
            + " running \(end.options.maximumRunningCount)"
    }

    private func isAtRest(_ end: End) -> Bool {
        end.machine.nextDeadline == nil && end.machine.keptSize == SessionSize()
    }
}
