#if Store
import Foundation
import GRDB
import Lifeline
import LifelineStore
import LifelineTestSupport
import Testing

/// `lifeline call --durable` and `lifeline serve --store` while both are killed.
@Suite(.timeLimit(.minutes(3)), .serialized) struct DurableCommandTests {
    private func writeRequests(_ numbers: ClosedRange<Int>, to file: String) throws {
        let requests = numbers.map { "{\"number\": \($0)}" }.joined(separator: "\n")
        try Data(requests.utf8).write(to: URL(filePath: file))
    }

    /// The numbers of the replies.
    private func replied(_ command: RunningCommand) throws -> [Int] {
        try command.lines.map { line in
            try #require(line.firstMatch(of: /"number":"(\d+)"/).flatMap { Int($0.output.1) }, "\(line)")
        }
    }

    private func caller(_ endpoint: String, _ requests: String, _ store: String) throws -> RunningCommand {
        try RunningCommand([
            "call", endpoint, "Room/Echo", "--data", "@\(requests)", "--concurrency", "64", "--durable", store,
        ])
    }

    /// Every echo is handled once, and none is in doubt.
    @Test func nothingIsInDoubtWhateverIsKilled() async throws {
        try await withTemporaryPath("durable") { path in
            let (room, calls, requests) = (path + ".room", path + ".calls", path + ".requests")
            let (first, endpoint) = try await RunningCommand.serve(on: TestPort.nextEndpoint(), "--store", room)
            var server = first
            try writeRequests(1...6_000, to: requests)
            var command = try caller(endpoint, requests, calls)
            for _ in 1...2 {
                let before = command.lines.count
                try await command.wait { $0.lines.count >= before + 200 }
                await server.killAndWait()
                (server, _) = try await RunningCommand.serve(on: endpoint, "--store", room)
            }
            #expect(await command.finish() == 0, "\(command.errorText)")
            #expect(!command.errorText.contains("in doubt: {"))
            #expect(try replied(command).sorted() == Array(1...6_000))

            // The client is killed, and the next one gets the replies to its open calls. A kill may hit a moment
            // without open calls, so there are several.
            var before: [Int] = []
            var lateCount = 0
            for round in 1...4 {
                try writeRequests(round * 100_000 + 1...round * 100_000 + 90_000, to: requests)
                command = try caller(endpoint, requests, calls)
                try await command.wait { $0.lines.count >= 300 }
                await command.killAndWait()
                let replies = try replied(command)
                lateCount += replies.count { $0 / 100_000 < round }
                before += replies
            }
            try writeRequests(900_001...901_000, to: requests)
            command = try caller(endpoint, requests, calls)
            #expect(await command.finish() == 0, "\(command.errorText)")
            let replies = try replied(command)
            #expect(replies.filter { $0 > 900_000 }.sorted() == Array(900_001...901_000))
            lateCount += replies.count { $0 < 900_000 }
            #expect(lateCount > 0, "there were calls under way when it was killed")
            await server.killAndWait()

            let store = try SQLiteSessionStore(path: room, for: .server)
            let handled = try await store.database.read { try Int.fetchAll($0, sql: "SELECT number FROM room_echo") }
            #expect(Set(handled).count == handled.count, "some were handled twice")
            #expect(Set(handled).isSuperset(of: before + replies))
        }
    }

    @Test func aStoreThatCannotBeUsedIsToldOf() async throws {
        try await withTemporaryPath("durable") { path in
            let (server, endpoint) = try await RunningCommand.serve(on: "tcp://127.0.0.1:0", "--store", path)
            // The file belongs to a server, and is in use.
            let outcome = try await call(endpoint, "Echo", "--durable", path)
            #expect(outcome.status == 74 && outcome.errorText.contains("inUse"), "\(outcome.errorText)")
            let watch = try await call(endpoint, "Watch", "--durable", path + ".calls")
            #expect(watch.status == 64 && watch.errorText.contains("--durable goes with"), "\(watch.errorText)")
            await server.killAndWait()
        }
    }

    @Test func callsAreCountedDurably() async throws {
        try await withTemporaryPath("durable") { path in
            let (server, endpoint) = try await RunningCommand.serve(on: "tcp://127.0.0.1:0", "--store", path)
            let options = ["--durable", path + ".calls", "--concurrency", "16"]
            let outcome = try await Program.product(
                "lifeline",
                ["call", endpoint, "Room/Echo", "--count", "500"] + options
            ).outcome()
            #expect(outcome.status == 0, "\(outcome.errorText)")
            #expect(String(decoding: outcome.output, as: UTF8.self).hasPrefix("500 calls in "))
            let push = try await call(
                endpoint,
                "Report",
                "--data",
                "{\"text\": \"here\"}",
                "--durable",
                path + ".calls"
            )
            #expect(push.status == 0, "\(push.errorText)")
            try await server.wait { $0.errorText.contains("reports: here") }
            await server.killAndWait()
        }
    }
}
#endif
