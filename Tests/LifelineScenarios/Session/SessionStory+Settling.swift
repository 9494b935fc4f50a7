internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

// The end of a story.
extension SessionStory {
    /// Ends all faults. Everything that is under way has to come to its end.
    nonisolated(nonsending) func settle() async throws {
        world.note("all is well from now on")
        isQuiet = true
        noticeKill()
        // The client comes back to one session at most.
        record.totals.expiredSessions += max(ends.count - 1, 0)
        var faults = Faults()
        faults.latency = settings.faults.latency
        world.faults = faults
        for host in world.hosts { host.machine.conditions.bytesPerSecond = nil }
        // Outages, pauses, restarts after kills, and shutdowns last a few seconds.
        try await Task.sleep(for: .seconds(10))
        try await wait("there is a client and a session") { session?.state == .ready && !ends.isEmpty && server != nil }
        if settings.isRoomy, !settings.hasBudget { try await leaveUnread() }
        try await wait("everything comes to its end") { record.unfinished() == nil && operations.isEmpty }
        if settings.hasBudget { try await checkBudget() }
        try await close()
    }

    /// Nobody reads the pushes of one method, and a call: everything else comes to its end.
    private nonisolated(nonsending) func leaveUnread() async throws {
        world.note("nobody reads some streams")
        leavesUnread = true
        pushUnread()
        pushUnreadFromServer()
        if below(2) == 0 { callUnread() }
        for _ in 0..<3 {
            push("test.Pushes/B")
            pushFromServer("test.Pushes/A")
            call()
        }
        try await Task.sleep(for: .seconds(3))
        try await wait("everything that is read comes to its end") {
            record.unfinished(besides: isUnread, unreadCall) == nil
        }
        let waiting = Set(record.messages.values.compactMap { $0.end == nil ? $0.stream : nil })
        for stream in waiting where isUnread(stream) {
            if stream.isPushes { record.totals.unreadStreams += 1 } else { record.totals.unreadPartStreams += 1 }
        }
        leavesUnread = false
    }

    private func isUnread(_ stream: SessionRecord.Stream) -> Bool {
        switch stream {
        case .pushes(let method, _): method == Self.slowMethod
        case .requestParts(let call), .responseParts(let call): call == unreadCall
        }
    }

    /// Shows that the server has all of what its sessions share: as many calls as it handles at once, and a large one,
    /// have room. Sessions without a connection hold only what waits for their clients.
    private nonisolated(nonsending) func checkBudget() async throws {
        let (client, server) = (settings.client.limits, settings.server.limits)
        try await wait("older sessions expire") { ends.count <= 1 }
        let count = min(
            3,
            settings.server.maximumHandlerCount,
            server.maximumHandlerCount,
            client.maximumRequestCount,
            server.maximumRequestCount
        )
        guard let session else { throw WorldFailure("There is no client.") }
        isCounting = true
        let before = record.handlers.count
        for _ in 0..<count { callOnce(session, fillerCount: 0) }
        try await wait("the server handles \(count) calls at once", within: .seconds(20)) {
            record.handlers.count - before == count
        }
        isCounting = false
        try await wait("these calls end", within: .seconds(20)) { operations.isEmpty }
        let limits = [
            // A request counts twice until it is acknowledged.
            settings.server.maximumKeptByteCount / 2 - 1_500, client.maximumKeptByteCount - 1_000,
            server.maximumUnprocessedByteCount - 1_000, settings.client.client.connection.maximumFrameLength - 500,
            settings.server.server.connection.maximumFrameLength - 500,
        ]
        let begun = record.handlers.count
        callOnce(session, fillerCount: max(limits.min() ?? 0, 0))
        try await wait("a large call ends", within: .seconds(20)) { operations.isEmpty }
        record.demand(record.handlers.count == begun + 1, "the server has no room for a large call")
    }

    /// Closes the client. Nothing is in doubt then, and the sessions expire that earlier clients have left.
    private nonisolated(nonsending) func close() async throws {
        world.note("the client closes its session")
        isClientOver = true
        if let session, record.runEnds[runCount] == nil {
            record.runEnds[runCount] = world.now
            operate { await session.close() }
        }
        try await wait("the client ends") { hasClientEnded }
        let limit = settings.server.keptDuration + .seconds(5)
        try await wait("sessions expire", within: limit) { ends.isEmpty && server?.sessions.isEmpty != false }
        isServerOver = true
        try await wait("the server ends") { hasServerEnded }
    }

    /// Like `World.until`, but checks less often, which costs less.
    private nonisolated(nonsending) func wait(
        _ text: String,
        within timeout: Duration = .seconds(180),
        _ condition: () -> Bool
    ) async throws {
        let deadline = world.now + timeout
        while !condition() {
            if world.now >= deadline {
                let rest = record.unfinished().map { ", but \($0)" } ?? ""
                throw WorldFailure("Within \(timeout), this did not come to hold: \(text)\(rest)")
            }
            try await Task.sleep(for: .milliseconds(100))
        }
    }
}
