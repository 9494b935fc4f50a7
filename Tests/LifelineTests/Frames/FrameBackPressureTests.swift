import Lifeline
import LifelineClientTestSupport
import LifelineTestSupport
import NIOConcurrencyHelpers
import Synchronization
import Testing

/// Peers that do not read, and sends from other threads.
@Suite(.timeLimit(.minutes(2))) struct FrameBackPressureTests {
    private static let payload = [UInt8](repeating: 0x5A, count: 64 << 10)
    /// 128 MiB in all: many times what the queues and the kernel hold for a peer that does not read.
    private static let count = 2048
    /// The kernel held 4 MiB (a sender's tcp_wmem) for a receiver that did not read. Here bytes go there and back, and
    /// the queues hold some, too.
    private static let mostThatCanBeHeld = 24 << 20

    /// Closes only when everything was written, however long the reader pauses.
    private static var patient: ConnectionConfiguration {
        var configuration = ConnectionConfiguration()
        configuration.closeTimeout = .seconds(3_600)
        return configuration
    }

    @Test func aPeerThatDoesNotReadIsNotReadEither() async throws {
        let frame = try RawMessage(bytes: Self.payload).withDelimitedBytes { Array($0) }
        let handled = Atomic(0)
        try await withTestServer(handler: echo) { other in
            var configuration = ServerConfiguration()
            configuration.connection = Self.patient
            try await withTestFrameServer(configuration: configuration) { _ in
                TestHandler { frames, replies in
                    for payload in frames { try replies.write(payload) }
                    handled.add(frames.count, ordering: .relaxed)
                }
            } _: { server in
                let peer = try await RawSocket.connect(toPort: #require(try await server.boundEndpoint.port))
                async let written: Void = {
                    for _ in 0..<Self.count { try await peer.write(frame) }
                    try peer.finish()
                }()
                try await settle(handled, on: other)
                #expect(handled.load(ordering: .relaxed) * Self.payload.count < Self.mostThatCanBeHeld)

                // When the peer reads, everything arrives.
                #expect(try await peer.read().count == Self.count * frame.count)
                try await written
            }
        }
        #expect(handled.load(ordering: .relaxed) == Self.count)
    }

    @Test func sendThrowsWhenItIsFullUntilThereIsRoom() async throws {
        let listener = try await RawSocket.listen()
        try await withFrameConnection(
            to: .tcp(host: "127.0.0.1", port: UInt16(listener.port)),
            configuration: Self.patient
        ) { _ in
            TestHandler.echo()
        } _: { connection in
            let peer = try await listener.accept()
            let isFull = Event()
            async let sent: Int = {
                var refusalCount = 0
                for _ in 0..<Self.count {
                    while true {
                        do {
                            try connection.send(bytes: Self.payload)
                            break
                        } catch let error as ConnectionError where error.code == .sendQueueFull {
                            refusalCount += 1
                            isFull.signal()
                            try await connection.waitForRoom()
                        }
                    }
                }
                connection.close()
                return refusalCount
            }()
            try await isFull.wait()
            #expect(try await peer.read().count == Self.count * (Self.payload.count + 3))
            #expect(try await sent > 0)
            let error = #expect(throws: ConnectionError.self) { try connection.send(bytes: []) }
            #expect(error?.code == .sendingFinished)
            let refusal = await connectionError { try await connection.waitForRoom() }
            #expect(refusal?.code == .sendingFinished)
        }
    }

    /// Sends until there is no room, to a peer that does not read.
    private func fill(_ connection: FrameConnection) throws -> Int {
        var count = 0
        while true {
            do {
                try connection.send(bytes: Self.payload)
                count += 1
            } catch let error as ConnectionError where error.code == .sendQueueFull {
                return count
            }
        }
    }

    @Test func waitingForRoomCanBeCancelled() async throws {
        let listener = try await RawSocket.listen()
        try await withFrameConnection(
            to: .tcp(host: "127.0.0.1", port: UInt16(listener.port)),
            configuration: Self.patient
        ) { _ in
            TestHandler.echo()
        } _: { connection in
            let peer = try await listener.accept()
            var accepted = 0
            var wasCancelled = false
            // The kernel makes room as it accepts bytes, and finally accepts no more.
            while !wasCancelled, accepted * Self.payload.count < Self.mostThatCanBeHeld {
                accepted += try fill(connection)
                let waiting = Task { try await connection.waitForRoom() }
                waiting.cancel()
                do {
                    try await waiting.value
                } catch is CancellationError {
                    wasCancelled = true
                }
            }
            #expect(wasCancelled)
            connection.close()
            #expect(try await peer.read().count == (accepted * (Self.payload.count + 3)))
        }
    }

    /// The frames of each sender and the replies keep their order, however they are interleaved.
    @Test func sendsOfOtherThreadsWhileTheHandlerReplies() async throws {
        let (senderCount, count) = (4, 5000)
        try await withTestFrameServer { connection in
            for sender in 1...senderCount {
                Task {
                    for index in 0..<count {
                        while true {
                            do {
                                try connection.send(TestMessage(number: sender * count + index))
                                break
                            } catch let error as ConnectionError where error.code == .sendQueueFull {
                                try await connection.waitForRoom()
                            }
                        }
                    }
                }
            }
            return TestHandler.echo()
        } _: { server in
            try await withTestConnection(to: server.boundEndpoint) { connection in
                async let sending: Void = connection.send(contentsOf: (0..<count).lazy.map { TestMessage(number: $0) })
                var next = [Int](repeating: 0, count: senderCount + 1)
                for try await message in connection.messages {
                    let number = try #require(message.number)
                    if next[number / count] != number % count { break }
                    next[number / count] += 1
                    if next.allSatisfy({ $0 == count }) { break }
                }
                #expect(next.allSatisfy { $0 == count })
                try await sending
            }
        }
    }
}
