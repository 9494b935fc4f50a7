import LifelineClientTestSupport
import LifelineTestSupport
import Logging
import NIOConcurrencyHelpers
import Testing

@testable import Lifeline

/// The end of frame connections.
@Suite(.timeLimit(.minutes(2))) struct FrameClosingTests {
    @Test func thePeersEndClosesTheConnectionAfterTheReplies() async throws {
        let (end, log) = (FrameEnd(), TestLog())
        try await withTestFrameServer(log: log) { _ in
            TestHandler.echo(end: end)
        } _: { server in
            let peer = try await RawSocket.connect(toPort: #require(try await server.boundEndpoint.port))
            try await peer.write([2, 1, 2, 0])
            try peer.finish()
            #expect(try await peer.read() == [2, 1, 2, 0], "up to the end of the stream")
            #expect(try await end.wait() == nil)
        }
        #expect(!log.entries.contains { $0.level == .warning })
    }

    @Test func acceptedFramesAreWrittenBeforeTheClose() async throws {
        let end = FrameEnd()
        try await withTestFrameServer { connection in
            TestHandler(end: end) { _, replies in
                try replies.write(TestMessage(number: 1))
                try connection.send(TestMessage(number: 2))
                connection.close()
            }
        } _: { server in
            let peer = try await RawSocket.connect(toPort: #require(try await server.boundEndpoint.port))
            try await peer.write([0])
            let received = try messages(in: try await peer.read())
            #expect(Set(received.map(\.number)) == [1, 2])
            #expect(try await end.wait() == nil)
        }
    }

    @Test func aServerThatShutsDownEndsItsHandlers() async throws {
        let (end, log) = (FrameEnd(), TestLog())
        try await withTestFrameServer(log: log) { _ in
            TestHandler.echo(end: end)
        } _: { server in
            let peer = try await RawSocket.connect(toPort: #require(try await server.boundEndpoint.port))
            try await peer.write([1, 5])
            #expect(try await peer.read(2) == [1, 5])
            async let shutdown: Void = server.shutdown(gracePeriod: .seconds(3_600))
            #expect(try await peer.read().isEmpty)
            try peer.finish()
            await shutdown
        }
        #expect(try await end.wait() == nil)
        #expect(!log.entries.contains { $0.level == .warning })
    }

    /// This side ends first. Frames that arrive are still handled, and a reply is refused, not silently dropped.
    @Test func repliesAreRefusedOnceThisSideHasEnded() async throws {
        var configuration = ServerConfiguration()
        configuration.shutdownOrder = .peersFirst
        let (end, refused) = (FrameEnd(), Event())
        try await withTestFrameServer(configuration: configuration) { _ in
            TestHandler(end: end) { frames, replies in
                for payload in frames {
                    do {
                        try replies.write(payload)
                    } catch let error as ConnectionError where error.code == .sendingFinished {
                        refused.signal()
                    }
                }
            }
        } _: { server in
            let peer = try await RawSocket.connect(toPort: #require(try await server.boundEndpoint.port))
            try await peer.write([0])
            #expect(try await peer.read(1) == [0])
            async let shutdown: Void = server.shutdown(gracePeriod: .seconds(3_600))
            #expect(try await peer.read().isEmpty)
            try await peer.write([0])
            try await refused.wait()
            try peer.finish()
            await shutdown
        }
        #expect(try await end.wait() == nil)
    }

    /// A handler does not have to know that this side may end first.
    @Test func aHandlerThatThrowsARefusalOnIsNotCut() async throws {
        var configuration = ServerConfiguration()
        configuration.shutdownOrder = .peersFirst
        let (end, log, handled) = (FrameEnd(), TestLog(), NIOLockedValueBox(0))
        try await withTestFrameServer(configuration: configuration, log: log) { _ in
            TestHandler(end: end) { frames, replies in
                handled.withLockedValue { $0 += 1 }
                for payload in frames { try replies.write(payload) }
            }
        } _: { server in
            let peer = try await RawSocket.connect(toPort: #require(try await server.boundEndpoint.port))
            try await peer.write([0])
            #expect(try await peer.read(1) == [0])
            async let shutdown: Void = server.shutdown(gracePeriod: .seconds(3_600))
            #expect(try await peer.read().isEmpty)
            for count in 2...3 {
                try await peer.write([0])
                try await until { handled.withLockedValue { $0 == count } }
            }
            try peer.finish()
            await shutdown
        }
        #expect(try await end.wait() == nil)
        #expect(!log.entries.contains { $0.level == .warning })
    }

    @Test func nothingIsLeftOfAClientsConnection() async throws {
        let listener = try await RawSocket.listen()
        weak var transport: AnyObject?
        try await withFrameConnection(to: .tcp(host: "127.0.0.1", port: UInt16(listener.port))) { _ in
            TestHandler.echo()
        } _: { connection in
            transport = connection.transport as AnyObject
            try await listener.accept().finish()
            try await connection.waitUntilEnded()
            #expect(transport != nil)
        }
        try await until { transport == nil }
    }

    @Test func aCancelledClientCutsItsConnection() async throws {
        let listener = try await RawSocket.listen()
        let end = FrameEnd()
        let client = Task {
            try await withFrameConnection(to: .tcp(host: "127.0.0.1", port: UInt16(listener.port))) { _ in
                TestHandler.echo(end: end)
            } _: { connection in
                try await connection.waitUntilEnded()
            }
        }
        let peer = try await listener.accept()
        try await peer.write([0])
        #expect(try await peer.read(1) == [0])
        client.cancel()
        await #expect(throws: CancellationError.self) { try await client.value }
        #expect(try await end.wait()?.code == .closedLocally)
        await #expect(throws: RawSocket.Failure.self) { try await peer.read() }
    }

    @Test func aClientLearnsThatThePeerHasEnded() async throws {
        let listener = try await RawSocket.listen()
        try await withFrameConnection(to: .tcp(host: "127.0.0.1", port: UInt16(listener.port))) { _ in
            TestHandler.echo()
        } _: { connection in
            let peer = try await listener.accept()
            try peer.finish()
            try await connection.waitUntilEnded()
            // This side is still open.
            try connection.send(bytes: [8])
            #expect(try await peer.read(2) == [1, 8])
        }
    }

    @Test func aClientLearnsWhyItsConnectionHasFailed() async throws {
        let listener = try await RawSocket.listen()
        let error = await connectionError {
            try await withFrameConnection(to: .tcp(host: "127.0.0.1", port: UInt16(listener.port))) { _ in
                TestHandler.echo()
            } _: { connection in
                let peer = try await listener.accept()
                try await peer.write([0xFF, 0xFF, 0xFF, 0xFF, 0x0F])
                try await connection.waitUntilEnded()
            }
        }
        #expect(error?.code == .protocolViolation)
        #expect((error?.cause as? FramingError)?.code == .frameTooLarge)
    }

    @Test func aConnectionThatIsNotMadeHasNoHandler() async throws {
        let port = try TestPort.next()
        let error = await connectionError {
            try await withFrameConnection(to: .tcp(host: "127.0.0.1", port: port)) { _ -> TestHandler in
                Issue.record("A handler was made.")
                return .echo()
            } _: { _ in
            }
        }
        #expect(error?.code == .connectFailed)
    }
}
