import LifelineFleetRedis
import LifelineTestSupport
import NIOCore
import Testing

/// With a real server.
@Suite(.timeLimit(.minutes(2)))
struct RedisClientTests {
    private static let increment = RedisScript("return redis.call('INCR', KEYS[1])")

    // MARK: Commands

    @Test func pipelinesTheCommandsOfManyTasks() async throws {
        try await withRedisServer { server in
            try await withRedisClient(server.configuration) { client in
                try await withThrowingDiscardingTaskGroup { group in
                    for task in 0..<100 {
                        group.addTask {
                            for number in 1...100 {
                                let reply = try await client.send(RedisCommand("INCR", .text("counter \(task)")))
                                #expect(reply == .integer(Int64(number)))
                            }
                        }
                    }
                }
                let counts = try await client.send(
                    RedisCommand("MGET", (0..<100).map { .text("counter \($0)") })
                )
                #expect(counts == .array([RedisValue](repeating: .bytes(ByteBuffer(string: "100")), count: 100)))
            }
        }
    }

    /// Commands that one task sends without waiting run in the order of its calls, even if few may be in flight.
    @Test func runsCommandsInTheOrderOfTheirCalls() async throws {
        try await withRedisServer { server in
            var configuration = try server.configuration
            configuration.maximumCommandsInFlight = 3
            try await withRedisClient(configuration) { client in
                try await withThrowingDiscardingTaskGroup { group in
                    for number in 0..<500 {
                        // On the executor, tasks begin in the order in which they were added.
                        group.addTask(executorPreference: client.executor) {
                            _ = try await client.send(RedisCommand("RPUSH", "list", .number(Int64(number))))
                        }
                    }
                }
                let list = try await client.send(RedisCommand("LRANGE", "list", 0, -1))
                #expect(list == .array((0..<500).map { .bytes(ByteBuffer(string: "\($0)")) }))
            }
        }
    }

    @Test func carriesLargeAndEmptyStrings() async throws {
        try await withRedisServer { server in
            try await withRedisClient(server.configuration) { client in
                let value = ByteBuffer(bytes: (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
                let reply = try await client.send(RedisCommand("SET", "large", .bytes(value)))
                #expect(reply == .status("OK"))
                #expect(try await client.send(RedisCommand("GET", "large")) == .bytes(value))
                #expect(try await client.send(RedisCommand("SET", "empty", "")) == .status("OK"))
                #expect(try await client.send(RedisCommand("GET", "empty")) == .bytes(ByteBuffer()))
                #expect(try await client.send(RedisCommand("GET", "none")) == .null)
            }
        }
    }

    @Test func tellsWhatRedisRefuses() async throws {
        try await withRedisServer { server in
            try await withRedisClient(server.configuration) { client in
                _ = try await client.send(RedisCommand("SET", "text", "a"))
                let error = await redisError { _ = try await client.send(RedisCommand("LPUSH", "text", "b")) }
                #expect(error?.code == .refused && error?.replyCode == "WRONGTYPE" && error?.isTemporary == false)
                let other = await redisError { _ = try await client.send(RedisCommand("NO\u{1B}[31m")) }
                #expect(other?.replyCode == "ERR" && other?.message.contains("\u{1B}") == false)
            }
        }
    }

    @Test func saysWhatIsTemporary() async throws {
        try await withRedisServer(["replicaof 127.0.0.1 1"]) { server in
            try await withRedisClient(server.configuration) { client in
                let error = await redisError { _ = try await client.send(RedisCommand("SET", "a", "b")) }
                #expect(error?.replyCode == "READONLY" && error?.isTemporary == true)
            }
        }
    }

    @Test func cancelsACommandThatWaits() async throws {
        let listener = try await RawSocket.listen()
        var configuration = try RedisConfiguration(url: "redis://127.0.0.1:\(listener.port)")
        configuration.timeout = .seconds(60)
        try await withRedisClient(configuration) { client in
            let task = Task { try await client.send(RedisCommand("GET", "a")) }
            let peer = try await listener.accept()
            _ = try await peer.readSome(10)
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            await #expect(throws: CancellationError.self) {
                try await Task {
                    withUnsafeCurrentTask { $0?.cancel() }
                    return try await client.send(RedisCommand("GET", "a"))
                }.value
            }
        }
    }

    // MARK: Scripts

    @Test func sendsAScriptThatRedisDoesNotKnow() async throws {
        try await withRedisServer { server in
            try await withRedisClient(server.configuration) { client in
                for round in 1...3 {
                    if round == 2 { _ = try await client.send(RedisCommand("SCRIPT", "FLUSH")) }
                    if round == 3 { try await server.restart() }
                    try await withThrowingDiscardingTaskGroup { group in
                        for _ in 0..<50 {
                            group.addTask {
                                // The client may notice the restart only now.
                                while await redisError({
                                    _ = try await client.run(Self.increment, keys: ["counter"])
                                })?.code == .outcomeUnknown {}
                            }
                        }
                    }
                    let count = try await client.send(RedisCommand("GET", "counter"))
                    // The server keeps nothing across a restart.
                    #expect(count == .bytes(ByteBuffer(string: round == 2 ? "100" : "50")))
                }
            }
        }
    }

    // MARK: Connections that end

    @Test func goesOnAfterACrashInAPipeline() async throws {
        try await withRedisServer(["appendonly yes", "appendfsync always"]) { server in
            try await withRedisClient(server.configuration) { client in
                let tasks = (0..<20).map { task in
                    Task {
                        var (counted, unknown) = (0, 0)
                        for _ in 0..<200 {
                            let error = await redisError {
                                _ = try await client.send(RedisCommand("INCR", .text("counter \(task)")))
                            }
                            switch error?.code {
                            case nil: counted += 1
                            case .outcomeUnknown: unknown += 1
                            default: Issue.record("\(error?.message ?? "")")
                            }
                        }
                        return (counted, unknown)
                    }
                }
                // In the middle, when each task has sent some commands and has some left.
                while try await client.send(RedisCommand("GET", "counter 19")) == .null {}
                try await server.restart()
                for (number, task) in tasks.enumerated() {
                    let (counted, unknown) = await task.value
                    guard
                        case .bytes(let text) = try await client.send(RedisCommand("GET", .text("counter \(number)"))),
                        let count = Int(String(buffer: text))
                    else {
                        Issue.record("There is no counter.")
                        return
                    }
                    #expect((counted...counted + unknown).contains(count), "what is unknown has run or not")
                    #expect(unknown <= 1, "and is one command for each task at most")
                }
            }
        }
    }

    @Test func goesOnWhenTheServerClosesTheConnection() async throws {
        try await withRedisServer { server in
            try await withRedisClient(server.configuration) { client in
                let id = try await client.send(RedisCommand("CLIENT", "ID"))
                let error = await redisError {
                    _ = try await client.send(RedisCommand("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no"))
                }
                #expect(error == nil || error?.code == .outcomeUnknown)
                // The command may be written before the end is noticed.
                while await redisError({ _ = try await client.send(RedisCommand("PING")) }) != nil {}
                #expect(try await client.send(RedisCommand("CLIENT", "ID")) != id)
                let name = try await client.send(RedisCommand("CLIENT", "GETNAME"))
                #expect(name == .bytes(ByteBuffer(string: "lifeline")))
            }
        }
    }

    @Test func timesOutWhileTheServerIsPaused() async throws {
        try await withRedisServer { server in
            var configuration = try server.configuration
            configuration.maximumCommandsInFlight = 1
            try await withRedisClient(configuration) { client in
                _ = try await client.send(RedisCommand("CLIENT", "PAUSE", 60_000))
                async let written = redisError {
                    _ = try await client.send(RedisCommand("INCR", "a"), timeout: .milliseconds(50))
                }
                async let waiting = redisError {
                    _ = try await client.send(RedisCommand("INCR", "b"), timeout: .milliseconds(50))
                }
                let codes = await [written?.code.description, waiting?.code.description].compactMap(\.self).sorted()
                #expect(codes == ["outcomeUnknown", "timedOut"])
            }
        }
    }

    @Test func waitsForAServerThatStartsLater() async throws {
        try await withRedisServer { server in
            await server.kill()
            try await withRedisClient(server.configuration) { client in
                // The first attempt to connect may take longer than the command.
                var error: RedisError?
                while error?.description.contains("Check that a server listens there") != true {
                    error = await redisError {
                        _ = try await client.send(RedisCommand("PING"), timeout: .milliseconds(30))
                    }
                    #expect(error?.code == .timedOut)
                }
                async let reply = client.send(RedisCommand("PING"), timeout: .seconds(60))
                try await server.start()
                #expect(try await reply == .status("PONG"))
            }
        }
    }

    @Test func closesWithEverythingThatWaits() async throws {
        try await withRedisServer { server in
            let client = try RedisClient(server.configuration)
            _ = try await client.send(RedisCommand("CLIENT", "PAUSE", 60_000))
            async let error = redisError { _ = try await client.send(RedisCommand("INCR", "a")) }
            await Task.yield()
            await client.close()
            #expect([.outcomeUnknown, .closed].contains(await error?.code))
            #expect(await redisError { _ = try await client.send(RedisCommand("PING")) }?.code == .closed)
            #expect(await redisError { try await client.subscribe(to: ["a"]) }?.code == .closed)
            await client.close()
        }
    }

    // MARK: Authentication

    @Test(arguments: [nil, "ann"])
    func authenticates(user: String?) async throws {
        let settings = ["requirepass p@ss", "user ann on >p@ss ~* &* +@all"]
        try await withRedisServer(settings) { server in
            var configuration = try server.configuration(url: "redis://\(user ?? ""):p%40ss@127.0.0.1:\(server.port)/2")
            configuration.clientName = "node-1"
            try await withRedisClient(configuration) { client in
                let who = try await client.send(RedisCommand("ACL", "WHOAMI"))
                #expect(who == .bytes(ByteBuffer(string: user ?? "default")))
                guard case .bytes(let info) = try await client.send(RedisCommand("CLIENT", "INFO")) else {
                    Issue.record("There is no information.")
                    return
                }
                #expect(String(buffer: info).contains("name=node-1 ") && String(buffer: info).contains(" db=2 "))
            }
        }
    }

    @Test(arguments: [":wrong", ":", "nobody:secret"])
    func saysThatItIsNotLetIn(userInfo: String) async throws {
        try await withRedisServer(["requirepass secret"]) { server in
            let log = TestLog()
            let url = "redis://\(userInfo)@127.0.0.1:\(server.port)"
            let client = try RedisClient(server.configuration(url: url), logger: log.logger)
            let error = await redisError { _ = try await client.send(RedisCommand("PING")) }
            #expect(error?.code == .notAdmitted && error?.replyCode == "WRONGPASS")
            await client.close()
            let texts = log.entries.map(\.text) + [error?.description ?? ""]
            #expect(texts.allSatisfy { !$0.contains("secret") && !$0.contains("wrong") })
        }
    }

    @Test func saysThatAPasswordIsWanted() async throws {
        try await withRedisServer(["requirepass secret"]) { server in
            try await withRedisClient(server.configuration) { client in
                let error = await redisError { _ = try await client.send(RedisCommand("PING")) }
                #expect(error?.code == .notAdmitted && error?.replyCode == "NOAUTH")
            }
        }
    }
}
