import Foundation
import Lifeline
import LifelineProtos
import LifelineTesting
import SampleServices
import Synchronization
import Testing

private typealias Question = Sample_Room_V1_EchoRequest
private typealias Answer = Sample_Room_V1_EchoReply

/// Real programs in a world.
@Suite(.timeLimit(.minutes(10))) struct WorldTests {
    @Test func timeCostsNothing() async throws {
        try await simulate(seeds: 1...3) { world in
            let (start, date) = (ContinuousClock.now, Date())
            try await Task.sleep(for: .seconds(300))
            try world.expect(ContinuousClock.now - start >= .seconds(300), "the clock goes on")
            try world.expect(Date().timeIntervalSince(date) >= 300, "the date goes on")
            await Task.detached { try? await Task.sleep(for: .seconds(100)) }.value
            try world.expect(world.now >= .seconds(400), "detached tasks sleep as well")
        }
    }

    @Test func messagesPass() async throws {
        try await simulate(seeds: 1...3) { world in
            world.host("server").run {
                try await withServer(
                    listeningOn: Endpoint("tcp://server:7000"),
                    logger: world.logger,
                    receiving: Question.self,
                    sending: Answer.self
                ) { connection in
                    for try await message in connection.messages {
                        try await connection.send(.with { $0.text = message.text })
                    }
                } _: {
                    try await $0.waitUntilShutDown()
                }
            }
            let text = try await world.host("client").run {
                try await withClient(
                    to: Endpoint("tcp://server:7000"),
                    receiving: Answer.self,
                    sending: Question.self,
                    logger: world.logger
                ) { client in
                    try await client.send(.with { $0.text = "hello" })
                    for try await message in client.messages { return message.text }
                    return ""
                }
            }
            .value
            try world.expect(text == "hello", "the message comes back")
        }
    }

    @Test func callsSurviveABadDay() async throws {
        try await simulate(seeds: 1...20) { world in
            let handled = Handled()
            world.host("server").run {
                try await withSessionServer(
                    listeningOn: Endpoint("tcp://server:7000"),
                    services: [handled],
                    logger: world.logger
                ) {
                    try await $0.waitUntilShutDown()
                }
            }
            world.faults = .harsh
            try await world.host("client").run {
                var configuration = SessionClientConfiguration()
                configuration.client.backoff.maximumAttempts = nil
                try await withSessionClient(
                    to: Endpoint("tcp://server:7000"),
                    configuration: configuration,
                    logger: world.logger
                ) { session in
                    for number in 1...50 as ClosedRange<UInt64> {
                        let answer: Answer = try await session.call(
                            "Test/Echo",
                            Question.with { $0.number = number },
                            timeout: nil
                        )
                        try world.expect(answer.number == number, "answers belong to their questions")
                        try await Task.sleep(for: .seconds(1))
                    }
                }
            }
            .value
            try world.expect(handled.numbers == Array(1...50), "each is handled once, in order: \(handled.numbers)")
        }
    }
}

private final class Handled: SessionService {
    private let state = Mutex<[UInt64]>([])
    var numbers: [UInt64] { state.withLock { $0 } }

    var methods: [SessionMethod] {
        [
            .unary("Test/Echo") { (question: Question, _) async throws -> Answer in
                self.state.withLock { $0.append(question.number) }
                try await Task.sleep(for: .milliseconds(5))
                return .with { $0.number = question.number }
            }
        ]
    }
}
