import ArgumentParser
import FaultSupport
import Lifeline
import LifelineProtos
import SessionCutSupport

/// The client whose connections are cut. It sends and requests all messages at once, and records those that it
/// processes. It reports changes of its session, and when both sides have processed everything.
///
/// Commands: see `CutPace`. It ends with its input.
@main struct SessionCutClient: AsyncParsableCommand {
    private typealias Message = Sample_Chat_V1_ChatMessage

    @OptionGroup var traffic: CutTraffic
    @Option(help: "The endpoint to connect to.") var to: String

    /// The number of concurrent calls.
    private static let callerCount = 8

    func run() async throws {
        let pace = CutPace()
        let work = Task {
            do {
                try await converse(pace)
                FaultEvent(.done).print()
            } catch {
                FaultEvent.ended("\(error)").print()
                throw error
            }
        }
        try await pace.obey { try await CommandLines.next() }
        work.cancel()
        try await work.value
    }

    private func converse(_ pace: CutPace) async throws {
        let record = try CutRecord(at: traffic.record)
        try await withSessionClient(
            to: Endpoint(to),
            configuration: configuration,
            logger: CutTraffic.logger("client")
        ) { client in
            try await withThrowingTaskGroup { group in
                // Before the first message can arrive.
                let pushes = [CutFlow.news, .alerts].map { ($0, client.pushes($0.method, of: Message.self)) }
                let (completed, completions) = AsyncStream.makeStream(of: CutFlow.self)
                for (flow, pushes) in pushes {
                    group.addTask { try await read(flow, pushes, into: record) { completions.yield(flow) } }
                }
                group.addTask { await SessionCutClient.watch(client) }
                try await exchange(client, record, pace)
                for await _ in completed.prefix(pushes.count) {}
                // Pushes that arrive twice are read, too, until here.
                await client.close()
                try await group.waitForAll()
            }
        }
    }

    private var configuration: SessionClientConfiguration {
        var configuration = SessionClientConfiguration()
        configuration.client.connection.heartbeat = CutTraffic.heartbeat
        configuration.client.backoff.initialDelay = .milliseconds(1)
        configuration.client.backoff.cap = .milliseconds(20)
        configuration.client.backoff.maximumAttempts = nil
        // The parent process ends this program when there is no more progress.
        configuration.closeTimeout = .seconds(3600)
        return configuration
    }

    /// All flows that end by themselves.
    private func exchange(_ client: SessionClient, _ record: CutRecord, _ pace: CutPace) async throws {
        _ = try await client.call(CutFlow.begin, Message(), returning: Message.self, timeout: nil)
        try await withThrowingTaskGroup { group in
            for flow in [CutFlow.reports, .statuses] {
                group.addTask {
                    for number in traffic.numbers(of: flow) {
                        await pace.wait(for: number, of: flow.count(of: traffic.messages))
                        try await client.push(flow.method, flow.message(number))
                    }
                }
            }
            for flow in [CutFlow.firstStream, .secondStream] {
                let request = Message.with { $0.from = flow.rawValue }
                group.addTask {
                    for try await message in client.stream(flow.method, request, of: Message.self) {
                        try await record.processAndAdd(CutRecord.Entry(flow, message))
                    }
                }
            }
            group.addTask { try await upload(client, pace) }
            group.addTask { try await discuss(client, record, pace) }
            for caller in 1...SessionCutClient.callerCount {
                group.addTask {
                    for number in traffic.numbers(of: .calls) where number % SessionCutClient.callerCount == caller - 1
                    {
                        await pace.wait(for: number, of: CutFlow.calls.count(of: traffic.messages))
                        let request = CutFlow.calls.message(number)
                        let reply = try await client.call(
                            CutFlow.calls.method,
                            request,
                            returning: Message.self,
                            timeout: nil
                        )
                        try record.add(CutRecord.Entry(.replies, reply))
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    /// Sends a stream. The server replies with the count.
    private func upload(_ client: SessionClient, _ pace: CutPace) async throws {
        let reply = try await client.clientStream(
            CutFlow.upload.method,
            of: Message.self,
            returning: Message.self,
            send(.upload, pace)
        )
        let count = CutFlow.upload.count(of: traffic.messages)
        guard reply.nonce == UInt64(count) else {
            throw FaultFailure("The server has collected \(reply.nonce) messages of \(count).")
        }
    }

    /// Sends a stream, and receives another one meanwhile.
    private func discuss(_ client: SessionClient, _ record: CutRecord, _ pace: CutPace) async throws {
        try await client.bothWays(
            CutFlow.questions.method,
            sending: Message.self,
            receiving: Message.self,
            send(.questions, pace)
        ) { messages in
            for try await message in messages {
                try await record.processAndAdd(CutRecord.Entry(.answers, message))
            }
        }
    }

    /// Sends the messages of a flow when they are due.
    private func send(
        _ flow: CutFlow,
        _ pace: CutPace
    ) -> @Sendable (SessionStreamWriter<Message>) async throws -> Void {
        { [traffic] writer in
            for number in traffic.numbers(of: flow) {
                await pace.wait(for: number, of: flow.count(of: traffic.messages))
                try await writer.send(flow.message(number))
            }
        }
    }

    /// Reads until the client is closed.
    private func read(
        _ flow: CutFlow,
        _ pushes: SessionPushes<Message>,
        into record: CutRecord,
        whenComplete: () -> Void
    ) async throws {
        let count = flow.count(of: traffic.messages)
        if count == 0 { whenComplete() }
        for try await message in pushes {
            let entry = CutRecord.Entry(flow, message)
            try await record.processAndAdd(entry)
            if entry.number == count { whenComplete() }
        }
    }

    private static func watch(_ client: SessionClient) async {
        for await event in client.sessionEvents {
            if event.missedCount > 0 { FaultEvent.forgotten("missed \(event.missedCount) events", inDoubt: 0).print() }
            switch event.kind {
            case .opened(_, resumed: true): FaultEvent.opened().print()
            case .opened(_, resumed: false): FaultEvent.opened("a new session").print()
            case .lost(let inDoubt): FaultEvent.forgotten("the session was lost", inDoubt: inDoubt.count).print()
            case .refused(let messages):
                FaultEvent.forgotten("the session takes no such messages", inDoubt: messages.count).print()
            case .expired(let messages):
                FaultEvent.forgotten("messages have expired", inDoubt: messages.count).print()
            case .ended(nil, let inDoubt) where inDoubt.isEmpty: break
            case .ended(let error, let inDoubt):
                FaultEvent.forgotten(error?.message ?? "the session has ended", inDoubt: inDoubt.count).print()
            }
        }
    }
}
