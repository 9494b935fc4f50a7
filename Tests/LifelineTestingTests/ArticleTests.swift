import Lifeline
import LifelineTesting
import NIOConcurrencyHelpers
import Testing

/// The code in the article about configurations.
@Suite struct ArticleTests {
    @Test func aServerThatRefusesForAMinute() async throws {
        let printed = NIOLockedValueBox<[String]>([])
        @Sendable func print(_ value: Any) { printed.withLockedValue { $0.append("\(value)") } }
        // snippet.refusing-server
        try await simulate(seeds: 1...1) { world in
            let server = world.host("server")
            let client = world.host("phone").run {
                var configuration = ClientConfiguration()
                configuration.backoff.maximumAttempts = nil
                return try await withClient(
                    to: Endpoint("tcp://server:7000"),
                    configuration: configuration,
                    receiving: RawMessage.self,
                    sending: RawMessage.self,
                    logger: world.logger
                ) { client in
                    try await client.send(RawMessage(bytes: [1, 2, 3]), policy: .wait(timeout: .seconds(120)))
                    return client.history
                }
            }
            // Nothing listens for a minute.
            try await Task.sleep(for: .seconds(60))
            server.run {
                try await withServer(
                    listeningOn: Endpoint("tcp://server:7000"),
                    logger: world.logger,
                    receiving: RawMessage.self,
                    sending: RawMessage.self
                ) { connection in
                    for try await message in connection.messages { print(message.bytes) }  // [1, 2, 3]
                } _: {
                    try await $0.waitUntilShutDown()
                }
            }
            let history = try await client.value
            // 8: after 1, 2, 4, 8, 16, 30 and 30 s, each ±20 %
            print(history.count { $0.transition.to == .connecting })
            for event in history { print(event) }  // each step, with its reason
        }
        // snippet.end
        let lines = printed.withLockedValue { $0 }
        #expect(lines.contains("[1, 2, 3]") && lines.contains("8"), "as the comments say")
        #expect(lines.last { $0.contains("→") }?.contains("connecting → ready: connected, attempt 8") == true)
    }
}
