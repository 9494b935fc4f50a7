internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

// The client and its users.
extension SessionStory {
    /// Runs clients, one after the other, until the story is over.
    nonisolated(nonsending) func runClients() async throws {
        while !isClientOver {
            try await runClient()
            try await Task.sleep(for: .milliseconds(below(200)))
        }
        hasClientEnded = true
    }

    private nonisolated(nonsending) func runClient() async throws {
        runCount += 1
        record.totals.clientRuns += 1
        let run = runCount
        let client = SessionClient(
            to: try Endpoint("tcp://server:7000"),
            configuration: settings.client,
            logger: world.logger
        )
        // Before the client runs, so that they miss nothing.
        let readers = Self.pushMethods.map { method in
            let pushes = client.pushes(method, of: RawMessage.self)
            return clientHost.run { await self.read(pushes, of: method, run) }
        }
        let events = clientHost.run { await self.observe(client, run) }
        let running = clientHost.run { try await client.run() }
        (session, self.running) = (client, running)
        do {
            try await running.value
        } catch is CancellationError {
            // A step has ended it.
        } catch {
            record.fail("the client ended: \(error)")
        }
        if record.runEnds[run] == nil { record.runEnds[run] = world.now }
        session = nil
        try await events.value
        for reader in readers { try await reader.value }
    }

    private nonisolated(nonsending) func observe(_ client: SessionClient, _ run: Int) async {
        for await event in client.sessionEvents {
            if event.missedCount > 0 { record.fail("\(event.missedCount) events of the session were missed") }
            switch event.kind {
            case .opened: break
            case .lost(let inDoubt): record.lostSession(run, inDoubt)
            case .refused(let messages), .expired(let messages):
                for message in messages { record.leftOver(message, of: .client(run: run)) }
            case .ended(_, let inDoubt):
                if record.runEnds[run] == nil { record.runEnds[run] = world.now }
                for message in inDoubt { record.leftOver(message, of: .client(run: run)) }
                if isClientOver, !inDoubt.isEmpty { record.fail("\(inDoubt) is in doubt though all was well") }
            }
        }
    }

    /// Reads the pushes of a method. It leaves the loop now and then, and begins another one.
    private nonisolated(nonsending) func read(
        _ pushes: SessionPushes<RawMessage>,
        of method: String,
        _ run: Int
    ) async {
        while !Task.isCancelled {
            do {
                var iterator = pushes.makeAsyncIterator()
                repeat {
                    guard let push = try await iterator.next() else { return }
                    guard let (number, stream) = record.cameAsPush(push.bytes, of: method, to: run) else { return }
                    await pause(for: stream)
                    record.finished(number)
                } while below(20) > 0
            } catch {
                // The session has ended.
                return
            }
        }
    }

    /// Ends the run of the client, at once or in order. Another one follows.
    func endRun() {
        guard let session, record.runEnds[runCount] == nil else { return }
        record.runEnds[runCount] = world.now
        world.note("the client ends")
        if below(2) == 0 {
            running?.cancel()
        } else {
            operate { await session.close() }
        }
    }

    // MARK: Pushes

    private var mayOperate: Bool { operations.values.count { !$0.isOnServer } < 24 }

    func push(_ method: String? = nil, _ delivery: SessionDelivery? = nil) {
        guard let session, mayOperate else { return }
        let method = method ?? Self.pushMethods[below(Self.pushMethods.count)]
        let (delivery, metadata, fillerCount) = (delivery ?? randomDelivery(), randomMetadata(), randomFiller())
        let stage: SessionPushStage = below(2) == 0 ? .processed : .accepted
        let sender = SessionRecord.Sender.client(run: runCount)
        operate {
            await self.send(
                in: .pushes(method, sender),
                from: sender,
                delivery,
                metadata: metadata,
                fillerCount: fillerCount,
                until: stage
            ) {
                try await session.push(method, $0, delivery: delivery, until: stage, metadata: metadata)
            }
        }
    }

    /// Pushes messages that nobody reads, until the test has seen enough of that.
    func pushUnread() {
        guard let session else { return }
        let sender = SessionRecord.Sender.client(run: runCount)
        operate {
            for _ in 0..<200 where self.leavesUnread {
                let stream = SessionRecord.Stream.pushes(Self.slowMethod, sender)
                let fillerCount = self.settings.largestFiller
                await self.send(in: stream, from: sender, .reliable, fillerCount: fillerCount, until: .accepted) {
                    try await session.push(Self.slowMethod, $0)
                }
            }
        }
    }

    // MARK: Calls

    func call() {
        guard let session, mayOperate, let kind = SessionCallKind.allCases.randomElement(using: &random) else { return }
        let timeout: Duration? = below(2) == 0 ? nil : .milliseconds(below(settings.isRoomy ? 5_000 : 1_000))
        let (run, partCount) = (runCount, below(settings.isRoomy ? 20 : 6))
        let metadata = randomMetadata()
        operate {
            switch kind {
            case .unary: await self.ask(session, run, timeout, metadata, fillerCount: self.randomFiller())
            case .serverStream: await self.askForStream(session, run, timeout, metadata)
            case .clientStream: await self.sendStream(session, run, timeout, metadata, partCount)
            case .bothWays: await self.exchange(session, run, timeout, metadata, partCount)
            }
        }
    }

    func callOnce(_ session: SessionClient, fillerCount: Int) {
        let run = runCount
        operate { await self.ask(session, run, nil, fillerCount: fillerCount) }
    }

    /// Makes a call both ways of which nobody reads anything for a while.
    func callUnread() {
        guard let session else { return }
        let run = runCount
        operate { await self.exchange(session, run, nil, [:], 0, isUnread: true) }
    }

    /// Makes a call, and records its result.
    private nonisolated(nonsending) func call(
        _ kind: SessionCallKind,
        _ run: Int,
        _ timeout: Duration?,
        _ byteCount: Int,
        _ number: Int,
        _ body: nonisolated(nonsending) () async throws -> Void
    ) async {
        record.calls[number] = SessionRecord.Call(
            kind: kind,
            run: run,
            timeout: timeout,
            startedAt: world.now,
            byteCount: byteCount
        )
        world.note("the client asks \(number), \(kind), within \(timeout.map { "\($0)" } ?? "any time")")
        let result: SessionRecord.Call.Result
        do {
            try await body()
            result = .replied
        } catch let error as SessionError {
            result = error.status.map { .status($0.code) } ?? .failed(error.code)
            world.note("call \(number) fails: \(error.message)")
        } catch is CancellationError {
            result = .failed(.cancelled)
        } catch {
            return record.fail("call \(number) throws \(error)")
        }
        if Task.isCancelled { record.calls[number]?.isCancelled = true }
        world.note("call \(number) is \(result)")
        record.callEnded(number, result)
    }

    private func checkReply(_ reply: RawMessage, to number: Int) {
        let note = reply.bytes.withUnsafeBytes { SessionNote($0) }
        record.demand(
            note?.number == number,
            "call \(number) got the reply \(note.map { "\($0)" } ?? "of other bytes")"
        )
    }

    private nonisolated(nonsending) func ask(
        _ session: SessionClient,
        _ run: Int,
        _ timeout: Duration?,
        _ metadata: SessionMetadata = [:],
        fillerCount: Int
    ) async {
        let number = record.takeNumber()
        let request = SessionNote(number, fillerCount: fillerCount).payload
        await call(.unary, run, timeout, request.count, number) {
            let reply: RawMessage = try await session.call(
                SessionCallKind.unary.method,
                RawMessage(bytes: request),
                timeout: timeout,
                metadata: metadata
            )
            checkReply(reply, to: number)
        }
    }

    private nonisolated(nonsending) func askForStream(
        _ session: SessionClient,
        _ run: Int,
        _ timeout: Duration?,
        _ metadata: SessionMetadata
    ) async {
        let number = record.takeNumber()
        let request = SessionNote(number, fillerCount: randomFiller()).payload
        let stream = SessionRecord.Stream.responseParts(number)
        await call(.serverStream, run, timeout, request.count, number) {
            let parts = session.stream(
                SessionCallKind.serverStream.method,
                RawMessage(bytes: request),
                of: RawMessage.self,
                timeout: timeout,
                metadata: metadata
            )
            for try await part in parts {
                let part = record.came(part.bytes, in: stream, to: 0)
                await pause(for: stream)
                record.finished(part)
                guard below(15) == 0 else { continue }
                // Leaving the loop cancels the call.
                record.calls[number]?.isCancelled = true
                throw CancellationError()
            }
            record.checkComplete(stream)
        }
    }

    /// A request whose messages follow in parts says in its metadata which one it is.
    private func numbered(_ metadata: SessionMetadata, _ number: Int) -> SessionMetadata {
        metadata.merging(["number": "\(number)"]) { $1 }
    }

    private nonisolated(nonsending) func sendStream(
        _ session: SessionClient,
        _ run: Int,
        _ timeout: Duration?,
        _ metadata: SessionMetadata,
        _ partCount: Int
    ) async {
        let number = record.takeNumber()
        await call(.clientStream, run, timeout, 0, number) {
            let reply: RawMessage = try await session.clientStream(
                SessionCallKind.clientStream.method,
                of: RawMessage.self,
                timeout: timeout,
                metadata: numbered(metadata, number)
            ) { writer in
                await self.sendParts(partCount, in: .requestParts(number), from: .client(run: run), writer)
                if !Task.isCancelled { self.record.calls[number]?.hasSentParts = true }
            }
            checkReply(reply, to: number)
        }
    }

    private nonisolated(nonsending) func exchange(
        _ session: SessionClient,
        _ run: Int,
        _ timeout: Duration?,
        _ metadata: SessionMetadata,
        _ partCount: Int,
        isUnread: Bool = false
    ) async {
        let number = record.takeNumber()
        if isUnread { unreadCall = number }
        let stream = SessionRecord.Stream.requestParts(number)
        await call(.bothWays, run, timeout, 0, number) {
            try await session.bothWays(
                SessionCallKind.bothWays.method,
                sending: RawMessage.self,
                receiving: RawMessage.self,
                timeout: timeout,
                metadata: numbered(metadata, number)
            ) { writer in
                if isUnread { await self.sendUnreadParts(in: stream, from: .client(run: run), writer) }
                await self.sendParts(partCount, in: stream, from: .client(run: run), writer)
                if !Task.isCancelled { self.record.calls[number]?.hasSentParts = true }
            } receive: { messages in
                if isUnread { await waitWhileUnread() }
                _ = try await readParts(messages, .responseParts(number), atMost: .max)
            }
        }
    }
}
