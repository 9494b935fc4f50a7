import Lifeline
import LifelineProtos
import LifelineTestSupport
import LifelineWellKnownTypes
import SampleServices
import Testing

@testable import LifelineCLI

/// The room of `lifeline serve`, without a process.
@Suite(.timeLimit(.minutes(3))) struct RoomTests {
    /// One visitor reads no news. More is said than is kept for it.
    @Test func aSlowVisitorHoldsNobodyUp() async throws {
        let room = silentRoom
        var configuration = SessionServerConfiguration()
        configuration.limits.maximumKeptByteCount = 64 << 10
        configuration.server.shutdownGracePeriod = .zero
        configuration.whenOpened = { session, isResumed in
            if !isResumed { room.joined(session) }
        }
        configuration.whenEnded = { room.left($0) }
        let anyPort = Endpoint.tcp(host: "127.0.0.1", port: 0)
        try await withSessionServer(listeningOn: anyPort, configuration: configuration, services: [room]) { server in
            var slow = SessionClientConfiguration()
            slow.limits.maximumUnprocessedByteCount = 64 << 10
            slow.closeTimeout = .zero
            try await withSessionClient(to: server.boundEndpoints[0], configuration: slow) { session in
                let slow = Sample_Room_V1_RoomClient(session)
                _ = try await slow.echo(.init())
                try await withSessionClient(to: server.boundEndpoints[0]) { session in
                    let quick = Sample_Room_V1_RoomClient(session)
                    var news = quick.news.makeAsyncIterator()
                    let text = String(repeating: "x", count: 4096)
                    for number in 1...1000 as ClosedRange<UInt64> {
                        let reply = try await quick.say(.with { $0.text = text })
                        #expect(reply.number == number && reply.listenerCount == 2)
                        #expect(try await news.next()?.number == number)
                    }
                }
                // It misses the oldest news that did not fit.
                var numbers: [UInt64] = []
                for try await item in slow.news {
                    numbers.append(item.number)
                    if item.number == 1000 { break }
                }
                #expect(numbers.first == 1 && numbers.last == 1000 && numbers.count < 1000)
                #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 })
            }
        }
    }

    @Test func theRoomRefusesWhatItCannotDo() async throws {
        let anyPort = Endpoint.tcp(host: "127.0.0.1", port: 0)
        try await withSessionServer(listeningOn: anyPort, services: [silentRoom]) { server in
            try await withSessionClient(to: server.boundEndpoints[0]) { session in
                let room = Sample_Room_V1_RoomClient(session)
                let long = await #expect(throws: SessionError.self) {
                    try await room.say(.with { $0.text = String(repeating: "x", count: 4097) })
                }
                #expect(long?.status?.code == .invalidArgument)
                let ago = await #expect(throws: SessionError.self) {
                    for try await _ in room.watch(.with { $0.interval.seconds = -1 }) {}
                }
                #expect(ago?.status?.code == .invalidArgument)
            }
        }
    }

    private var silentRoom: Room { Room(record: nil, tellFailure: { _ in }, printLine: { _ in }) }
}
