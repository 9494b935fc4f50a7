import Lifeline
import LifelineClientTestSupport
import LifelineTestSupport
import Synchronization
import Testing

/// The end of TLS connections, and back-pressure on them.
@Suite(.timeLimit(.minutes(2))) struct TLSClosingTests {
    private let scene: TLSScene

    init() throws { scene = try TLSScene() }

    // MARK: Half-close

    @Test func ourEndReachesThePeerAndThePeerStillTalks() async throws {
        let counted = Event()
        try await scene.withServer { connection in
            var count = 0
            for try await _ in connection.messages { count += 1 }
            counted.signal()
            try await connection.send(TestMessage(number: count))
        } _: { server in
            try await scene.withConnection(to: server.boundEndpoint) { connection in
                for number in 0..<3 { try await connection.send(TestMessage(number: number)) }
                try await connection.finishSending()
                try await counted.wait()
                var messages = connection.messages.makeAsyncIterator()
                #expect(try await messages.next()?.number == 3)
                #expect(try await messages.next() == nil)
            }
        }
    }

    @Test func thePeersEndLeavesOurSideOpen() async throws {
        let payload = [UInt8](repeating: 7, count: 1 << 20)
        let received = Atomic(0)
        let (log, done) = (TestLog(), Event())
        try await scene.withServer(log: log) { connection in
            try await connection.finishSending()
            for try await message in connection.messages where message.payload == payload {
                received.add(1, ordering: .relaxed)
            }
            done.signal()
        } _: { server in
            try await scene.withConnection(to: server.boundEndpoint) { connection in
                var messages = connection.messages.makeAsyncIterator()
                #expect(try await messages.next() == nil)
                for _ in 0..<16 { try await connection.send(TestMessage(payload)) }
                try await connection.finishSending()
            }
            try await done.wait()
        }
        #expect(received.load(ordering: .relaxed) == 16)
        #expect(log.entries.isEmpty, "\(log.entries)")
    }

    @Test func acceptedMessagesArriveAfterTheClosureHasEnded() async throws {
        let count = Atomic(0)
        try await scene.withServer { connection in
            for try await _ in connection.messages { count.add(1, ordering: .relaxed) }
        } _: { server in
            for _ in 0..<20 {
                try await scene.withConnection(to: server.boundEndpoint) { connection in
                    for _ in 0..<100 { try await connection.send(TestMessage(repeatElement(1, count: 1000))) }
                }
            }
            try await until { count.load(ordering: .relaxed) == 2000 }
        }
        #expect(count.load(ordering: .relaxed) == 2000)
    }

    // MARK: Cuts

    @Test(arguments: [true, false]) func anEndThatNobodyAnnouncedIsNone(isClient: Bool) async throws {
        let failure = KeptError()
        try await scene.withServer { connection in
            do { try await echo(connection) } catch {
                failure.set(error)
                throw error
            }
        } _: { server in
            let relay = try await Relay(to: server.boundEndpoint)
            let (cut, cutDone) = (Event(), Event())
            async let relaying: Void = relay.run { client, server in
                try await cut.wait()
                // The end of the TCP stream, without TLS's close message.
                try (isClient ? client : server).finish()
                cutDone.signal()
            }
            let error = await connectionError {
                try await scene.withConnection(to: relay.endpoint) { connection in
                    var messages = connection.messages.makeAsyncIterator()
                    try await connection.send(TestMessage(number: 1))
                    #expect(try await messages.next()?.number == 1)
                    cut.signal()
                    try await cutDone.wait()
                    return try await messages.next()
                }
            }
            try await relaying
            if isClient {
                #expect(error?.code == .truncated)
            } else {
                #expect(error != nil)
            }
        }
        #expect(isClient || (failure.error as? ConnectionError)?.code == .truncated)
    }

    /// A cut must not look like a regular end: TLS must not send its close message.
    @Test func throwingAborts() async throws {
        struct Stop: Error {}
        let ended = KeptError()
        let done = Event()
        try await scene.withServer { connection in
            defer { done.signal() }
            do { try await echo(connection) } catch { ended.set(error) }
        } _: { server in
            await #expect(throws: Stop.self) {
                try await scene.withConnection(to: server.boundEndpoint) { connection in
                    let reply = try await roundTrip(TestMessage(number: 1), on: connection)
                    #expect(reply?.number == 1)
                    throw Stop()
                }
            }
            try await done.wait()
        }
        #expect((ended.error as? ConnectionError)?.code == .closedByPeer)
    }

    @Test func aServersHandlerThatThrowsAborts() async throws {
        struct Stop: Error {}
        try await scene.withServer { _ in
            throw Stop()
        } _: { server in
            let error = await connectionError {
                try await scene.withConnection(to: server.boundEndpoint) { connection in
                    for try await _ in connection.messages {}
                }
            }
            // The reset can arrive before the client's handshake is done.
            #expect(error?.code == .closedByPeer || error?.code == .connectFailed)
        }
    }

    @Test func aDamagedRecordIsNoRecord() async throws {
        try await scene.withServer { server in
            let relay = try await Relay(to: server.boundEndpoint)
            let damage = Event()
            async let relaying: Void = relay.run { client, _ in
                try await damage.wait()
                try await client.write([0x17, 3, 3, 0, 32] + [UInt8](repeating: 9, count: 32))
            }
            let error = await connectionError {
                try await scene.withConnection(to: relay.endpoint) { connection in
                    let reply = try await roundTrip(TestMessage(number: 1), on: connection)
                    #expect(reply?.number == 1)
                    damage.signal()
                    var messages = connection.messages.makeAsyncIterator()
                    return try await messages.next()
                }
            }
            #expect(error?.code == .protocolViolation)
            try await relaying
        }
    }

    // MARK: Back-pressure

    /// 128 MiB, many times what the queues, TLS and the kernel hold.
    private static let message = TestMessage(repeatElement(0x5A, count: 64 << 10))
    private static let count = 2048
    private static let mostThatCanBeHeld = 16 << 20

    @Test func aConsumerThatDoesNotIterateHoldsThePeerUp() async throws {
        let consumer = LateConsumer(message: Self.message, count: Self.count, mostThatCanBeHeld: Self.mostThatCanBeHeld)
        try await scene.withServer {
            try await consumer.consume($0)
        } _: { server in
            try await scene.withConnection(to: server.boundEndpoint) { try await consumer.checkSender($0) }
        }
        #expect(consumer.receivedCount == Self.count)
    }
}

/// An error that another task stores.
private final class KeptError: Sendable {
    private let kept = Mutex<(any Error)?>(nil)

    var error: (any Error)? { kept.withLock { $0 } }

    func set(_ error: any Error) { kept.withLock { $0 = error } }
}
