import Glibc
import LifelineClientTestSupport
import LifelineCore
import LifelineProtos
import LifelineTestSupport
import NIOConcurrencyHelpers
import Testing

@testable import Lifeline

/// A limit is what the process really takes, also of the messages that are the most expensive for what they say.
///
/// Each test runs in a process of its own, for the memory that is measured is the process's.
@Suite(.enabled(if: !isSanitized, "Sanitizers have a malloc of their own."), .timeLimit(.minutes(5)))
struct SessionMemoryTests {
    /// So large that what else the process does is a small part of it.
    private static let limit = 16 << 20

    /// Measures what the process allocates while `body` runs.
    ///
    /// - Parameter least: below that the measure would be none.
    private static func expectBound(
        least: Int = limit / 4,
        _ body: () async throws -> Void
    ) async throws {
        let before = try #require(allocatedByteCount())
        try await body()
        let growth = try #require(allocatedByteCount()) - before
        #expect(growth <= limit * 3 / 2, "\(growth) bytes")
        #expect(growth >= least, "\(growth) bytes")
    }

    /// A session whose client takes a message and acknowledges none.
    private static func withUnreadSession(
        _ method: SessionMethod,
        _ body: (RawSessionClient, SessionServerEnd) async throws -> Void
    ) async throws {
        try await withServer(method, configure: { $0.limits.maximumKeptByteCount = limit }) { server, _ in
            let client = try await RawSessionClient.connect(to: server)
            _ = try await client.hello { $0.window.frames = 1 }
            try await body(client, try #require(server.sessions.first))
        }
    }

    /// Whether another message would have to wait.
    private static func isFull(_ session: SessionServerEnd) -> Bool {
        session.engine.state.withLockedValue { $0.machine.outbound.unadmittedCount > 0 }
    }

    @Test func aStreamThatIsNotRead() async {
        await #expect(processExitsWith: .success) {
            let stream = SessionMethod.stream("t.T/Stream") {
                (_: TestMessage, stream: SessionStreamWriter<TestMessage>, _) in
                while true { try await stream.send(TestMessage()) }
            }
            try await SessionMemoryTests.withUnreadSession(stream) { client, session in
                try await SessionMemoryTests.expectBound {
                    try await client.send(
                        .with { ($0.sequence, $0.request.serial, $0.request.method) = (1, 1, "t.T/Stream") }
                    )
                    try await until { SessionMemoryTests.isFull(session) }
                }
                try client.socket.reset()
            }
        }
    }

    @Test(arguments: [false, true]) func pushesThatAreNotRead(haveKeys: Bool) async {
        await #expect(processExitsWith: .success) { [haveKeys] in
            let echo = SessionMethod.unary("t.T/Echo") { (message: TestMessage, _) in message }
            try await SessionMemoryTests.withUnreadSession(echo) { client, session in
                try await SessionMemoryTests.expectBound {
                    let pushing = Task {
                        for number in 0... {
                            let delivery: SessionDelivery =
                                haveKeys ? .replaceable(key: "\(number)", timeToLive: .seconds(1_000)) : .reliable
                            try await session.push("t.T/News", TestMessage(), delivery: delivery)
                        }
                    }
                    try await until { SessionMemoryTests.isFull(session) }
                    pushing.cancel()
                    _ = await pushing.result
                }
                try client.socket.reset()
            }
        }
    }

    /// Of 1 KiB those that take the most, in proportion to what they count for.
    @Test(arguments: [0, 1_024]) func pushesThatAreNotHandled(length: Int) async {
        await #expect(processExitsWith: .success) { [length] in
            let limit = SessionMemoryTests.limit
            let block = SessionMethod.push("t.T/Block") { (_: TestMessage, _) in
                try await Task.sleep(for: .seconds(1_000_000))
            }
            try await withServer(block, configure: { $0.limits.maximumUnprocessedByteCount = limit }) { server, _ in
                let client = try await RawSessionClient.connect(to: server)
                _ = try await client.hello()
                let session = try #require(server.sessions.first)
                let payload = try TestMessage([UInt8](repeating: 7, count: length)).encodedPayload(partial: false)
                let size = SessionPayload.messageOverhead + "t.T/Block".utf8.count + payload.count
                var bytes: [UInt8] = []
                for place in 1...UInt64(limit / size) {
                    let frame = Lifeline_Session_V1_Frame.with {
                        ($0.sequence, $0.push.method, $0.push.payload) = (place, "t.T/Block", payload)
                    }
                    bytes += try frame.withDelimitedBytes { Array($0) }
                }
                try await SessionMemoryTests.expectBound {
                    // No longer than the connection's queues, which are not the session's.
                    for start in stride(from: 0, to: bytes.count, by: 16 << 10) {
                        try await client.socket.write(Array(bytes[start..<min(start + 16 << 10, bytes.count)]))
                    }
                    bytes = []
                    try await until { session.statistics.receivedPushCount == limit / size }
                }
                try client.socket.reset()
            }
        }
    }
}

private let isSanitized = dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil
