import Lifeline
import LifelineTesting
import LifelineWellKnownTypes
import Testing

private typealias Order = Google_Protobuf_Int64Value
private typealias Receipt = Google_Protobuf_Empty

/// The test in the README, and a check that it finds its bug.
@Suite(.timeLimit(.minutes(10))) struct DoubleChargeTests {
    @Test func theBugIsFound() async throws {
        let failure = await #expect(throws: SimulationFailure.self) { try await nobodyIsChargedTwice() }
        #expect(failure?.failure.description.hasPrefix("each order is charged once: [1, ") == true, "\(failure!)")
        let seed = try #require(failure?.seed)
        #expect(failure?.description.contains("LIFELINE_SEED=\(seed) ") == true)
    }

    // snippet.double-charge
    func nobodyIsChargedTwice() async throws {
        try await simulate(seeds: 1...1000) { world in
            let charged = world.host("bank").database([Int64]())
            world.host("bank").serve {
                let charge = SessionMethod.unary("Bank/Charge") { (order: Order, _) async throws in
                    try await charged.transaction { $0.append(order.value) }
                    return Receipt()
                }
                let (endpoint, bank) = (try Endpoint("tcp://bank:7000"), Bank(methods: [charge]))
                try await withSessionServer(listeningOn: endpoint, services: [bank], logger: world.logger) {
                    try await $0.waitUntilShutDown()
                }
            }
            world.faults = .harsh
            try await world.host("shop").run {
                var configuration = SessionClientConfiguration()
                (configuration.client.backoff.maximumAttempts, configuration.client.backoff.cap) = (nil, .seconds(1))
                try await withSessionClient(to: Endpoint("tcp://bank:7000"), configuration: configuration) { session in
                    for number in 1...20 as ClosedRange<Int64> {
                        try await Task.sleep(for: .seconds(1))
                        let order = Order.with { $0.value = number }
                        var receipt: Receipt?
                        while receipt == nil {
                            do {
                                receipt = try await session.call("Bank/Charge", order, timeout: nil)
                            } catch let error as SessionError where error.code == .sessionLost {
                                // The bug: the bank was killed, and may have charged it.
                            }
                        }
                    }
                }
            }.value
            let orders = charged.content
            try world.expect(orders == Array(1...20), "each order is charged once: \(orders)")
        }
    }
    // snippet.end
}

private struct Bank: SessionService {
    let methods: [SessionMethod]
}
