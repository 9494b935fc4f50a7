import LifelineCore
import LifelineFleetRedis
import LifelineTestSupport
import NIOCore
import Testing

/// With a socket that sends answers which Redis never sends.
@Suite(.timeLimit(.minutes(2)))
struct RedisHostileServerTests {
    @Test(arguments: [
        "HTTP/1.1 400 Bad Request\r\n", "$9223372036854775807\r\n", "*9223372036854775807\r\n", "$-7\r\n", ":x\r\n",
        String(repeating: "*1\r\n", count: 100), "+" + String(repeating: "x", count: 100_000), "$1\r\nxyz", "\0\0\0\0",
        ":1\r\n:2\r\n",
    ])
    func givesUpAServerThatSendsNoReplies(bytes: String) async throws {
        let listener = try await RawSocket.listen()
        var configuration = try RedisConfiguration(url: "redis://127.0.0.1:\(listener.port)")
        configuration.backoff.initialDelay = .milliseconds(1)
        try await withRedisClient(configuration) { client in
            async let first = redisError { _ = try await client.send(RedisCommand("GET", "a")) }
            let peer = try await listener.greet()
            _ = try await peer.read("*2\r\n$3\r\nGET\r\n$1\r\na\r\n".utf8.count)
            // A peer may be cut while it writes, which does not matter here.
            try? await peer.write(Array(bytes.utf8))
            let error = await first
            if bytes.hasPrefix(":1") {
                #expect(error == nil, "the reply that came is one")
            } else {
                #expect(error?.code == .outcomeUnknown)
                #expect((error?.cause as? RedisError)?.code == .protocolViolation)
            }
            // The client continues with the next connection.
            async let second = client.send(RedisCommand("GET", "b"))
            let next = try await listener.greet()
            _ = try await next.read("*2\r\n$3\r\nGET\r\n$1\r\nb\r\n".utf8.count)
            try await next.write(Array(":7\r\n".utf8))
            #expect(try await second == .integer(7))
        }
    }

    @Test func takesSlowBytes() async throws {
        let listener = try await RawSocket.listen()
        let configuration = try RedisConfiguration(url: "redis://127.0.0.1:\(listener.port)")
        try await withRedisClient(configuration) { client in
            async let reply = client.send(RedisCommand("GET", "a"))
            let peer = try await listener.greet()
            _ = try await peer.read("*2\r\n$3\r\nGET\r\n$1\r\na\r\n".utf8.count)
            for byte in "*2\r\n$5\r\nhello\r\n*1\r\n:-12\r\n".utf8 { try await peer.write([byte]) }
            #expect(try await reply == .array([.bytes(ByteBuffer(string: "hello")), .array([.integer(-12)])]))
        }
    }

    /// A peer that only accepts connections is given up at the connect timeout.
    @Test func givesUpAServerThatSaysNothing() async throws {
        let listener = try await RawSocket.listen()
        var configuration = try RedisConfiguration(url: "redis://127.0.0.1:\(listener.port)")
        configuration.connectTimeout = .milliseconds(100)
        configuration.timeout = .seconds(60)
        configuration.backoff.initialDelay = .milliseconds(1)
        try await withRedisClient(configuration) { client in
            async let reply = client.send(RedisCommand("GET", "a"))
            let silent = try await listener.accept()
            // On a busy machine, the greeting may be answered too late for some connections.
            while true {
                let peer = try await listener.accept()
                guard (try? await peer.answerGreeting()) != nil else { continue }
                guard let bytes = try? await peer.readSome(1), !bytes.isEmpty else { continue }
                try await peer.write(Array("$-1\r\n".utf8))
                break
            }
            #expect(try await reply == .null)
            _ = silent
        }
    }

    @Test func escapesWhatAServerSays() async throws {
        let listener = try await RawSocket.listen()
        let log = TestLog()
        var configuration = try RedisConfiguration(url: "redis://127.0.0.1:\(listener.port)")
        configuration.backoff.initialDelay = .milliseconds(1)
        let client = try RedisClient(configuration, logger: log.logger)
        async let error = redisError { _ = try await client.send(RedisCommand("GET", "a")) }
        let refusing = try await listener.accept()
        try await refusing.write(Array("-NOAUTH \u{1B}[31m\u{202E}\r\n".utf8))
        let text = await error?.description ?? ""
        await client.close()
        #expect(text.contains("\\u{1b}[31m\\u{202e}"))
        #expect(log.entries.contains { $0.text.contains("\\u{1b}[31m") })
        #expect(log.entries.allSatisfy { !$0.text.contains("\u{1B}") && !$0.text.contains("\u{202E}") })
    }
}

extension RawSocket {
    /// Accepts a client's next connection, and answers its greeting as Redis does.
    fileprivate func greet() async throws -> RawSocket {
        let peer = try await accept()
        try await peer.answerGreeting()
        return peer
    }

    fileprivate func answerGreeting() async throws {
        _ = try await read("*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$8\r\nlifeline\r\n*1\r\n$4\r\nPING\r\n".utf8.count)
        try await write(Array("+OK\r\n+PONG\r\n".utf8))
    }
}
