import Foundation
import LifelineTestSupport
import Testing

/// `lifeline call` while its connection is cut, and while its server is killed, or drained, and started again.
@Suite(.timeLimit(.minutes(3)), .serialized) struct ServerRestartTests {
    /// Requests with these numbers.
    private func requests(_ numbers: ClosedRange<Int>) -> String {
        numbers.map { "{\"number\": \($0)}" }.joined(separator: "\n")
    }

    /// Runs `body` with a command that calls a number of echoes, as many at once as a session allows.
    private func withEchoes(
        _ count: Int,
        _ endpoint: String,
        _ options: String...,
        recordedIn path: String,
        _ body: (RunningCommand) async throws -> Void
    ) async throws {
        try await withTemporaryPath("requests") { file in
            try Data(requests(1...count).utf8).write(to: URL(filePath: file))
            let arguments = ["call", endpoint, "Room/Echo", "--data", "@\(file)", "--concurrency", "64"] + options
            try await body(try RunningCommand(arguments, watching: path))
        }
    }

    /// The numbers of the replies.
    private func replied(_ command: RunningCommand) throws -> [Int] {
        try command.lines.map { line in
            try #require(line.firstMatch(of: /"number":"(\d+)"/).flatMap { Int($0.output.1) }, "\(line)")
        }
    }

    /// Each server is killed after the record has a few more echoes: early, so that calls are under way even if this is
    /// noticed late.
    @Test func onlyCallsOfAKilledServerAreInDoubt() async throws {
        try await withTemporaryPath("record") { path in
            let (count, deaths) = (30_000, 3)
            var growing = GrowingRecord(path: path)
            let (first, endpoint) = try await RunningCommand.serve(on: TestPort.nextEndpoint(), "--record", path)
            var server = first
            try await withEchoes(count, endpoint, "--retry", recordedIn: path) { caller in
                for _ in 1...deaths {
                    let before = try growing.count()
                    try await caller.wait { _ in try growing.count() >= before + 300 }
                    await server.killAndWait()
                    (server, _) = try await RunningCommand.serve(on: endpoint, "--record", path)
                }
                #expect(await caller.finish() == 0, "\(caller.errorText)")
                #expect(try replied(caller).sorted() == Array(1...count))

                let doubted = caller.errorText.matches(of: /in doubt: \{"number":"(\d+)"\}; it is called again/)
                    .compactMap { Int($0.output.1) }
                #expect(doubted.count >= deaths, "there were calls under way when it was killed")
                let record = try Record(path: path)
                #expect(record.counts.keys.sorted() == Array(1...count), "every one was handled")
                // One more session may have begun and ended without a call.
                #expect(record.sessions.count == deaths + 1)
                for (number, times) in record.counts where times > 1 {
                    #expect(times <= 1 + doubted.count { $0 == number }, "\(number) was handled \(times) times")
                }
            }
            await server.killAndWait()
        }
    }

    /// A server that drains answers everything first, so no call is in doubt when the next server does not know the
    /// session.
    @Test func aDrainLeavesNothingInDoubt() async throws {
        try await withTemporaryPath("record") { path in
            let count = 30_000
            var growing = GrowingRecord(path: path)
            let (first, endpoint) = try await RunningCommand.serve(on: TestPort.nextEndpoint(), "--record", path)
            try await withEchoes(count, endpoint, recordedIn: path) { caller in
                try await caller.wait { _ in try growing.count() >= 500 }
                first.send(SIGTERM)
                #expect(await first.finish() == 0)
                #expect(first.errorText.contains("draining"))
                let (second, _) = try await RunningCommand.serve(on: endpoint, "--record", path)
                #expect(await caller.finish() == 0, "\(caller.errorText)")
                #expect(caller.errorText.contains("as the server does not know it any more; in doubt: nothing\n"))
                let record = try Record(path: path)
                #expect(record.counts.keys.sorted() == Array(1...count))
                #expect(record.counts.values.allSatisfy { $0 == 1 })
                await second.killAndWait()
            }
        }
    }

    @Test func aDrainFinishesWhatIsUnderWay() async throws {
        let (server, endpoint) = try await RunningCommand.serve(on: "tcp://127.0.0.1:0", "--drain", "100")
        let watch = try RunningCommand([
            "call", endpoint, "Room/Watch", "--data", "{\"count\": 50, \"interval\": \"0.01s\"}",
        ])
        try await watch.wait { $0.lines.count > 1 }
        server.send(SIGTERM)
        #expect(await watch.finish() == 0, "\(watch.errorText)")
        #expect(watch.lines.count == 50)
        #expect(await server.finish() == 0)
    }

    @Test func aSecondInterruptEndsItAtOnce() async throws {
        let (server, endpoint) = try await RunningCommand.serve(on: "tcp://127.0.0.1:0", "--drain", "1000000")
        let watch = try RunningCommand([
            "call", endpoint, "Room/Watch", "--data", "{\"interval\": \"0.01s\"}", "--give-up-after", "0",
        ])
        try await watch.wait { $0.lines.count > 1 }
        server.send(SIGTERM)
        try await server.wait { $0.errorText.contains("draining") }
        let before = watch.lines.count
        try await watch.wait { $0.lines.count > before }
        server.send(SIGINT)
        #expect(await server.finish() == 128 + SIGINT)
        #expect(await watch.finish() == 69, "\(watch.errorText)")
    }

    /// Only connections are cut: the server still knows the session, and every echo is handled once.
    @Test func aSessionOutlivesItsConnections() async throws {
        try await withTemporaryPath("record") { path in
            let (server, endpoint) = try await RunningCommand.serve(on: "tcp://127.0.0.1:0", "--record", path)
            let port = try #require(Int(endpoint.split(separator: ":").last ?? ""))
            try await CuttingRelay.run(to: port, seed: 7, cuts: 5, after: 2_000...20_000) { relay in
                let count = 3000
                let outcome = try await call(
                    "tcp://127.0.0.1:\(relay.port)",
                    "Echo",
                    "--data",
                    "@-",
                    "--concurrency",
                    "64",
                    input: requests(1...count)
                )
                #expect(outcome.status == 0)
                #expect(relay.cutCount == 5)
                let lines = outcome.errorText.split(separator: "\n")
                #expect(lines.count { $0 == "lifeline: the session goes on" } == 5, "\(outcome.errorText)")
                let record = try Record(path: path)
                #expect(record.counts.keys.sorted() == Array(1...count))
                #expect(record.counts.values.allSatisfy { $0 == 1 })
                #expect(record.sessions.count == 1)
            }
            await server.killAndWait()
        }
    }

    /// The room hears each line once, and in order.
    @Test func aStreamOfLinesOutlivesItsConnections() async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let port = try #require(Int(endpoint.split(separator: ":").last ?? ""))
        let lines = (1...3000).map { "line \($0)" }
        let requests = lines.map { "{\"text\": \"\($0)\"}" }.joined()
        try await CuttingRelay.run(to: port, seed: 13, cuts: 5, after: 2_000...10_000) { relay in
            let outcome = try await call("tcp://127.0.0.1:\(relay.port)", "SayAll", "--name", "Ada", input: requests)
            #expect(outcome.status == 0, "\(outcome.errorText)")
            #expect(relay.cutCount == 5)
            #expect(String(decoding: outcome.output, as: UTF8.self) == "{\"count\":3000,\"lastNumber\":\"3000\"}\n")
            #expect(outcome.errorText.split(separator: "\n").count { $0 == "lifeline: the session goes on" } == 5)
        }
        try await server.wait { $0.errorText.contains("Ada left") }
        let heard = server.errorText.split(separator: "\n").filter { $0.hasPrefix("Ada: ") }
        #expect(heard.map { String($0.dropFirst("Ada: ".count)) } == lines)
        await server.killAndWait()
    }

    /// Both directions continue, and each message comes back once and in order.
    @Test func aTalkOutlivesItsConnections() async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let port = try #require(Int(endpoint.split(separator: ":").last ?? ""))
        // No more than the room keeps while there is no connection.
        let lines = (1...200).map { "line \($0)" }
        let requests = lines.map { "{\"text\": \"\($0)\"}" }.joined()
        try await CuttingRelay.run(to: port, seed: 17, cuts: 3, after: 1_000...3_000) { relay in
            let outcome = try await call("tcp://127.0.0.1:\(relay.port)", "Talk", "--name", "Ada", input: requests)
            #expect(outcome.status == 0, "\(outcome.errorText)")
            #expect(relay.cutCount == 3)
            let heard = String(decoding: outcome.output, as: UTF8.self).split(separator: "\n")
            #expect(heard.map { $0.firstMatch(of: /"text":"(.*?)"/)?.output.1 } == lines.map { $0[...] })
            #expect(outcome.errorText.split(separator: "\n").count { $0 == "lifeline: the session goes on" } == 3)
        }
        await server.killAndWait()
    }

    /// A lost connection is not a failed attempt.
    @Test func aCutConnectionIsMadeAgainWithoutPatience() async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let port = try #require(Int(endpoint.split(separator: ":").last ?? ""))
        try await CuttingRelay.run(to: port, seed: 11, cuts: 2, after: 3_000...4_000) { relay in
            let outcome = try await call(
                "tcp://127.0.0.1:\(relay.port)",
                "Watch",
                "--data",
                "{\"count\": 500, \"interval\": \"0.002s\"}",
                "--give-up-after",
                "0"
            )
            #expect(outcome.status == 0, "\(outcome.errorText)")
            #expect(relay.cutCount == 2)
            #expect(outcome.errorText.split(separator: "\n").count { $0 == "lifeline: the session goes on" } == 2)
        }
        await server.killAndWait()
    }
}
