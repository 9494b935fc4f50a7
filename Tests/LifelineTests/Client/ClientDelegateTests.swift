import Lifeline
import LifelineClientTestSupport
import LifelineCore
import NIOConcurrencyHelpers
import Testing

/// A delegate's calls, and their order.
@Suite(.timeLimit(.minutes(1))) struct ClientDelegateTests {
    enum Call: Equatable {
        case connected
        case disconnected(ClientDisconnection.Initiator, TransitionReason.Code, undelivered: Int?)
        case gaveUp
        case received(Int?)
        case heartbeat(UInt64)
    }

    private actor Recorder: ClientDelegate {
        private(set) var calls: [Call] = []
        private var isBusy = false

        private func record(_ call: Call) async {
            #expect(!isBusy, "two calls at once")
            isBusy = true
            await Task.yield()
            isBusy = false
            calls.append(call)
        }

        func didConnect() async { await record(.connected) }
        func didDisconnect(_ disconnection: ClientDisconnection) async {
            await record(
                .disconnected(
                    disconnection.initiator,
                    disconnection.reason.code,
                    undelivered: disconnection.undeliveredMessageCount
                )
            )
        }
        func didGiveUp(_ reason: TransitionReason) async { await record(.gaveUp) }
        func didReceive(_ message: TestMessage) async { await record(.received(message.number)) }
        func willSendHeartbeat(number: UInt64) async { await record(.heartbeat(number)) }
    }

    private func payload(_ number: Int) throws -> [UInt8] { try TestMessage(number: number).serializedBytes() }

    @Test func comeInOrder() async throws {
        let harness = ClientHarness { $0.backoff.maximumAttempts = 1 }
        let (client, recorder) = (harness.client, Recorder())
        async let running: Void = client.run(delegate: recorder)
        // A message may come before the client knows of its connection.
        let first = try await harness.transport.nextAttempt().accept(unacknowledgedFrameCount: 2)
        _ = try first.send([payload(1), payload(2)])
        try await until { client.state == .ready }
        _ = try first.send([payload(3)])
        harness.clock.advance(by: .seconds(10))
        first.close(nil)
        let second = try await harness.transport.nextAttempt().accept()
        _ = try second.send([payload(4)])
        try await until { client.state == .ready }
        second.close(ConnectionError(code: .protocolViolation, message: "Broken by the test."))
        try await until { client.state == .gaveUp }
        client.reconnect()
        let third = try await harness.transport.nextAttempt().accept(unacknowledgedFrameCount: 0)
        try await until { client.state == .ready }
        _ = try third.send([payload(5)])
        await client.close()
        try await running
        #expect(
            await recorder.calls == [
                .connected, .received(1), .received(2), .received(3),
                .disconnected(.peer, .closedByPeer, undelivered: 2),
                .connected, .received(4),
                .disconnected(.failure, .attemptsUsedUp, undelivered: nil), .gaveUp,
                .connected, .received(5), .disconnected(.user, .drained, undelivered: 0),
            ]
        )
    }

    /// A full inbox keeps the client from connecting, so its messages have to be delivered.
    @Test func continuesAfterMessagesOfAnUnreportedConnection() async throws {
        let harness = ClientHarness { $0.connection.inboundWaterMarks = WaterMarks(low: 1, high: 2) }
        let (client, recorder) = (harness.client, Recorder())
        async let running: Void = client.run(delegate: recorder)
        let unnoticed = try await harness.transport.nextAttempt().acceptUnnoticed()
        _ = try unnoticed.send([payload(1)])
        harness.network.change(to: .unavailable)
        try await until { client.state == .waitingForNetwork }
        harness.network.change(to: .available)
        let peer = try await harness.transport.nextAttempt().accept()
        _ = try peer.send([payload(2)])
        try await untilAsync { await recorder.calls == [.connected, .received(2)] }
        await client.close()
        try await running
    }

    @Test func tellOfHeartbeats() async throws {
        let heartbeat = HeartbeatMessages<TestMessage, TestMessage>(
            ping: { TestMessage(number: Int($0)) },
            answer: { _ in nil },
            isAnswer: { _ in false }
        )
        let harness = ClientHarness(heartbeat: heartbeat)
        let (client, recorder) = (harness.client, Recorder())
        async let running: Void = client.run(delegate: recorder)
        let peer = try await harness.transport.nextAttempt().accept()
        try await until { client.state == .ready }
        try await untilAsync { await recorder.calls == [.connected] }
        #expect(peer.ping(7) != nil)
        try await untilAsync { await recorder.calls == [.connected, .heartbeat(7)] }
        await client.close()
        try await running
    }

    @Test func endWithTheTask() async throws {
        let harness = ClientHarness()
        let (client, recorder) = (harness.client, Recorder())
        let running = Task { try await client.run(delegate: recorder) }
        try await harness.transport.nextAttempt().accept()
        try await until { client.state == .ready }
        running.cancel()
        await #expect(throws: CancellationError.self) { try await running.value }
        #expect(await recorder.calls.last == .disconnected(.user, .cancelled, undelivered: nil))
    }

    @Test func doNotKeepASecondRunWaiting() async throws {
        let harness = ClientHarness()
        try await harness.run { client in
            try await until { client.state == .connecting }
            let error = await connectionError { try await client.run(delegate: Recorder()) }
            #expect(error?.code == .alreadyRun)
        }
    }
}
