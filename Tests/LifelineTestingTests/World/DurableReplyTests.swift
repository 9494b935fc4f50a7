import Lifeline
import LifelineTesting
import Testing

/// Replies to durable calls whose session has ended.
@Suite(.timeLimit(.minutes(10))) struct DurableReplyTests {
    private static let method = "Bank/Pay"
    private static let reply = [UInt8](repeating: 7, count: 5_000)

    /// The server ends the session while a handler runs. Its reply, which is long, waits for the next session
    /// of the client.
    @Test func aReplyAfterTheEndOfItsSessionIsKept() async throws {
        try await simulate(seeds: 1...10) { world in
            let (bank, shop) = (world.host("bank"), world.host("shop"))
            let (ledger, sold) = (bank.database(0), shop.database(0))
            bank.run {
                var configuration = SessionServerConfiguration()
                configuration.store = ledger
                try await withSessionServer(
                    listeningOn: Endpoint("tcp://bank:7000"),
                    configuration: configuration,
                    services: [SlowBank()],
                    logger: world.logger
                ) {
                    try await $0.waitUntilShutDown()
                }
            }
            var configuration = SessionClientConfiguration()
            configuration.store = sold
            let settings = configuration
            try await shop.run {
                let endpoint = try Endpoint("tcp://bank:7000")
                let first = SessionClient(to: endpoint, configuration: settings, logger: world.logger)
                async let running: Void = first.run()
                do throws(SessionError) {
                    let _: RawMessage = try await first.call(Self.method, RawMessage(bytes: [1]), delivery: .durable)
                    world.fail("The session was to end before the reply.")
                } catch {
                    try world.expect(error.code == .messageKept, "the call is kept: \(error)")
                }
                try? await running
                let second = SessionClient(to: endpoint, configuration: settings, logger: world.logger)
                let replies = second.lateReplies(to: Self.method, of: RawMessage.self)
                async let runningAgain: Void = second.run()
                for try await late in replies {
                    try world.expect(try late.result.get().bytes == Self.reply, "the reply is the handler's")
                    break
                }
                await second.close()
                try await runningAgain
            }
            .value
        }
    }

    private struct SlowBank: SessionService {
        var methods: [SessionMethod] {
            [
                .unary(DurableReplyTests.method) {
                    (_: RawMessage, context: SessionContext) async throws -> RawMessage in
                    let end = Task { await context.session.end(gracePeriod: .milliseconds(10)) }
                    // Goes on although it is cancelled, as a handler does that has begun to write.
                    await Task { try? await Task.sleep(for: .milliseconds(500)) }.value
                    await end.value
                    return RawMessage(bytes: DurableReplyTests.reply)
                }
            ]
        }
    }
}
