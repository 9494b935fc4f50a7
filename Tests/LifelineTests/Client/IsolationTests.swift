import Lifeline
import LifelineClientTestSupport
import Testing

/// A task that sends and receives messages resumes in its own isolation.
@Suite(.timeLimit(.minutes(1))) struct IsolationTests {
    /// A send waits until the one before it is written.
    private var configuration: ConnectionConfiguration {
        var configuration = ConnectionConfiguration()
        configuration.outboundWaterMarks = WaterMarks(low: 0, high: 1)
        return configuration
    }

    @Test func onTheMainActor() async throws {
        try await withTestServer(handler: echo) { server in
            try await withTestConnection(to: server.boundEndpoint, configuration: configuration) { connection in
                try await exchangeOnTheMainActor(connection)
            }
        }
    }

    @MainActor private func exchangeOnTheMainActor(_ connection: TestConnection) async throws {
        var count = 0
        for number in 0..<50 {
            for _ in 0..<3 {
                try await connection.send(TestMessage(number: number))
                MainActor.preconditionIsolated()
            }
            for try await echo in connection.messages {
                MainActor.preconditionIsolated()
                #expect(echo.number == number)
                count += 1
                if count % 3 == 2 { break }
            }
            var iterator = connection.messages.makeAsyncIterator()
            let echo = try await iterator.next()
            MainActor.preconditionIsolated()
            #expect(echo?.number == number)
            count += 1
        }
    }

    @Test func onAnActor() async throws {
        try await withTestServer(handler: echo) { server in
            try await withTestConnection(to: server.boundEndpoint, configuration: configuration) { connection in
                let user = User()
                async let sending: Void = user.send(to: connection)
                try await user.take(from: connection)
                try await sending
                #expect(await user.takenCount == User.count)
            }
        }
    }

    @Test func aLoopOnAnActorIsCancelled() async throws {
        try await withTestServer(handler: echo) { server in
            try await withTestConnection(to: server.boundEndpoint) { connection in
                let user = User()
                let taking = Task { try await user.take(from: connection) }
                taking.cancel()
                await #expect(throws: CancellationError.self) { try await taking.value }
                let reply = try await roundTrip(TestMessage(number: 7), on: connection)
                #expect(reply?.number == 7)
            }
        }
    }
}

/// Sends and receives at the same time.
private actor User {
    static let count = 200
    private(set) var takenCount = 0

    func send(to connection: TestConnection) async throws {
        for number in 0..<Self.count {
            try await connection.send(TestMessage(number: number))
            preconditionIsolated()
        }
    }

    func take(from connection: TestConnection) async throws {
        for try await message in connection.messages {
            preconditionIsolated()
            #expect(message.number == takenCount)
            takenCount += 1
            if takenCount == Self.count { return }
        }
    }
}
