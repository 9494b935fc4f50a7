internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

// The users of both sides.
extension DurableStory {
    private func fillerCount() -> Int {
        isLarge ? below(50_000) : below(8) == 0 ? below(3_000) : below(40)
    }

    private var burst: Int { below(10) == 0 ? 1 + below(20) : 1 }

    func push(from side: Side) {
        for _ in 0..<burst {
            let method = DurableRecord.pushMethods[below(DurableRecord.pushMethods.count)]
            let timeToLive: Duration? = below(4) == 0 ? .milliseconds(below(1_500)) : nil
            let stage: SessionPushStage = below(3) == 0 ? .processed : .accepted
            let fillerCount = fillerCount()
            operate(side) { await self.push(side, method, timeToLive, stage, fillerCount) }
        }
    }

    private nonisolated(nonsending) func push(
        _ side: Side,
        _ method: String,
        _ timeToLive: Duration?,
        _ stage: SessionPushStage,
        _ fillerCount: Int
    ) async {
        let delivery: SessionDelivery = timeToLive.map { .durable(expiringAfter: $0) } ?? .durable
        let (client, end) = (client, newestEnd)
        guard side == .client ? client != nil : end != nil else { return }
        let number = record.takeNumber(side, method, isObserved: stage == .processed, timeToLive: timeToLive)
        let message = RawMessage(bytes: SessionNote(number, fillerCount: fillerCount).payload)
        world.note("the \(side) pushes \(number) of \(method), \(delivery), until \(stage)")
        var failure: SessionError?
        do throws(SessionError) {
            switch side {
            case .client: try await client?.push(method, message, delivery: delivery, until: stage)
            case .server: try await end?.push(method, message, delivery: delivery, until: stage)
            }
        } catch {
            failure = error
        }
        world.note("push \(number) of the \(side): \(failure.map { "\($0.code)" } ?? "\(stage)")")
        record.ended(number, failure)
    }

    func call() {
        for _ in 0..<burst {
            let method = below(2) == 0 ? DurableRecord.callMethod : DurableRecord.markedCallMethod
            let timeout: Duration? = below(4) == 0 ? .milliseconds(below(300)) : nil
            let fillerCount = isLarge ? below(50_000) : below(40)
            operate(.client) { await self.call(method, timeout, fillerCount) }
        }
    }

    private nonisolated(nonsending) func call(_ method: String, _ timeout: Duration?, _ fillerCount: Int) async {
        guard let client else { return }
        let number = record.takeNumber(.client, method, isCall: true)
        let request = RawMessage(bytes: SessionNote(number, fillerCount: fillerCount).payload)
        world.note("the client calls \(number)")
        do throws(SessionError) {
            let reply: RawMessage = try await client.call(method, request, timeout: timeout, delivery: .durable)
            world.note("call \(number) has its reply")
            record.callEnded(number, reply.bytes, nil)
        } catch {
            world.note("call \(number): \(error.code)")
            record.callEnded(number, nil, error)
        }
    }

    // MARK: Handlers

    /// A handler takes some time.
    nonisolated(nonsending) func work() async {
        if below(2) == 0 { return }
        try? await Task.sleep(for: .milliseconds(below(isQuiet ? 3 : below(10) == 0 ? 500 : 20)))
    }

    nonisolated(nonsending) func read(_ pushes: SessionPushes<RawMessage>, of method: String) async {
        do {
            for try await push in pushes {
                guard let number = record.came(push.bytes, of: method, at: .client) else { return }
                await work()
                world.note("the client has handled \(number)")
                record.finished(number, at: .client)
            }
        } catch {
            // The session has ended.
        }
    }

    nonisolated(nonsending) func read(_ replies: SessionLateReplies<RawMessage>) async {
        do {
            for try await late in replies {
                guard case .success(let reply) = late.result, let number = record.cameLate(reply.bytes) else {
                    return world.fail("a late reply failed or is malformed: \(late.result)")
                }
                await work()
                world.note("the late reply to \(number) is handled")
                record.finishedLate(number)
            }
        } catch {
            // The session has ended.
        }
    }
}

/// The methods of a story's server. Some write their effects to the database, with the mark that they are done.
struct DurableStoryService: SessionService {
    let story: DurableStory

    private var record: DurableRecord { story.record }

    var methods: [SessionMethod] {
        DurableRecord.pushMethods.map { method in
            .push(method) { (message: RawMessage, context: SessionContext) async throws in
                guard let number = record.came(message.bytes, of: method, at: .server) else { return }
                await story.work()
                if method == DurableRecord.markedMethod { try await write(number, context, ()) }
                finished(number)
            }
        }
            + [DurableRecord.callMethod, DurableRecord.markedCallMethod].map { method in
                .unary(method) { (request: RawMessage, context: SessionContext) async throws -> RawMessage in
                    guard let number = record.came(request.bytes, of: method, at: .server) else {
                        throw SessionStatus(.internal)
                    }
                    await story.work()
                    // A handler that is cancelled has not handled the call: it comes again.
                    try Task.checkCancellation()
                    let reply = reply(to: number)
                    if method == DurableRecord.markedCallMethod {
                        let reply = try await write(number, context, reply)
                        finished(number)
                        return reply
                    }
                    finished(number)
                    return reply
                }
            }
    }

    private func finished(_ number: Int) {
        story.world.note("the server has handled \(number)")
        record.finished(number, at: .server)
    }

    private func reply(to number: Int) -> RawMessage {
        let fillerCount = story.isLarge ? story.below(50_000) : story.below(100)
        return RawMessage(bytes: SessionNote(number + DurableRecord.replyOffset, fillerCount: fillerCount).payload)
    }

    private nonisolated(nonsending) func write<Value: Sendable>(
        _ number: Int,
        _ context: SessionContext,
        _ value: Value
    ) async throws -> Value {
        while true {
            do {
                return try await record.stores[1].database.transaction(marking: context.durableMessage) {
                    if !$0.contains(number) { $0.append(number) }
                    return value
                }
            } catch is StoreError {
                // It may have happened. The next attempt finds out.
                record.uncertainMarks.insert(number)
                try await Task.sleep(for: .milliseconds(50))
            }
        }
    }
}
