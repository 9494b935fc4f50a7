import Lifeline
import LifelineClientTestSupport
import LifelineCore
import LifelineTestSupport
import LifelineTransport
import Logging
import Metrics

typealias TestClient = Client<TestMessage, TestMessage>

/// A client on a scripted transport, with peers, time and network under the test's control.
struct ClientHarness: Sendable {
    let transport = ScriptedTransport()
    let clock = ManualClock()
    let network: ManualNetwork
    let client: TestClient

    init(
        hasNetwork: Bool = true,
        heartbeat: HeartbeatMessages<TestMessage, TestMessage>? = nil,
        log: TestLog = TestLog(),
        metrics: any MetricsFactory = NOOPMetricsHandler.instance,
        configure: (inout ClientConfiguration) -> Void = { _ in }
    ) {
        var configuration = ClientConfiguration()
        // Predictable delays.
        configuration.backoff.jitter = 0
        configure(&configuration)
        network = ManualNetwork(isAvailableAtFirst: hasNetwork)
        client = Client(
            to: .unix(path: "/scripted"),
            configuration: configuration,
            receiving: TestMessage.self,
            sending: TestMessage.self,
            heartbeat: heartbeat,
            logger: log.logger,
            environment: ClientEnvironment(
                transport: transport,
                clock: clock,
                network: network,
                seed: 1,
                metricsFactory: metrics
            )
        )
    }

    /// Runs the client and `body`, and then closes the client.
    func run<Result>(_ body: nonisolated(nonsending) (TestClient) async throws -> Result) async throws -> Result {
        async let running: Void = client.run()
        let result = try await body(client)
        await client.close()
        try await running
        return result
    }
}

/// The messages in delimited bytes, which hold only whole messages.
func messages(in bytes: [UInt8]) throws -> [TestMessage] {
    struct Collector: FrameSink {
        var messages: [TestMessage] = []

        mutating func receive(frame: UnsafeRawBufferPointer) throws {
            messages.append(try TestMessage(serializedBytes: Array(frame)))
        }
    }
    var collector = Collector()
    var assembler = FrameAssembler(decoder: FrameDecoder(maximumFrameLength: 4 << 20))
    try bytes.withUnsafeBytes { try assembler.receive($0, into: &collector) }
    try assembler.finish()
    return collector.messages
}
