import LifelineClientTestSupport
import LifelineCore
import LifelineTestSupport
import TestProtos
import Testing

@testable import Lifeline

/// Connections that end in order within a frame, as after the kill of a proxy. This breaks no rule: the session
/// continues, and the frame is sent again.
@Suite(.timeLimit(.minutes(1))) struct SessionTruncationTests {
    private typealias Frame = Lifeline_Session_V1_Frame

    private static let push = Frame.with {
        $0.push.method = 1
        $0.push.payload = [UInt8](repeating: 0x2E, count: 200)
    }

    @Test func theServerKeepsTheSession() async throws {
        let bytes = try Self.push.withDelimitedBytes { Array($0) }
        let handled = Notes<String>()
        let method = SessionMethod.push("t.T/Push") { (_: TestMessage, context) in handled.add(context.session.id) }
        let log = TestLog()
        try await withSessionServer(listeningOn: anyPort, services: [TestService(method)], logger: log.logger) {
            server in
            // The cut is within the length, within the head, and before the last byte.
            for length in [1, 2, 5, bytes.count - 1] {
                let client = try await RawSessionClient.connect(to: server)
                let welcome = try await client.hello().welcome
                try await client.name("t.T/Push")
                try await client.socket.write(Array(bytes[..<length]))
                try client.socket.finish()
                #expect(try await client.isEnded())
                let next = try await RawSessionClient.connect(to: server)
                let again = try await next.resume(welcome).welcome
                #expect(again.resumed && again.progress.received == 1, "the name of the method")
            }
            #expect(server.sessions.count == 4)
        }
        #expect(handled.count == 0)
    }

    /// A malformed frame, however, would be sent again and again.
    @Test func theServerEndsTheSessionOfAMalformedFrame() async throws {
        try await withSessionServer(listeningOn: anyPort, services: [], logger: TestLog().logger) { server in
            let client = try await RawSessionClient.connect(to: server)
            _ = try await client.hello()
            try await client.socket.write([UInt8](repeating: 0xFF, count: 5))
            try await until { server.sessions.isEmpty }
        }
    }

    @Test func theClientKeepsTheSession() async throws {
        let listener = try await RawSocket.listen()
        var configuration = SessionClientConfiguration()
        configuration.client.backoff.initialDelay = .milliseconds(1)
        configuration.client.backoff.maximumAttempts = nil
        let bytes = try Self.push.withDelimitedBytes { Array($0) }
        try await withSessionClient(
            to: .tcp(host: "127.0.0.1", port: UInt16(listener.port)),
            configuration: configuration,
            logger: TestLog().logger
        ) { _ in
            var session: [UInt8] = []
            for length in [1, 2, 5, bytes.count - 1] {
                let server = RawSessionClient(socket: try await listener.accept())
                let hello = try await server.next().hello
                #expect(hello.sessionID == session)
                session = [UInt8](repeating: 7, count: 16)
                try await server.send(
                    .with {
                        ($0.welcome.version, $0.welcome.resumed) = (1, !hello.sessionID.isEmpty)
                        ($0.welcome.sessionID, $0.welcome.token) = (session, session)
                        $0.welcome.terms = .test
                    }
                )
                if hello.sessionID.isEmpty { try await server.name("t.T/Push") }
                try await server.socket.write(Array(bytes[..<length]))
                try server.socket.finish()
                #expect(try await server.isEnded())
            }
            let server = RawSessionClient(socket: try await listener.accept())
            #expect(try await server.next().hello.sessionID == session)
            try await server.send(.with { $0.goodbye.code = .closed })
        }
    }
}
