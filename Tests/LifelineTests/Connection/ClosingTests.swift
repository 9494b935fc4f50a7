import Lifeline
import LifelineClientTestSupport
import LifelineTestSupport
import LifelineWellKnownTypes
import Testing

/// The end of connections, seen from this side and from a raw peer.
@Suite(.timeLimit(.minutes(2))) struct ClosingTests {
    // MARK: Half-close

    @Test func ourEndReachesThePeerAndThePeerStillTalks() async throws {
        let listener = try await RawSocket.listen()
        try await withTestConnection(to: .tcp(host: "127.0.0.1", port: UInt16(listener.port))) { connection in
            let peer = try await listener.accept()
            try await connection.send(TestMessage(number: 1))
            try await connection.finishSending()
            #expect(try await peer.read() == TestMessage(number: 1).delimitedBytes, "up to the end of the stream")
            try await peer.write(TestMessage(number: 2).delimitedBytes)
            var messages = connection.messages.makeAsyncIterator()
            #expect(try await messages.next()?.number == 2)
            try peer.finish()
            #expect(try await messages.next() == nil)
            #expect(try await messages.next() == nil, "the end stays")
        }
    }

    @Test func thePeersEndLeavesOurSideOpen() async throws {
        try await withTestServer { connection in
            var count = 0
            for try await _ in connection.messages { count += 1 }
            try await connection.send(TestMessage(number: count))
        } _: { server in
            let peer = try await RawSocket.connect(toPort: server.boundEndpoint.port!)
            try await peer.write(TestMessage(number: 1).delimitedBytes + [0, 0])
            try peer.finish()
            #expect(try await peer.read() == TestMessage(number: 3).delimitedBytes)
        }
    }

    @Test func sendingAfterTheEndIsRefused() async throws {
        try await withTestServer(handler: echo) { server in
            try await withTestConnection(to: server.boundEndpoint) { connection in
                try await connection.finishSending()
                try await connection.finishSending()
                #expect(await connectionError { try await connection.send(TestMessage()) }?.code == .sendingFinished)
            }
        }
    }

    // MARK: Graceful close

    @Test func acceptedMessagesArriveAfterTheClosureHasEnded() async throws {
        let listener = try await RawSocket.listen()
        let messages = (0..<2000).map { TestMessage(repeatElement(UInt8(truncatingIfNeeded: $0), count: 1000)) }
        var configuration = ConnectionConfiguration()
        configuration.outboundWaterMarks = WaterMarks(low: 0, high: 8 << 20)
        // The peer has time to read, even on a slow machine.
        configuration.closeTimeout = .seconds(100)
        // The peer reads only after everything has been accepted, and ends its side after that.
        async let received: [UInt8] = {
            let peer = try await listener.accept()
            return try await peer.read()
        }()
        try await withTestConnection(
            to: .tcp(host: "127.0.0.1", port: UInt16(listener.port)),
            configuration: configuration
        ) { connection in
            try await connection.send(contentsOf: messages)
        }
        #expect(try await received == messages.flatMap { try $0.delimitedBytes })
    }

    /// A socket that is closed or not read answers the peer's bytes with a reset. The reset destroys the bytes that are
    /// still on their way to the peer.
    @Test func acceptedMessagesArriveWhileThePeerKeepsSending() async throws {
        let listener = try await RawSocket.listen()
        let message = TestMessage(repeatElement(2, count: 1000))
        let count = 3000
        var configuration = ConnectionConfiguration()
        configuration.outboundWaterMarks = WaterMarks(low: 0, high: 8 << 20)
        // The peer has time to read, even on a slow machine.
        configuration.closeTimeout = .seconds(100)
        async let received: Int = {
            let peer = try await listener.accept()
            let flood = try (0..<60).flatMap { _ in try message.delimitedBytes }
            var received = 0
            while true {
                try await peer.write(flood)
                let bytes = try await peer.read(flood.count)
                received += bytes.count
                if bytes.count < flood.count { return received }
            }
        }()
        try await withTestConnection(
            to: .tcp(host: "127.0.0.1", port: UInt16(listener.port)),
            configuration: configuration
        ) { connection in
            // The last flood is read up to the end of the stream: it has one message less than the others.
            try await connection.send(contentsOf: repeatElement(message, count: count - 1))
        }
        let length = try message.delimitedBytes.count
        #expect(try await received == (count - 1) * length)
    }

    @Test func aPeerThatNeverEndsIsLeftAfterTheTimeout() async throws {
        let listener = try await RawSocket.listen()
        var configuration = ConnectionConfiguration()
        configuration.closeTimeout = .milliseconds(20)
        let peer = try await withTestConnection(
            to: .tcp(host: "127.0.0.1", port: UInt16(listener.port)),
            configuration: configuration
        ) { connection in
            try await connection.send(TestMessage(number: 1))
            return try await listener.accept()
        }
        #expect(try await peer.read() == TestMessage(number: 1).delimitedBytes)
    }

    @Test func bytesThatCouldNotBeWrittenAreReported() async throws {
        let listener = try await RawSocket.listen()
        var configuration = ConnectionConfiguration()
        configuration.closeTimeout = .milliseconds(20)
        configuration.maximumFrameLength = 64 << 20
        let error = await connectionError {
            try await withTestConnection(
                to: .tcp(host: "127.0.0.1", port: UInt16(listener.port)),
                configuration: configuration
            ) { connection in
                // More than the kernel accepts for a peer that does not read.
                try await connection.send(TestMessage(repeatElement(0, count: 32 << 20)))
            }
        }
        #expect(error?.code == .closedLocally)
        #expect(error?.message.contains("bytes that send had accepted") == true)
    }

    // MARK: Abort and failure

    @Test func aResetAfterThePeersEnd() async throws {
        let listener = try await RawSocket.listen()
        let error = await connectionError {
            try await withTestConnection(to: .tcp(host: "127.0.0.1", port: UInt16(listener.port))) { connection in
                let peer = try await listener.accept()
                try peer.finish()
                for try await _ in connection.messages {}
                try peer.reset()
                while true { try await connection.send(TestMessage(number: 1)) }
            }
        }
        #expect(error?.code == .closedByPeer)
    }

    @Test func throwingAborts() async throws {
        struct Stop: Error {}
        let listener = try await RawSocket.listen()
        var accepted: RawSocket?
        do {
            try await withTestConnection(to: .tcp(host: "127.0.0.1", port: UInt16(listener.port))) { connection in
                accepted = try await listener.accept()
                try await connection.send(TestMessage(number: 1))
                throw Stop()
            }
        } catch {
            #expect(error is Stop)
        }
        let peer = try #require(accepted)
        #expect(await readFailure(peer) == "recv", "a reset, not an end of the stream")
    }

    @Test func cancellationAborts() async throws {
        let listener = try await RawSocket.listen()
        let endpoint = Endpoint.tcp(host: "127.0.0.1", port: UInt16(listener.port))
        let connected = Event()
        let task = Task {
            try await withTestConnection(to: endpoint) { connection in
                connected.signal()
                for try await _ in connection.messages {}
            }
        }
        let peer = try await listener.accept()
        try await connected.wait()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(await readFailure(peer) == "recv")
    }

    @Test func cancellationDuringAGracefulCloseAborts() async throws {
        let listener = try await RawSocket.listen()
        let endpoint = Endpoint.tcp(host: "127.0.0.1", port: UInt16(listener.port))
        var configuration = ConnectionConfiguration()
        configuration.closeTimeout = .seconds(600)
        let task = Task { [configuration] in
            try await withTestConnection(to: endpoint, configuration: configuration) { _ in }
        }
        let peer = try await listener.accept()
        #expect(try await peer.read() == [], "the client has ended its side and waits for ours")
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test(arguments: [[0x05, 1, 2], [0x80], [0x80, 0x80, 0x80, 0x80]] as [[UInt8]])
    func endInsideAFrameThrowsAfterTheMessagesBefore(tail: [UInt8]) async throws {
        let error = try await failure(after: { peer in
            try await peer.write(TestMessage(number: 1).delimitedBytes + tail)
            try peer.finish()
        })
        #expect(error?.code == .protocolViolation)
        #expect((error?.cause as? FramingError)?.code == .truncatedFrame)
    }

    @Test func resetThrowsClosedByPeer() async throws {
        let error = try await failure(after: { peer in
            try await peer.write(TestMessage(number: 1).delimitedBytes)
            try peer.resetWhenReleased()
        })
        #expect(error?.code == .closedByPeer)
    }

    @Test func oversizedFrameThrows() async throws {
        let error = try await failure(after: { peer in
            try await peer.write(TestMessage(number: 1).delimitedBytes + [0xFF, 0xFF, 0xFF, 0xFF, 0x0F])
        })
        #expect((error?.cause as? FramingError)?.code == .frameTooLarge)
    }

    @Test func undecodableMessageThrows() async throws {
        let error = try await failure(after: { peer in
            try await peer.write(TestMessage(number: 1).delimitedBytes + [0x01, 0xFF])
        })
        #expect(error?.code == .protocolViolation)
        #expect(error?.cause is MessageError)
    }

    @Test func aFailureThatTheClosureIgnoresIsThrownAtItsEnd() async throws {
        let listener = try await RawSocket.listen()
        let error = await connectionError {
            try await withTestConnection(to: .tcp(host: "127.0.0.1", port: UInt16(listener.port))) { connection in
                try await listener.accept().write([0x01, 0xFF])
                do { for try await _ in connection.messages {} } catch {}
            }
        }
        #expect(error?.code == .protocolViolation)
    }

    // MARK: -

    /// Returns the error that a client's iteration throws when its peer does `action` after at most one good message.
    private func failure(after action: (RawSocket) async throws -> Void) async throws -> ConnectionError? {
        let listener = try await RawSocket.listen()
        var failure: ConnectionError?
        let ended = await connectionError {
            try await withTestConnection(to: .tcp(host: "127.0.0.1", port: UInt16(listener.port))) { connection in
                try await action(listener.accept())
                var messages = connection.messages.makeAsyncIterator()
                #expect(try await messages.next()?.number == 1, "what came before is delivered")
                failure = await connectionError { try await messages.next() }
                if let failure { throw failure }
            }
        }
        #expect(ended?.code == failure?.code)
        return failure
    }

    /// Returns the name of the call that fails while the peer reads to the end; nil if none fails.
    private func readFailure(_ peer: RawSocket) async -> String? {
        do {
            _ = try await peer.read()
            return nil
        } catch {
            return (error as? RawSocket.Failure)?.call
        }
    }
}
