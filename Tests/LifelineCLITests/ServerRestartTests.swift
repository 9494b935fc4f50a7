import Foundation
import LifelineTestSupport
import Testing

/// `lifeline call` while its connection is cut, and while its server is killed, or drained, and started again.
@Suite(.timeLimit(.minutes(3)), .serialized) struct ServerRestartTests {
    /// Each server's death comes when the record holds so many echoes more: early, so that however late it is noticed,
    /// there are calls under way.
    @Test func whatAKilledServerHandledIsInDoubtAndNothingElse() async throws {
        try await withTemporaryPath("record") { path in
            let (count, deaths) = (30_000, 3)
            var growing = GrowingRecord(path: path)
            var (server, endpoint) = try await RunningCommand.serve(on: TestPort.nextEndpoint(), "--record", path)
            let caller = try RunningCommand(["call", "--to", endpoint, "--count", "\(count)"], watching: path)
            for _ in 1...deaths {
                let before = try growing.count()
                try await caller.wait { _ in try growing.count() >= before + 300 }
                await server.killAndWait()
                (server, _) = try await RunningCommand.serve(on: endpoint, "--record", path)
            }
            #expect(await caller.finish() == 0, "\(caller.errorText)")
            #expect(caller.output.isEmpty)

            let doubted = try inDoubt(caller.errorText)
            #expect(doubted.count >= deaths, "there were calls under way when it was killed")
            let record = try Record(path: path)
            #expect(record.counts.keys.sorted() == Array(1...count), "every one was handled")
            #expect(record.sessions.count == deaths + 1)
            for (number, times) in record.counts where times > 1 {
                #expect(times <= 1 + doubted.count { $0 == number }, "\(number) was handled \(times) times")
            }
            let summary =
                "lifeline: \(count) calls: \(count) replied; "
                + "\(doubted.count) were in doubt when a session was lost, and were asked again"
            #expect(caller.errorText.split(separator: "\n").last.map(String.init) == summary)
            await server.killAndWait()
        }
    }

    /// The numbers that the command called in doubt: with `64 calls, 3–5, 8; asking again` at each loss.
    private func inDoubt(_ errorText: String) throws -> [Int] {
        var numbers: [Int] = []
        for line in errorText.split(separator: "\n") where line.contains("the session was lost") {
            // It may have answered all of them when it was killed.
            if line.hasSuffix("in doubt: nothing") { continue }
            let match = try #require(
                line.firstMatch(of: /in doubt: (?:call|(\d+) calls,) ([^;]*); asking again/),
                "\(line)"
            )
            var found: [Int] = []
            for range in match.output.2.split(separator: ", ") {
                let bounds = range.split(separator: "–").compactMap { Int($0) }
                found += try Array(#require(bounds.first)...#require(bounds.last))
            }
            #expect(found.count == match.output.1.flatMap { Int($0) } ?? 1)
            numbers += found
        }
        return numbers
    }

    /// A server that drains answers everything first, so that the next one's not knowing the session costs nothing.
    @Test func aDrainLeavesNothingInDoubt() async throws {
        try await withTemporaryPath("record") { path in
            let count = 30_000
            var growing = GrowingRecord(path: path)
            let (first, endpoint) = try await RunningCommand.serve(on: TestPort.nextEndpoint(), "--record", path)
            let caller = try RunningCommand(["call", "--to", endpoint, "--count", "\(count)"], watching: path)
            try await caller.wait { _ in try growing.count() >= 500 }
            first.send(SIGTERM)
            #expect(await first.finish() == 0)
            #expect(first.errorText.contains("draining"))
            let (second, _) = try await RunningCommand.serve(on: endpoint, "--record", path)
            #expect(await caller.finish() == 0, "\(caller.errorText)")
            #expect(caller.errorText.contains("as the server does not know it any more; in doubt: nothing\n"))
            #expect(caller.errorText.hasSuffix("\nlifeline: \(count) calls: \(count) replied\n"), "\(caller.errorText)")
            let record = try Record(path: path)
            #expect(record.counts.keys.sorted() == Array(1...count))
            #expect(record.counts.values.allSatisfy { $0 == 1 })
            await second.killAndWait()
        }
    }

    @Test func aDrainFinishesWhatIsUnderWay() async throws {
        let (server, endpoint) = try await RunningCommand.serve(on: "tcp://127.0.0.1:0", "--drain", "100")
        let watch = try RunningCommand(["call", "watch", "--to", endpoint, "--count", "50", "--interval", "0.01"])
        try await watch.wait { $0.lines.count > 1 }
        server.send(SIGTERM)
        #expect(await watch.finish() == 0, "\(watch.errorText)")
        #expect(watch.lines.count == 50)
        #expect(await server.finish() == 0)
    }

    @Test func aSecondInterruptEndsItAtOnce() async throws {
        let (server, endpoint) = try await RunningCommand.serve(on: "tcp://127.0.0.1:0", "--drain", "1000000")
        let watch = try RunningCommand([
            "call", "watch", "--to", endpoint, "--interval", "0.01", "--give-up-after", "0",
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

    /// Cuts of connections alone: the server knows the session still, and every echo is handled once.
    @Test func aSessionOutlivesItsConnections() async throws {
        try await withTemporaryPath("record") { path in
            let (server, endpoint) = try await RunningCommand.serve(on: "tcp://127.0.0.1:0", "--record", path)
            let port = try #require(Int(endpoint.split(separator: ":").last ?? ""))
            try await CuttingRelay.run(to: port, seed: 7, cuts: 5, after: 2_000...20_000) { relay in
                let count = 3000
                let arguments = ["call", "--to", "tcp://127.0.0.1:\(relay.port)", "--count", "\(count)"]
                let outcome = try await Program.product("lifeline", arguments).outcome()
                #expect(outcome.status == 0)
                #expect(relay.cutCount == 5)
                let lines = outcome.errorText.split(separator: "\n")
                #expect(lines.count { $0 == "lifeline: the session goes on" } == 5, "\(outcome.errorText)")
                #expect(lines.last.map(String.init) == "lifeline: \(count) calls: \(count) replied")
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
        try await CuttingRelay.run(to: port, seed: 13, cuts: 5, after: 2_000...10_000) { relay in
            let outcome = try await call(
                "say-all",
                "--to",
                "tcp://127.0.0.1:\(relay.port)",
                "--name",
                "Ada",
                input: lines.joined(separator: "\n")
            )
            #expect(outcome.status == 0, "\(outcome.errorText)")
            #expect(relay.cutCount == 5)
            #expect(String(decoding: outcome.output, as: UTF8.self) == "3000 said, the last one as number 3000\n")
            #expect(outcome.errorText.split(separator: "\n").count { $0 == "lifeline: the session goes on" } == 5)
        }
        try await server.wait { $0.errorText.contains("Ada left") }
        let heard = server.errorText.split(separator: "\n").filter { $0.hasPrefix("Ada: ") }
        #expect(heard.map { String($0.dropFirst("Ada: ".count)) } == lines)
        await server.killAndWait()
    }

    /// Both directions go on, and what was said comes back once, and in order.
    @Test func aTalkOutlivesItsConnections() async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let port = try #require(Int(endpoint.split(separator: ":").last ?? ""))
        // No more than the room keeps while there is no connection.
        let lines = (1...200).map { "line \($0)" }
        try await CuttingRelay.run(to: port, seed: 17, cuts: 3, after: 1_000...3_000) { relay in
            let outcome = try await call(
                "talk",
                "--to",
                "tcp://127.0.0.1:\(relay.port)",
                "--name",
                "Ada",
                input: lines.joined(separator: "\n")
            )
            #expect(outcome.status == 0, "\(outcome.errorText)")
            #expect(relay.cutCount == 3)
            let heard = String(decoding: outcome.output, as: UTF8.self).split(separator: "\n")
            #expect(heard.map(String.init) == lines.map { "Ada: \($0)" })
            #expect(outcome.errorText.split(separator: "\n").count { $0 == "lifeline: the session goes on" } == 3)
        }
        await server.killAndWait()
    }

    /// A connection that is lost is no attempt that failed.
    @Test func aCutConnectionIsMadeAgainWithoutPatience() async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let port = try #require(Int(endpoint.split(separator: ":").last ?? ""))
        try await CuttingRelay.run(to: port, seed: 11, cuts: 2, after: 3_000...4_000) { relay in
            let outcome = try await call(
                "watch",
                "--to",
                "tcp://127.0.0.1:\(relay.port)",
                "--count",
                "500",
                "--interval",
                "0.002",
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
