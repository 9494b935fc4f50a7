import Lifeline
import LifelineTestSupport
import Testing

@Suite(.timeLimit(.minutes(2))) struct EchoTests {
    @Test func overTCP() async throws {
        try await withTestServer(handler: echo) { server in
            #expect(try await server.boundEndpoint.port != 0)
            try await withTestConnection(to: server.boundEndpoint) { connection in
                #expect(try await connection.remoteEndpoint == server.boundEndpoint)
                #expect(connection.localEndpoint.port != 0)
                for size in [0, 1, 127, 128, 300, 70_000, 1 << 20] {
                    let message = TestMessage((0..<size).map { UInt8(truncatingIfNeeded: $0) })
                    let reply = try await roundTrip(message, on: connection)
                    #expect(reply == message)
                }
            }
        }
    }

    @Test func overIPv6() async throws {
        try await withTestServer(on: .tcp(host: "::1", port: 0), handler: echo) { server in
            #expect(try await server.boundEndpoint.description.hasPrefix("tcp://[::1]:"))
            try await withTestConnection(to: server.boundEndpoint) { connection in
                let reply = try await roundTrip(TestMessage(number: 6), on: connection)
                #expect(reply?.number == 6)
            }
        }
    }

    @Test func overAUnixSocket() async throws {
        try await withTemporaryPath { path in
            try await withTestServer(on: .unix(path: path), handler: echo) { server in
                #expect(try await server.boundEndpoint == .unix(path: path))
                try await withTestConnection(to: server.boundEndpoint) { connection in
                    #expect(connection.remoteEndpoint == .unix(path: path))
                    let message = TestMessage(repeatElement(7, count: 500_000))
                    let reply = try await roundTrip(message, on: connection)
                    #expect(reply == message)
                }
            }
            #expect(!fileExists(at: path), "the server removes its file")
        }
    }

    @Test func hundredThousandMessagesThroughSmallQueues() async throws {
        var configuration = ServerConfiguration()
        configuration.connection.inboundWaterMarks = WaterMarks(low: 100, high: 1000)
        configuration.connection.outboundWaterMarks = WaterMarks(low: 100, high: 1000)
        let count = 100_000
        try await withTestServer(configuration: configuration, handler: echo) { server in
            try await withTestConnection(to: server.boundEndpoint, configuration: configuration.connection) {
                connection in
                async let sent: Void = {
                    try await connection.send(contentsOf: (0..<count).lazy.map { TestMessage(number: $0) })
                    try await connection.finishSending()
                }()
                var next = 0
                for try await message in connection.messages {
                    // `#expect` would cost more than a message.
                    if message.number != next { break }
                    next += 1
                }
                #expect(next == count)
                try await sent
            }
        }
    }

    @Test func messagesOfManySendersArriveWholeAndInEachOnesOrder() async throws {
        let (senders, count) = (20, 500)
        var configuration = ConnectionConfiguration()
        configuration.outboundWaterMarks = WaterMarks(low: 10, high: 100)
        try await withTestServer(handler: echo) { server in
            try await withTestConnection(to: server.boundEndpoint, configuration: configuration) { connection in
                try await withThrowingTaskGroup { group in
                    for sender in 0..<senders {
                        group.addTask {
                            for index in 0..<count {
                                try await connection.send(TestMessage(number: sender * count + index))
                            }
                        }
                    }
                    try await group.waitForAll()
                }
                try await connection.finishSending()
                var next = [Int](repeating: 0, count: senders)
                for try await message in connection.messages {
                    let number = try #require(message.number)
                    try #require(next[number / count] == number % count)
                    next[number / count] += 1
                }
                #expect(next.allSatisfy { $0 == count })
            }
        }
    }

    @Test func loopsThatAreLeftLoseNothing() async throws {
        try await withTestServer { connection in
            try await connection.send(contentsOf: (0..<10).map { TestMessage(number: $0) })
        } _: { server in
            try await withTestConnection(to: server.boundEndpoint) { connection in
                var numbers: [Int?] = []
                for try await message in connection.messages {
                    numbers.append(message.number)
                    if numbers.count == 3 { break }
                }
                for try await message in connection.messages {
                    numbers.append(message.number)
                    if numbers.count == 5 { break }
                }
                for try await batch in connection.messages.batches { numbers += batch.map(\.number) }
                #expect(numbers == Array(0..<10))
            }
        }
    }

    @Test func batchesHoldEverythingInOrder() async throws {
        let listener = try await RawSocket.listen()
        try await withTestConnection(to: .tcp(host: "127.0.0.1", port: UInt16(listener.port))) { connection in
            let peer = try await listener.accept()
            // They are written in one piece, so that the size of a batch does not depend on timing.
            try await peer.write((0..<5000).flatMap { try TestMessage(number: $0).delimitedBytes })
            try peer.finish()
            var numbers: [Int?] = []
            var batchCount = 0
            for try await batch in connection.messages.batches {
                #expect(!batch.isEmpty)
                numbers += batch.map(\.number)
                batchCount += 1
            }
            #expect(numbers == Array(0..<5000))
            #expect(batchCount < 2500, "messages come together, not one by one")
        }
    }
}
