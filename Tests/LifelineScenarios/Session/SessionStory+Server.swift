internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

// The server, its handlers and its users.
extension SessionStory {
    /// Runs servers, one after the other, until the story is over. It begins anew after a kill of its process.
    nonisolated(nonsending) func runServers() async throws {
        noticeKill()
        while !isServerOver {
            order = nil
            do {
                try await withSessionServer(
                    listeningOn: Endpoint("tcp://0.0.0.0:7000"),
                    configuration: configuration,
                    services: [SessionStoryService(story: self)],
                    logger: world.logger
                ) { server in
                    self.server = server
                    while !isServerOver, order == nil { try await Task.sleep(for: .milliseconds(50)) }
                    self.server = nil
                    record.totals.shutDowns += 1
                    if order == .stop { throw CancellationError() }
                }
            } catch is CancellationError where order == .stop {
                // A step has stopped it at once.
            }
            if !ends.isEmpty { record.fail("\(ends.count) sessions outlive their server") }
            if !isQuiet { try await Task.sleep(for: .milliseconds(below(300))) }
        }
        hasServerEnded = true
    }

    /// Forgets what belongs to a killed process of the server.
    func noticeKill() {
        if serverProcess == serverHost.processCount { return }
        serverProcess = serverHost.processCount
        record.totals.kills += 1
        record.serverWasKilled(ends.map(\.number))
        (server, ends) = (nil, [])
        operations = operations.filter { !$0.value.isOnServer }
    }

    private var configuration: SessionServerConfiguration {
        var configuration = settings.server
        configuration.authenticate = { _ in
            let time = self.isQuiet || self.settings.decidesAtOnce || self.below(2) > 0 ? 0 : self.below(400)
            if time > 0 { try await Task.sleep(for: .milliseconds(self.below(20) == 0 ? 10 * time : time)) }
            return nil
        }
        configuration.whenOpened = { end, isResumed in
            if isResumed { return }
            let number = self.sessionNumbers.count + 1
            self.sessionNumbers[end.id] = number
            self.ends.append((number, end))
        }
        configuration.whenInDoubt = { end, messages in
            for message in messages { self.record.leftOver(message, of: .server(session: self.number(of: end))) }
        }
        configuration.whenEnded = { end in
            let number = self.number(of: end)
            if self.record.serverSessionEnds[number] == nil { self.record.serverSessionEnds[number] = self.world.now }
            self.ends.removeAll { $0.number == number }
        }
        return configuration
    }

    func number(of end: SessionServerEnd) -> Int { sessionNumbers[end.id] ?? 0 }

    /// Ends a session, at once or in order. Its client begins another one.
    func endSessionOnServer() {
        guard let (number, end) = ends.randomElement(using: &random) else { return }
        if record.serverSessionEnds[number] == nil { record.serverSessionEnds[number] = world.now }
        world.note("the server ends a session")
        let gracePeriod: Duration = .milliseconds(below(2) == 0 ? 0 : below(2_000))
        operate(onServer: true) { await end.end(gracePeriod: gracePeriod) }
    }

    // MARK: Pushes

    func pushFromServer(_ method: String? = nil, _ delivery: SessionDelivery? = nil) {
        // Mostly to the session that the client knows.
        guard let (session, end) = below(6) == 0 ? ends.randomElement(using: &random) : ends.last,
            operations.values.count(where: \.isOnServer) < 24
        else { return }
        let method = method ?? Self.pushMethods[below(Self.pushMethods.count)]
        let (delivery, metadata, fillerCount) = (delivery ?? randomDelivery(), randomMetadata(), randomFiller())
        let stage: SessionPushStage = below(2) == 0 ? .processed : .accepted
        let sender = SessionRecord.Sender.server(session: session)
        operate(onServer: true) {
            await self.send(
                in: .pushes(method, sender),
                from: sender,
                delivery,
                metadata: metadata,
                fillerCount: fillerCount,
                until: stage
            ) {
                try await end.push(method, $0, delivery: delivery, until: stage, metadata: metadata)
            }
        }
    }

    /// Pushes messages that nobody reads, until the test has seen enough of that.
    func pushUnreadFromServer() {
        guard let (session, end) = ends.last else { return }
        let sender = SessionRecord.Sender.server(session: session)
        operate(onServer: true) {
            for _ in 0..<200 where self.leavesUnread {
                let stream = SessionRecord.Stream.pushes(Self.slowMethod, sender)
                let fillerCount = self.settings.largestFiller
                await self.send(in: stream, from: sender, .reliable, fillerCount: fillerCount, until: .accepted) {
                    try await end.push(Self.slowMethod, $0)
                }
            }
        }
    }
}

/// The methods of a story's server.
private struct SessionStoryService: SessionService {
    let story: SessionStory

    private var record: SessionRecord { story.record }

    var methods: [SessionMethod] {
        [
            // One that does not wait.
            .push(SessionStory.pushMethods[0]) { (message: RawMessage, context: SessionContext) throws -> Void in
                let session = story.number(of: context.session)
                let push = record.cameAsPush(message.bytes, of: context.method, to: session)
                record.finished(push?.number)
            },
            .push(SessionStory.pushMethods[1], handlePush),
            .push(SessionStory.slowMethod, handlePush),
            .unary(SessionCallKind.unary.method) { (request: RawMessage, context: SessionContext) async throws in
                let number = begin(request, context)
                defer { end(number) }
                try await workOnCall()
                return reply(to: number, fillerCount: story.isQuiet ? 0 : story.randomFiller())
            },
            .stream(SessionCallKind.serverStream.method) {
                (request: RawMessage, writer: SessionStreamWriter<RawMessage>, context: SessionContext) async throws in
                let number = begin(request, context)
                defer { end(number) }
                await sendParts(of: number, context, writer)
                try await workOnCall()
            },
            .clientStream(SessionCallKind.clientStream.method) {
                (parts: SessionMessages<RawMessage>, context: SessionContext) async throws in
                let number = begin(nil, context)
                defer { end(number) }
                let limit = story.below(4) == 0 ? story.below(3) : .max
                _ = try await story.readParts(parts, .requestParts(number), atMost: limit)
                try await workOnCall()
                return reply(to: number, fillerCount: story.randomFiller())
            },
            .bothWays(SessionCallKind.bothWays.method) {
                (
                    parts: SessionMessages<RawMessage>,
                    writer: SessionStreamWriter<RawMessage>,
                    context: SessionContext
                ) async throws in
                let number = begin(nil, context)
                defer { end(number) }
                try await handle(number, parts, writer, context)
            },
        ]
    }

    private nonisolated(nonsending) func handlePush(_ message: RawMessage, _ context: SessionContext) async throws {
        let session = story.number(of: context.session)
        guard let (number, stream) = record.cameAsPush(message.bytes, of: context.method, to: session) else { return }
        await story.pause(for: stream)
        record.finished(number)
    }

    private nonisolated(nonsending) func handle(
        _ number: Int,
        _ parts: SessionMessages<RawMessage>,
        _ writer: SessionStreamWriter<RawMessage>,
        _ context: SessionContext
    ) async throws {
        let isUnread = number == story.unreadCall
        let limit = !isUnread && story.below(4) == 0 ? story.below(3) : .max
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                if isUnread {
                    let sender = SessionRecord.Sender.server(session: story.number(of: context.session))
                    await story.sendUnreadParts(in: .responseParts(number), from: sender, writer)
                } else {
                    await sendParts(of: number, context, writer)
                }
            }
            group.addTask {
                if isUnread { await story.waitWhileUnread() }
                _ = try await story.readParts(parts, .requestParts(number), atMost: limit)
            }
            try await group.waitForAll()
        }
        try await workOnCall()
    }

    private nonisolated(nonsending) func sendParts(
        of number: Int,
        _ context: SessionContext,
        _ writer: SessionStreamWriter<RawMessage>
    ) async {
        let count = story.below(story.settings.isRoomy ? 20 : 6)
        let sender = SessionRecord.Sender.server(session: story.number(of: context.session))
        await story.sendParts(count, in: .responseParts(number), from: sender, writer)
    }

    // MARK: Calls

    private func begin(_ request: RawMessage?, _ context: SessionContext) -> Int {
        let number =
            request.map { $0.bytes.withUnsafeBytes { SessionNote($0)?.number ?? 0 } }
            ?? context.metadata["number"].flatMap { Int($0) } ?? 0
        story.world.note("the handler of \(number) begins")
        let limits = story.settings.server
        record.began(
            number,
            in: story.number(of: context.session),
            runningLimits: (max(limits.limits.maximumHandlerCount, 1), limits.maximumHandlerCount)
        )
        return number
    }

    private func end(_ number: Int) {
        story.world.note("the handler of \(number) ends")
        record.handlers[number]?.hasEnded = true
    }

    private func reply(to number: Int, fillerCount: Int) -> RawMessage {
        RawMessage(bytes: SessionNote(number, fillerCount: fillerCount).payload)
    }

    /// Takes a while, waits to be cancelled, or fails; mostly it does nothing.
    private nonisolated(nonsending) func workOnCall() async throws {
        if story.isCounting {
            while story.isCounting { try await Task.sleep(for: .milliseconds(20)) }
            return
        }
        switch story.below(10) {
        case 0..<2: try await Task.sleep(for: .milliseconds(story.below(100)))
        case 2: for _ in 0..<60 where !story.isQuiet { try await Task.sleep(for: .milliseconds(50)) }
        case 3: throw SessionStatus(.aborted)
        default: break
        }
    }
}
