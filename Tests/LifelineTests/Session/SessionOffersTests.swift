import LifelineClientTestSupport
import LifelineCore
import LifelineTestSupport
import LifelineTransport
import TestProtos
import Testing

@testable import Lifeline

/// A session's frames to send, if its connection decides when to ask for them.
@Suite(.timeLimit(.minutes(1))) struct SessionOffersTests {
    @Test func messagesSentTogetherAreOfferedTogether() async throws {
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
            // The next push is offered with the acknowledgement of the response.
            try await client.push("t.T/P", TestMessage(number: 5))
            #expect(server.peer.takeOffers() == 1)
            #expect(try await server.next().number == 5)
            #expect(try server.acknowledgements.map(\.urgent) == [1])
            #expect(server.peer.takeOffers() == 0)
        }
    }

    @Test func aGoodbyeIsOfferedAtOnceBehindOtherFrames() async throws {
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

    /// The connection that had to ask is gone, and so are the frames that it was offered.
    @Test func theNextConnectionWaitsForNoOther() async throws {
        try await withSession { harness, client, server in
            server.peer.holdOffers()
            try await client.push("t.T/P", TestMessage(number: 1))
            let next = try await harness.reconnect(server)
            try await next.welcome(resumed: true)
            #expect(try await next.next().number == 1)
            try await client.push("t.T/P", TestMessage(number: 2))
            #expect(try await next.next().number == 2)
            // The connection asks at last.
            #expect(server.peer.takeOffers() == 1)
            #expect(next.peer.read().isEmpty)
        }
    }

    /// If the connection has room, the caller may regard an accepted message as sent.
    @Test func expiringMessagesAreOfferedBeforeTheyExpire() async throws {
        try await withSession { _, client, server in
            server.peer.holdOffers()
            try await client.push("t.T/P", TestMessage(number: 1), delivery: .expiring(after: .zero))
            #expect(try await server.next().number == 1)
            #expect(client.statistics.expiredMessageCount == 0)
        }
    }

    /// Messages are not dropped because frames that are about to be sent still take up room.
    @Test func atMostOnceMessagesUseTheRoomOfTheConnection() async throws {
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

    @Test func messagesAcceptedBeforeTheEndAreOfferedBeforeTheGoodbye() async throws {
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

    /// Closing the connection needs no goodbye.
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
            // If offers were held before that, the opening would wait, too.
            try await until { client.statistics.openingCount == 1 }
            try await body(harness, client, server)
        }
    }
}
