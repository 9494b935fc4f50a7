import Lifeline
import LifelineClientTestSupport
import Testing

/// A server is notified when sessions begin and end.
@Suite(.timeLimit(.minutes(1))) struct SessionPresenceTests {
    @Test func everySessionBeginsAndEndsOnce() async throws {
        let (notes, note) = AsyncStream.makeStream(of: String.self)
        var configuration = SessionServerConfiguration()
        configuration.whenOpened = { session, isResumed in
            note.yield("\(session.name) \(isResumed ? "goes on" : "begins"), \(session.metadata["from"] ?? "")")
        }
        configuration.whenEnded = { note.yield("\($0.name) ends") }
        configuration.server.shutdownGracePeriod = .zero
        /// The next note; nil after the last one.
        @Sendable func heard() async -> String? {
            for await text in notes { return text }
            return nil
        }
        let anyPort = Endpoint.tcp(host: "127.0.0.1", port: 0)
        try await withSessionServer(listeningOn: anyPort, configuration: configuration, services: []) { server in
            var ada = SessionClientConfiguration()
            ada.name = "Ada"
            ada.metadata = ["from": "London"]
            try await withSessionClient(to: server.boundEndpoints[0], configuration: ada) { session in
                #expect(await heard() == "Ada begins, London")
                var openings = session.sessionEvents.makeAsyncIterator()
                guard case .opened(_, resumed: false) = await openings.next()?.kind else { throw CancellationError() }
                session.reconnect()
                guard case .opened(_, resumed: true) = await openings.next()?.kind else { throw CancellationError() }
            }
            #expect(await heard() == "Ada goes on, London")
            #expect(await heard() == "Ada ends")
            // This session has not ended when the server does.
            let bob = try await SessionClient(to: server.boundEndpoints[0])
            let running = Task { try await bob.run() }
            #expect(await heard() == " begins, ")
            running.cancel()
            await server.shutdown(gracePeriod: .zero)
            #expect(await heard() == " ends")
        }
        note.finish()
        #expect(await heard() == nil, "nothing was told twice")
    }
}
