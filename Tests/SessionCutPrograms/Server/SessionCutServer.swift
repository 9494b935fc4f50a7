import ArgumentParser
import FaultSupport
import Lifeline
import LifelineProtos
import SessionCutSupport

/// The server whose connections are cut. It reports its endpoint, and records the messages that its handlers process.
///
/// Commands: see `CutPace`. It shuts down in order at the end of its input.
@main struct SessionCutServer: AsyncParsableCommand {
    @OptionGroup var traffic: CutTraffic
    @Option(help: "The error that the push handler makes with one message: drop, double or swap.") var spoil: Spoil?

    func run() async throws {
        let (askers, found) = AsyncStream.makeStream(of: SessionServerEnd.self)
        let pace = CutPace()
        let service = CutService(
            record: try CutRecord(at: traffic.record),
            messageCount: traffic.messages,
            spoil: spoil,
            pace: pace,
            begin: { found.yield($0) }
        )
        try await withSessionServer(
            listeningOn: .tcp(host: "127.0.0.1", port: 0),
            configuration: configuration,
            services: [service],
            logger: CutTraffic.logger("server")
        ) { server in
            try await FaultEvent.listening(on: server.boundEndpoints[0].description).print()
            try await withThrowingTaskGroup { group in
                group.addTask {
                    for await session in askers { try await push(to: session, pace) }
                }
                group.addTask {
                    try await pace.obey { try await CommandLines.next() }
                    found.finish()
                }
                try await group.waitForAll()
            }
        }
    }

    private var configuration: SessionServerConfiguration {
        var configuration = SessionServerConfiguration()
        configuration.server.connection.heartbeat = CutTraffic.heartbeat
        // The server must not wait long for a truncated hello, because its connection also occupies the relay.
        configuration.helloTimeout = .seconds(2)
        return configuration
    }

    private func push(to session: SessionServerEnd, _ pace: CutPace) async throws {
        try await withThrowingTaskGroup { group in
            for flow in [CutFlow.news, .alerts] {
                group.addTask {
                    for number in traffic.numbers(of: flow) {
                        await pace.wait(for: number, of: flow.count(of: traffic.messages))
                        try await session.push(flow.method, flow.message(number))
                    }
                }
            }
            try await group.waitForAll()
        }
    }
}

private struct CutService: SessionService {
    typealias Message = Sample_Chat_V1_ChatMessage

    let record: CutRecord
    let messageCount: Int
    let spoil: Spoil?
    let pace: CutPace
    let begin: @Sendable (SessionServerEnd) -> Void

    var methods: [SessionMethod] {
        [
            .unary(CutFlow.begin) { (message: Message, context) in
                begin(context.session)
                return message
            },
            push(.reports),
            push(.statuses),
            .unary(CutFlow.calls.method) { (message: Message, _) in
                try await note(message, .calls)
                return message
            },
            .stream(CutFlow.firstStream.method) { (request: Message, stream: SessionStreamWriter<Message>, _) in
                guard let flow = CutFlow(rawValue: request.from) else { throw SessionStatus(.notFound, request.from) }
                let count = flow.count(of: messageCount)
                for number in 0..<count {
                    await pace.wait(for: number + 1, of: count)
                    try await stream.send(flow.message(number + 1))
                }
            },
            .clientStream(CutFlow.upload.method) { (messages: SessionMessages<Message>, _) -> Message in
                var count: UInt64 = 0
                for try await message in messages {
                    try await note(message, .upload)
                    count += 1
                }
                return .with { $0.nonce = count }
            },
            .bothWays(CutFlow.questions.method) {
                (messages: SessionMessages<Message>, stream: SessionStreamWriter<Message>, _) in
                for try await message in messages {
                    try await note(message, .questions)
                    try await stream.send(CutFlow.answers.message(Int(truncatingIfNeeded: message.nonce)))
                }
            },
        ]
    }

    private func push(_ flow: CutFlow) -> SessionMethod {
        .push(flow.method) { (message: Message, _) in try await note(message, flow) }
    }

    private func note(_ message: Message, _ flow: CutFlow) async throws {
        let entry = CutRecord.Entry(flow, message)
        for entry in spoil?.entries(for: entry, of: messageCount) ?? [entry] { try await record.processAndAdd(entry) }
    }
}
