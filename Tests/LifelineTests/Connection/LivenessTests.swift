import Glibc
import Lifeline
import LifelineClientTestSupport
import LifelineTestSupport
import NIOConcurrencyHelpers
import Testing

/// Peers on real sockets that fall silent, do not read, or ping and answer. Times are as short as possible, because the
/// machines that decide have their own tests with a manual clock.
@Suite(.timeLimit(.minutes(2))) struct LivenessTests {
    // MARK: Heartbeat

    @Test func heartbeatsKeepAnIdleConnectionAndAreNotSeen() async throws {
        let asked = Event()
        // Both sides share one count, because the first ping makes one of the other side unnecessary.
        let heartbeat = HeartbeatMessages<TestMessage, TestMessage>.test(answering: 10, asked)
        var configuration = ServerConfiguration()
        configuration.connection = .impatient
        // The answers arrive in time even on a busy machine.
        configuration.connection.heartbeat.timeout = .seconds(60)
        configuration.connection.idleTimeout = .seconds(60)
        try await withTestServer(configuration: configuration, heartbeat: heartbeat) { connection in
            try await echo(connection)
        } _: { server in
            try await withTestConnection(
                to: server.boundEndpoint,
                configuration: configuration.connection,
                heartbeat: heartbeat
            ) { connection in
                try await asked.wait()
                let reply = try await roundTrip(TestMessage(number: 7), on: connection)
                #expect(reply?.number == 7, "the first message that either user sees")
            }
        }
    }

    @Test func aServerGivesASilentPeerUp() async throws {
        var configuration = ServerConfiguration()
        configuration.connection = .impatient
        let code = try await codeOfServer(configuration: configuration, heartbeat: .test()) { peer in
            let pings = try await peer.read(3 * pingLength)
            #expect(try pings == (1...3).flatMap { try TestMessage("ping \($0)".utf8).delimitedBytes })
            let error = await #expect(throws: RawSocket.Failure.self) { try await peer.read() }
            #expect(error?.code == ECONNRESET, "no regular end")
        }
        #expect(code == .heartbeatTimeout)
    }

    @Test func aClientGivesASilentServerUp() async throws {
        let listener = try await RawSocket.listen()
        let error = await connectionError {
            try await withTestConnection(
                to: .tcp(host: "127.0.0.1", port: UInt16(listener.port)),
                configuration: .impatient,
                heartbeat: .test()
            ) { connection in
                for try await _ in connection.messages { Issue.record("nobody sends") }
            }
        }
        #expect(error?.code == .heartbeatTimeout)
    }

    @Test func pingsAmongMessagesAreAnsweredInOrder() async throws {
        let received = NIOLockedValueBox<[Int?]>([])
        try await withTestServer(heartbeat: .test()) { connection in
            for try await message in connection.messages { received.withLockedValue { $0.append(message.number) } }
        } _: { server in
            let peer = try await RawSocket.connect(toPort: server.boundEndpoint.port!)
            let texts = ["1", "ping 1", "2", "pong 8", "ping 2", "ping 3", "3", "pong 9"]
            try await peer.write(texts.flatMap { try TestMessage($0.utf8).delimitedBytes })
            let answers = try await peer.read(3 * pingLength)
            #expect(try answers == (1...3).flatMap { try TestMessage("pong \($0)".utf8).delimitedBytes })
            try peer.finish()
            #expect(try await peer.read().isEmpty)
            await server.shutdown(gracePeriod: .seconds(60))
        }
        #expect(received.withLockedValue { $0 } == [1, 2, 3])
    }

    /// The server stops reading from the peer, so that answers do not fill memory, and gives it up because it does not
    /// read them.
    @Test func aPeerThatAsksWithoutEndAndDoesNotReadIsHeldUp() async throws {
        var configuration = ServerConfiguration()
        configuration.connection.writeTimeout = .milliseconds(300)
        let code = try await codeOfServer(configuration: configuration, heartbeat: .test()) { peer in
            let ping = try TestMessage("ping 1".utf8).delimitedBytes
            let pings = Array(repeatElement(ping, count: 10_000).joined())
            var byteCount = 0
            await #expect(throws: RawSocket.Failure.self) {
                while byteCount < 1 << 30 {
                    try await peer.write(pings)
                    byteCount += pings.count
                }
            }
            #expect(byteCount < 64 << 20, "little more than the kernel's buffers")
        }
        #expect(code == .writeTimeout)
    }

    @Test func anAnswerThatCannotBeSentFailsTheConnection() async throws {
        var heartbeat = HeartbeatMessages<TestMessage, TestMessage>.test()
        heartbeat.answer = { _ in TestMessage([UInt8](repeating: 0, count: 100)) }
        var configuration = ServerConfiguration()
        configuration.connection.maximumFrameLength = 50
        let code = try await codeOfServer(configuration: configuration, heartbeat: heartbeat) { peer in
            try await peer.write([0x00])
            _ = try? await peer.read()
        }
        #expect(code == .messageRefused)
    }

    // MARK: Timeouts and limits

    @Test func aServerGivesAnIdlePeerUp() async throws {
        var configuration = ServerConfiguration()
        configuration.connection.idleTimeout = .milliseconds(50)
        let code = try await codeOfServer(configuration: configuration) { peer in
            let error = await #expect(throws: RawSocket.Failure.self) { try await peer.read() }
            #expect(error?.code == ECONNRESET)
        }
        #expect(code == .idleTimeout)
    }

    @Test func aServerGivesAPeerUpThatDoesNotRead() async throws {
        var configuration = ServerConfiguration()
        configuration.connection.writeTimeout = .milliseconds(200)
        let ended = Event()
        let code = try await codeOfServer(configuration: configuration, ended, sendingWithoutEnd: true) { peer in
            try await ended.wait()
            withExtendedLifetime(peer) {}
        }
        #expect(code == .writeTimeout)
    }

    @Test func aServerCutsAPeerThatAnswersNothing() async throws {
        var configuration = ServerConfiguration()
        configuration.connection.unansweredByteLimit = 1 << 20
        let code = try await codeOfServer(configuration: configuration, sendingWithoutEnd: true) { peer in
            // The peer reads everything.
            _ = try? await peer.read()
        }
        #expect(code == .tooManyUnansweredBytes)
    }

    // MARK: The kernel's checks

    @Test func theKernelGivesAPeerUpThatTakesNothing() async throws {
        var configuration = ServerConfiguration()
        configuration.connection.writeTimeout = nil
        configuration.connection.keepalive?.unacknowledgedTimeout = .milliseconds(300)
        let ended = Event()
        let code = try await codeOfServer(configuration: configuration, ended, sendingWithoutEnd: true) { peer in
            try await ended.wait()
            withExtendedLifetime(peer) {}
        }
        #expect(code == .peerUnresponsive)
    }

    @Test func keepaliveIsSetOnBothSides() async throws {
        var configuration = ServerConfiguration()
        configuration.connection.keepalive?.idle = .seconds(41)
        configuration.connection.keepalive?.interval = .seconds(11)
        configuration.connection.keepalive?.probes = 7
        configuration.connection.keepalive?.unacknowledgedTimeout = .milliseconds(51_234)
        let serverSide = NIOLockedValueBox<TCPWatch?>(nil)
        try await withTestServer(configuration: configuration) { connection in
            serverSide.withLockedValue { $0 = connection.watch }
            try await echo(connection)
        } _: { server in
            for (keepalive, heartbeat, expected) in [
                (KeepaliveConfiguration(), nil, [1, 30, 10, 3, 60_000]),
                (KeepaliveConfiguration(), .test(), [1, 60, 10, 3, 90_000]),
                (nil, nil, [0, nil, nil, nil, 0]),
            ] as [(KeepaliveConfiguration?, HeartbeatMessages<TestMessage, TestMessage>?, [CInt?])] {
                var client = ConnectionConfiguration()
                client.keepalive = keepalive
                try await withTestConnection(to: server.boundEndpoint, configuration: client, heartbeat: heartbeat) {
                    _ = try await roundTrip(TestMessage(number: 1), on: $0)
                    let watch = try #require($0.watch)
                    for (value, expected) in zip(watch.values, expected) {
                        #expect(expected == nil || value == expected, "\(watch.values)")
                    }
                    #expect(serverSide.withLockedValue { $0?.values } == [1, 41, 11, 7, 51_234])
                    #expect(watch.sendsAtOnce && serverSide.withLockedValue { $0?.sendsAtOnce } == true)
                }
            }
        }
    }
}

extension LivenessTests {
    /// With a heartbeat, the kernel retransmits at least four times in the time that an answer may take.
    @Test func lostSegmentsAreSentAgainInTimeOnBothSides() async throws {
        var configuration = ServerConfiguration()
        configuration.connection.heartbeat.timeout = .seconds(12)
        let serverSide = NIOLockedValueBox<TCPWatch?>(nil)
        try await withTestServer(configuration: configuration, heartbeat: .test()) { connection in
            serverSide.withLockedValue { $0 = connection.watch }
            try await echo(connection)
        } _: { server in
            for (heartbeat, milliseconds) in [(nil, 120_000), (.test(), 2500)]
                as [(HeartbeatMessages<TestMessage, TestMessage>?, CInt)]
            {
                try await withTestConnection(to: server.boundEndpoint, heartbeat: heartbeat) {
                    _ = try await roundTrip(TestMessage(number: 1), on: $0)
                    for (watch, milliseconds) in [($0.watch, milliseconds), (serverSide.withLockedValue { $0 }, 3000)] {
                        let retransmission = try #require(watch?.retransmission)
                        // Before Linux 6.15, only the older option exists.
                        let older: [CInt] = [-1, milliseconds < 120_000 ? 1 : 0]
                        #expect([[milliseconds, 0], older].contains(retransmission))
                    }
                }
            }
        }
    }
}

extension Connection {
    /// The kernel's settings for watching its peer.
    fileprivate var watch: TCPWatch? {
        TCPWatch(localPort: localEndpoint.port ?? 0, remotePort: remoteEndpoint.port ?? 0)
    }
}

/// Length of a delimited ping or pong with a number of one digit.
private let pingLength = 9

extension ConnectionConfiguration {
    /// With a heartbeat that gives a silent peer up after 80 ms.
    fileprivate static var impatient: ConnectionConfiguration {
        var configuration = ConnectionConfiguration()
        configuration.heartbeat.interval = .milliseconds(20)
        configuration.heartbeat.timeout = .milliseconds(20)
        return configuration
    }
}

extension HeartbeatMessages<TestMessage, TestMessage> {
    /// "ping 1" is answered by "pong 1". Signals when it has answered `count` pings.
    static func test(answering count: Int = .max, _ answered: Event = Event()) -> HeartbeatMessages {
        let answers = NIOLockedValueBox(0)
        return HeartbeatMessages(
            ping: { TestMessage("ping \($0)".utf8) },
            answer: { message in
                let text = String(decoding: message.payload, as: UTF8.self)
                guard text.hasPrefix("ping ") else { return nil }
                answers.withLockedValue { $0 += 1 }
                if answers.withLockedValue({ $0 == count }) { answered.signal() }
                return TestMessage("pong \(text.dropFirst(5))".utf8)
            },
            isAnswer: { message in String(decoding: message.payload, as: UTF8.self).hasPrefix("pong ") }
        )
    }
}

/// Runs a server for one raw peer, which `body` plays. Returns the error code of the connection's handler.
private func codeOfServer(
    configuration: ServerConfiguration,
    heartbeat: HeartbeatMessages<TestMessage, TestMessage>? = nil,
    _ ended: Event = Event(),
    sendingWithoutEnd: Bool = false,
    _ body: (RawSocket) async throws -> Void
) async throws -> ConnectionError.Code? {
    let failure = NIOLockedValueBox<ConnectionError?>(nil)
    try await withTestServer(configuration: configuration, heartbeat: heartbeat) { connection in
        defer { ended.signal() }
        do {
            let large = TestMessage([UInt8](repeating: 0, count: 10_000))
            while sendingWithoutEnd { try await connection.send(large) }
            for try await _ in connection.messages {}
        } catch {
            failure.withLockedValue { $0 = error as? ConnectionError }
        }
    } _: { server in
        try await body(try await RawSocket.connect(toPort: server.boundEndpoint.port!))
        await server.shutdown(gracePeriod: .seconds(60))
    }
    return failure.withLockedValue { $0?.code }
}
