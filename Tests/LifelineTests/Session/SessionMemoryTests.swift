import Glibc
import LifelineClientTestSupport
import LifelineCore
import LifelineTestSupport
import LifelineWellKnownTypes
import TestProtos
import Testing

@testable import Lifeline

/// A message takes at most one and a half times the memory that it counts for. This holds also for the most expensive
/// messages.
/// Each test runs in its own process, because the memory of the whole process is measured.
@Suite(.enabled(if: !isSanitized, "Sanitizers have a malloc of their own."), .timeLimit(.minutes(5)))
struct SessionMemoryTests {
    /// So large that other memory of the process is a small part of it.
    private static let limit = 16 << 20

    /// The bytes that the process allocates while `body` runs.
    private static func growth(_ body: () async throws -> Void) async throws -> Int {
        let before = try #require(allocatedByteCount())
        try await body()
        return try #require(allocatedByteCount()) - before
    }

    /// Expects messages that count for `byteCount` to take at most one and a half times that.
    /// - Parameter least: the smallest plausible result.
    private static func expectBound(
        _ byteCount: Int = limit,
        least: Int = limit / 8,
        _ body: () async throws -> Void
    ) async throws {
        let growth = try await growth(body)
        #expect(growth <= byteCount * 3 / 2, "\(growth) bytes")
        #expect(growth >= least, "\(growth) bytes")
    }

    /// A session whose client receives messages, acknowledges none, and grants the maximum credit.
    private static func withUnreadSession(
        _ method: SessionMethod,
        limit: Int = limit,
        _ body: (RawSessionClient, SessionServerEnd) async throws -> Void
    ) async throws {
        let configure: (inout SessionServerConfiguration) -> Void = {
            $0.limits.maximumKeptByteCount = limit
            $0.limits.maximumKeptMessageCount = 1 << 20
        }
        try await withServer(method, configure: configure) { server, _ in
            let client = try await RawSessionClient.connect(to: server)
            _ = try await client.hello { ($0.terms.windowFrames, $0.terms.credit) = (1, 1 << 40) }
            try await body(client, try #require(server.sessions.first))
        }
    }

    /// Whether another message would have to wait.
    private static func isFull(_ session: SessionServerEnd) -> Bool {
        session.engine.state.withLock { $0.machine.waitingCount > 0 }
    }

    // MARK: Messages kept for the client

    @Test func aStreamThatIsNotRead() async {
        await #expect(processExitsWith: .success) {
            let stream = SessionMethod.stream("t.T/Stream") {
                (_: TestMessage, stream: SessionStreamWriter<TestMessage>, _) in
                while true { try await stream.send(TestMessage()) }
            }
            try await SessionMemoryTests.withUnreadSession(stream) { client, session in
                try await SessionMemoryTests.expectBound {
                    try await client.ask("t.T/Stream")
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

    /// A push of 32 bytes takes at most 128, also if an array has just grown: the records at the first number, the
    /// frames at the second.
    @Test(arguments: [131_073, 204_601]) func aKeptPush(count: Int) async {
        await #expect(processExitsWith: .success) { [count] in
            let echo = SessionMethod.unary("t.T/Echo") { (message: TestMessage, _) in message }
            try await SessionMemoryTests.withUnreadSession(echo, limit: 1 << 30) { client, session in
                let message = TestMessage([UInt8](repeating: 7, count: 32))
                let growth = try await SessionMemoryTests.growth {
                    for _ in 0..<count { try await session.push("t.T/News", message) }
                }
                #expect(session.statistics.keptMessageCount == count + 1, "and the name of the method")
                #expect(growth <= 128 * count && growth >= 48 * count, "\(growth / count) bytes each")
                try client.socket.reset()
            }
        }
    }

    // MARK: Messages received from the client

    /// Writes a frame repeatedly, no faster than the server takes it, because the connection's queues do not belong to
    /// the session.
    private static func write(_ frame: Lifeline_Session_V1_Frame, count: Int, to client: RawSessionClient) async throws
    {
        let bytes = try frame.withDelimitedBytes { Array($0) }
        let batch = max((16 << 10) / bytes.count, 1)
        for start in stride(from: 0, to: count, by: batch) {
            try await client.socket.write((start..<min(start + batch, count)).flatMap { _ in bytes })
        }
    }

    /// A server whose window and credit are as large as the limit, and its client.
    private static func withSlowServer(
        _ method: SessionMethod,
        _ body: (RawSessionClient, SessionServerEnd) async throws -> Void
    ) async throws {
        let configure: (inout SessionServerConfiguration) -> Void = {
            $0.limits.maximumUnprocessedByteCount = limit
            $0.limits.maximumUnprocessedMessageCount = 1 << 20
            $0.limits.maximumUnreadByteCount = limit
        }
        try await withServer(method, configure: configure) { server, _ in
            let client = try await RawSessionClient.connect(to: server)
            _ = try await client.hello()
            try await body(client, try #require(server.sessions.first))
            try client.socket.reset()
        }
    }

    /// Pushes of 0 bytes and 1 KiB, as many as the window has room for; and counts at which arrays have just grown.
    @Test(arguments: [(0, 246_000), (1_024, 15_000), (0, 133_000), (126, 82_000)])
    func pushesThatAreNotHandled(length: Int, count: Int) async {
        await #expect(processExitsWith: .success) { [length, count] in
            let block = SessionMethod.push("t.T/Block") { (_: TestMessage, _) in try await Event().wait() }
            try await SessionMemoryTests.withSlowServer(block) { client, session in
                let message = TestMessage([UInt8](repeating: 7, count: length))
                let payload = length == 0 ? [] : try message.serializedBytes()
                let number = try await client.name("t.T/Block")
                let frame = Lifeline_Session_V1_Frame.with {
                    ($0.push.method, $0.push.payload) = (number, payload)
                }
                let cost = try frame.serializedBytes().count + SessionSize.frameOverhead
                try #require(count * cost <= SessionMemoryTests.limit)
                try await SessionMemoryTests.expectBound(count * cost) {
                    try await SessionMemoryTests.write(frame, count: count, to: client)
                    try await until { session.statistics.receivedPushCount == count }
                }
            }
        }
    }

    /// A stream that the handler does not read takes its credit, and spare room in arrays.
    @Test(arguments: [0, 32, 126, 1_024]) func partsThatAreNotRead(length: Int) async {
        await #expect(processExitsWith: .success) { [length] in
            let block = SessionMethod.clientStream("t.T/Block") {
                (_: SessionMessages<TestMessage>, _) -> TestMessage in
                try await Event().wait()
                return TestMessage()
            }
            try await SessionMemoryTests.withSlowServer(block) { client, session in
                let payload = try TestMessage([UInt8](repeating: 7, count: length)).serializedBytes()
                try await client.ask("t.T/Block", hasParts: true)
                let frame = Lifeline_Session_V1_Frame.part(payload)
                let cost = try frame.serializedBytes().count + SessionSize.frameOverhead
                let count = SessionMemoryTests.limit / cost
                try await SessionMemoryTests.expectBound {
                    try await SessionMemoryTests.write(frame, count: count, to: client)
                    try await until {
                        session.engine.state.withLock { $0.machine.inbound.unprocessedSize.frameCount } == count
                    }
                }
            }
        }
    }
}

private let isSanitized = dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil
