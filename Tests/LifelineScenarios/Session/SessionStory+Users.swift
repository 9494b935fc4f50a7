internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

// The random steps of a story, and the functions that users of both sides share.
extension SessionStory {
    nonisolated(nonsending) func step() async throws {
        noticeKill()
        switch below(60) {
        case 0..<14: for _ in 0..<1 + below(4) { push() }
        case 14..<26: for _ in 0..<1 + below(4) { pushFromServer() }
        case 26..<44: for _ in 0..<1 + below(2) { call() }
        case 44..<48: cancelOperation()
        case 48..<50: for _ in 0..<1 + below(3) { session?.reconnect() }
        case 50: if below(4) == 0 { order = below(2) == 0 ? .shutDown : .stop }
        case 51: if below(4) == 0 { endSessionOnServer() }
        case 52: if below(6) == 0 { endRun() }
        case 53: if settings.isRoomy { for _ in 0..<8 { push(Self.slowMethod, .reliable) } }
        case 54: if settings.isRoomy { for _ in 0..<8 { pushFromServer(Self.slowMethod, .reliable) } }
        case 55: try await crossConnections()
        default: break
        }
    }

    /// Replaces a connection soon after its hello has arrived, and hides its end from the server.
    private nonisolated(nonsending) func crossConnections() async throws {
        session?.reconnect()
        // Three times back and forth, and some steps of the programs.
        try await Task.sleep(for: settings.faults.latency * 6 + settings.faults.jitter * 2 + .milliseconds(below(30)))
        clientHost.forEachConnection { stream, _ in stream.cut(.silence, afterClientBytes: 0) }
        try await Task.sleep(for: .milliseconds(below(100)))
        session?.reconnect()
    }

    private func cancelOperation() {
        guard let number = operations.keys.sorted().randomElement(using: &random) else { return }
        world.note("operation \(number) is cancelled")
        operations[number]?.program.cancel()
    }

    func randomFiller() -> Int {
        below(3) == 0 ? below(min(settings.largestFiller, 60)) : below(settings.largestFiller)
    }

    func randomMetadata() -> SessionMetadata { below(8) == 0 ? ["name": "\(below(1_000))"] : [:] }

    func randomDelivery() -> SessionDelivery {
        switch below(8) {
        case 0: .atMostOnce
        case 1: .expiring(after: .milliseconds(below(300)))
        case 2: .replaceable(key: "\(below(2))", timeToLive: below(2) == 0 ? nil : .milliseconds(below(300)))
        default: .reliable
        }
    }

    /// Sends a message, and records what its sender is told.
    ///
    /// - Returns: whether a sender of parts goes on.
    @discardableResult
    nonisolated(nonsending) func send(
        in stream: SessionRecord.Stream,
        from sender: SessionRecord.Sender,
        _ delivery: SessionDelivery,
        metadata: SessionMetadata = [:],
        fillerCount: Int,
        until stage: SessionPushStage,
        _ body: nonisolated(nonsending) (RawMessage) async throws -> Void
    ) async -> Bool {
        let number = record.takeNumber()
        let payload = SessionNote(number, fillerCount: fillerCount).payload
        let byteCount = payload.count + metadata.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count + 8 }
        let message = SessionRecord.Message(
            stream: stream,
            sender: sender,
            delivery: delivery,
            isObserved: stage == .processed,
            byteCount: byteCount,
            sentAt: world.now
        )
        world.note("\(sender) sends \(number) in \(stream), \(byteCount) bytes, \(delivery), until \(stage)")
        record.offered(number, message)
        do {
            try await body(RawMessage(bytes: payload))
            let end: SessionRecord.SendEnd = stage == .processed ? .processed : .accepted
            world.note("message \(number) is \(end)")
            record.ended(number, end, isCancelled: Task.isCancelled)
            return true
        } catch let error as SessionError {
            world.note("message \(number) is not sent: \(error.code)")
            record.ended(number, .failed(error.code), isCancelled: Task.isCancelled)
            switch error.code {
            case .messageExpired, .messageReplaced, .messageDropped, .messageRefused: return true
            default: return false
            }
        } catch {
            record.fail("a send throws \(error)")
            return false
        }
    }

    /// Sends some parts of a call. It goes on while parts wait until they are processed.
    nonisolated(nonsending) func sendParts(
        _ count: Int,
        in stream: SessionRecord.Stream,
        from sender: SessionRecord.Sender,
        _ writer: SessionStreamWriter<RawMessage>
    ) async {
        await withTaskGroup(of: Void.self) { group in
            for index in 0..<count where !Task.isCancelled {
                let (delivery, fillerCount) = (randomDelivery(), randomFiller())
                // Parts that wait for the beginning of their call have no order among themselves.
                if index > 0, record.hasAccepted(in: stream), below(5) == 0 {
                    group.addTask {
                        await self.send(in: stream, from: sender, delivery, fillerCount: fillerCount, until: .processed)
                        {
                            try await writer.send($0, delivery: delivery, until: .processed)
                        }
                    }
                } else {
                    let goesOn = await send(
                        in: stream,
                        from: sender,
                        delivery,
                        fillerCount: fillerCount,
                        until: .accepted
                    ) {
                        try await writer.send($0, delivery: delivery)
                    }
                    if !goesOn { return }
                }
                if below(4) == 0 { try? await Task.sleep(for: .milliseconds(below(30))) }
            }
        }
    }

    /// Sends parts that nobody reads, until they have waited long enough.
    nonisolated(nonsending) func sendUnreadParts(
        in stream: SessionRecord.Stream,
        from sender: SessionRecord.Sender,
        _ writer: SessionStreamWriter<RawMessage>
    ) async {
        for _ in 0..<200 where leavesUnread {
            let goesOn = await send(
                in: stream,
                from: sender,
                .reliable,
                fillerCount: settings.largestFiller,
                until: .accepted
            ) {
                try await writer.send($0)
            }
            if !goesOn { return }
        }
    }

    /// The user of a message takes some time.
    nonisolated(nonsending) func pause(for stream: SessionRecord.Stream) async {
        let isSlow =
            switch stream {
            case .pushes(let method, _): method == Self.slowMethod
            case .requestParts(let call), .responseParts(let call): call % 3 == 0
            }
        while leavesUnread, case .pushes(Self.slowMethod, _) = stream, !Task.isCancelled {
            try? await Task.sleep(for: .milliseconds(100))
        }
        let limit = isQuiet ? 2 : isSlow ? 400 : 15
        if isSlow || below(2) == 0 { try? await Task.sleep(for: .milliseconds(below(limit + 1))) }
    }

    /// Waits until reading is allowed again.
    nonisolated(nonsending) func waitWhileUnread() async {
        while leavesUnread, !Task.isCancelled { try? await Task.sleep(for: .milliseconds(100)) }
    }

    /// Reads the parts of one side of a call.
    ///
    /// - Parameter limit: the most parts that it reads.
    /// - Returns: the number of parts; nil if the end did not come.
    nonisolated(nonsending) func readParts(
        _ messages: SessionMessages<RawMessage>,
        _ stream: SessionRecord.Stream,
        atMost limit: Int
    ) async throws -> Int? {
        var iterator = messages.makeAsyncIterator()
        for count in 0..<limit {
            guard let part = try await iterator.next() else {
                record.checkComplete(stream)
                return count
            }
            let number = record.came(part.bytes, in: stream, to: 0)
            await pause(for: stream)
            record.finished(number)
        }
        return nil
    }
}
