import LifelineClientTestSupport
import LifelineCore
import LifelineTestSupport
import LifelineTransport
import TestProtos
import Testing

@testable import Lifeline

/// What a session has to send, where its connection says when to offer it.
@Suite(.timeLimit(.minutes(1))) struct SessionOffersTests {
    @Test func whatIsSentTogetherIsOfferedTogether() async throws {
        try await withSession { harness, client, server in
            server.peer.holdOffers()
            for number in 1...3 { try await client.push("t.T/P", TestMessage(number: number)) }
            let call = Task { try await client.call("t.T/A", TestMessage(number: 4), returning: TestMessage.self) }
            try await until { harness.requestCount == 1 }
            #expect(server.peer.read().isEmpty)
            #expect(server.peer.takeOffers() == 1)
            for number in 1...3 { #expect(try await server.next().number == number) }
            let request = try await server.next()
            #expect(request.number == 4)
            try server.reply(to: request)
            _ = try await call.value
            // And again; the acknowledgement of the response goes with it.
            try await client.push("t.T/P", TestMessage(number: 5))
            #expect(server.peer.takeOffers() == 1)
            #expect(try await server.next().number == 5)
            #expect(try server.acknowledgements.map(\.urgent) == [1])
            #expect(server.peer.takeOffers() == 0)
        }
    }

    @Test func whatIsNotOneOfManyIsOfferedAtOnceBehindTheOthers() async throws {
        try await withSession { _, client, server in
            server.peer.holdOffers()
            server.peer.holdClosing()
            try await client.push("t.T/P", TestMessage(number: 1))
            let closing = Task { await client.close() }
            let push = try await server.next()
            #expect(push.number == 1)
            try server.acknowledge(push)
            #expect(try await server.next().goodbye.code == .closed)
            server.peer.close(nil)
            await closing.value
        }
    }

    /// The connection that was to say when is gone, and so is what it was offered.
    @Test func theNextConnectionWaitsForNoOther() async throws {
        try await withSession { harness, client, server in
            server.peer.holdOffers()
            try await client.push("t.T/P", TestMessage(number: 1))
            let next = try await harness.reconnect(server)
            try await next.welcome(resumed: true)
            #expect(try await next.next().number == 1)
            try await client.push("t.T/P", TestMessage(number: 2))
            #expect(try await next.next().number == 2)
            // Which says so at last.
            #expect(server.peer.takeOffers() == 1)
            #expect(next.peer.read().isEmpty)
        }
    }

    /// Over a connection with room it was as good as sent when it was accepted.
    @Test func whatIsNotWorthSendingLaterIsOfferedBeforeItExpires() async throws {
        try await withSession { _, client, server in
            server.peer.holdOffers()
            try await client.push("t.T/P", TestMessage(number: 1), delivery: .expiring(after: .zero))
            #expect(try await server.next().number == 1)
            #expect(client.statistics.expiredMessageCount == 0)
        }
    }

    /// Nor are messages dropped for room that those have which are about to be sent.
    @Test func whatIsSentAtMostOnceFindsTheRoomOfTheConnection() async throws {
        try await withSession(configure: { $0.limits.maximumKeptMessageCount = 4 }) { _, client, server in
            server.peer.holdOffers()
            for number in 1...9 {
                try await client.push("t.T/P", TestMessage(number: number), delivery: .atMostOnce)
            }
            #expect(server.peer.takeOffers() == 1)
            for number in 1...9 { #expect(try await server.next().number == number) }
            #expect(client.statistics.droppedPushCount == 0)
        }
    }

    @Test func whatWasAcceptedBeforeTheEndIsOfferedBeforeTheGoodbye() async throws {
        try await withSession { harness, client, server in
            server.peer.holdOffers()
            server.peer.holdClosing()
            try await client.push("t.T/P", TestMessage(number: 1))
            harness.client.engine.end(.abandoned)
            #expect(try await server.next().number == 1)
            #expect(try await server.next().goodbye.code == .closed)
            server.peer.close(nil)
        }
    }

    @Test func ofARequestThatIsCancelledBeforeItIsOfferedNothingIsSent() async throws {
        try await withSession { harness, client, server in
            server.peer.holdOffers()
            let call = Task { try await client.call("t.T/A", TestMessage(number: 1), returning: TestMessage.self) }
            try await until { harness.requestCount == 1 }
            call.cancel()
            #expect(await sessionError { try await call.value }?.code == .cancelled)
            try await client.push("t.T/P", TestMessage(number: 2))
            #expect(server.peer.takeOffers() == 1)
            // A blank holds its place.
            #expect(try await server.next().isBlank)
            #expect(try await server.next().number == 2)
        }
    }

    /// It takes no goodbye to close the connection.
    @Test func theConnectionOfASessionThatHasEndedIsClosedWhenItAsks() async throws {
        try await withSession { _, _, server in
            server.peer.holdOffers()
            try server.send(.with { $0.goodbye.code = .violation })
            #expect(server.peer.takeOffers() == 1)
            try await server.peer.waitForClose()
        }
    }

    private func withSession(
        configure: (inout SessionClientConfiguration) -> Void = { _ in },
        _ body: (SessionClientHarness, SessionClient, ScriptedSessionServer) async throws -> Void
    ) async throws {
        let harness = SessionClientHarness(configure: configure)
        try await harness.run { client in
            let server = try await harness.accept()
            try await server.welcome()
            // Before that, what opens the session would wait, too.
            try await until { client.statistics.openingCount == 1 }
            try await body(harness, client, server)
        }
    }
}
