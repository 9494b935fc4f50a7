import LifelineCore
import LifelineFleetRedis
import LifelineTestSupport
import NIOConcurrencyHelpers
import NIOCore
import Testing

@testable import LifelineFleetRedis

/// With a real server.
@Suite(.timeLimit(.minutes(2)))
struct RedisSubscriptionTests {
    /// The events of a client's handler.
    private struct Events {
        private let stream: AsyncStream<String>
        let handle: @Sendable (RedisSubscriptionEvent) -> Void

        init() {
            let (stream, continuation) = AsyncStream.makeStream(of: String.self)
            self.stream = stream
            handle = { continuation.yield(describe($0)) }
        }

        func next() async -> String? {
            for await event in stream { return event }
            return nil
        }
    }

    @Test func deliversInOrder() async throws {
        try await withRedisServer { server in
            let events = Events()
            try await withRedisClient(server.configuration, handleMessages: events.handle) { client in
                try await client.subscribe(to: ["a", "b"])
                #expect(await events.next() == "connected")
                for number in 0..<1000 {
                    let channel: RedisArgument = number % 2 == 0 ? "a" : "b"
                    let count = try await client.send(RedisCommand("PUBLISH", channel, .number(Int64(number))))
                    #expect(count == .integer(1), "it is in force")
                }
                for number in 0..<1000 {
                    #expect(await events.next() == "\(number % 2 == 0 ? "a" : "b") says \(number)")
                }
                try await client.unsubscribe(from: ["a"])
                #expect(try await client.send(RedisCommand("PUBLISH", "a", "x")) == .integer(0))
                #expect(try await client.send(RedisCommand("PUBLISH", "b", "last")) == .integer(1))
                #expect(await events.next() == "b says last")
            }
        }
    }

    @Test func subscribesAgainAfterARestart() async throws {
        try await withRedisServer { server in
            let events = Events()
            try await withRedisClient(server.configuration, handleMessages: events.handle) { client in
                try await client.subscribe(to: ["a"])
                #expect(await events.next() == "connected")
                try await server.restart()
                #expect(await events.next() == "disconnected: connectionFailed")
                #expect(await events.next() == "connected after a gap")
                try await client.subscribe(to: ["b"])
                while await redisError({ _ = try await client.send(RedisCommand("PUBLISH", "a", "1")) }) != nil {}
                #expect(await events.next() == "a says 1")
            }
        }
    }

    @Test func seesThatTheServerClosedTheConnection() async throws {
        try await withRedisServer { server in
            let events = Events()
            try await withRedisClient(server.configuration, handleMessages: events.handle) { client in
                try await client.subscribe(to: ["a"])
                _ = try await client.send(RedisCommand("CLIENT", "KILL", "TYPE", "pubsub"))
                #expect(await events.next() == "connected")
                #expect(await events.next() == "disconnected: connectionFailed")
                #expect(await events.next() == "connected after a gap")
            }
        }
    }

    /// Redis drops a subscriber for which it keeps too much. The missing messages show as a gap.
    @Test func showsAGapWhereTheHandlerReadsTooLittle() async throws {
        try await withRedisServer(["client-output-buffer-limit pubsub 256kb 0 0"]) { server in
            let events = Events()
            try await withRedisClient(server.configuration, handleMessages: events.handle) { client in
                try await client.subscribe(to: ["a"])
                #expect(await events.next() == "connected")
                client.pauseMessages()
                let payload = RedisArgument.text(String(repeating: "x", count: 65_536))
                // The kernels' buffers take some megabytes before Redis has to keep any.
                while try await client.send(RedisCommand("PUBLISH", "a", payload)) == .integer(1) {}
                client.resumeMessages()
                var event = await events.next()
                while let message = event, message.hasPrefix("a says") { event = await events.next() }
                #expect(event == "disconnected: connectionFailed")
                #expect(await events.next() == "connected after a gap")
            }
        }
    }

    @Test func asksWithoutHarm() async throws {
        try await withRedisServer { server in
            var configuration = try server.configuration
            configuration.heartbeat.interval = .milliseconds(5)
            let events = Events()
            try await withRedisClient(configuration, handleMessages: events.handle) { client in
                try await client.subscribe(to: ["a"])
                // The server's statistics show that it has answered pings of both connections meanwhile.
                while true {
                    guard case .bytes(let text) = try await client.send(RedisCommand("INFO", "commandstats")) else {
                        break
                    }
                    let line = String(buffer: text).split(separator: "\r\n").first {
                        $0.hasPrefix("cmdstat_ping:calls=")
                    }
                    let count = line?.dropFirst("cmdstat_ping:calls=".count).prefix { $0.isNumber }
                    if let count = count.flatMap({ Int($0) }), count > 20 { break }
                }
                try await client.unsubscribe(from: ["a"])
                try await client.subscribe(to: ["b"])
                _ = try await client.send(RedisCommand("PUBLISH", "b", "1"))
                #expect(await events.next() == "connected")
                #expect(await events.next() == "b says 1", "on the same connection")
            }
        }
    }

    @Test func saysWhichChannelsAreRefused() async throws {
        try await withRedisServer(["user default on nopass ~* +@all resetchannels &open"]) { server in
            try await withRedisClient(server.configuration) { client in
                try await client.subscribe(to: ["open"])
                let error = await redisError { try await client.subscribe(to: ["secret"]) }
                #expect(error?.code == .refused && error?.replyCode == "NOPERM")
                #expect(try await client.send(RedisCommand("PUBSUB", "NUMSUB", "open")) != .null)
            }
        }
    }
}
