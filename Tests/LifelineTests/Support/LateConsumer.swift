import Lifeline
import LifelineClientTestSupport
import LifelineTestSupport
import Synchronization
import Testing

/// A sender, and a server's handler that does not iterate until the sender is blocked.
final class LateConsumer: Sendable {
    private let message: TestMessage
    private let count: Int
    private let mostThatCanBeHeld: Int
    private let goOn = Event()
    private let done = Event()
    private let received = Atomic(0)

    /// - Parameters:
    ///   - message: the message that is sent `count` times.
    ///   - mostThatCanBeHeld: how many bytes the queues and the kernel may hold before the handler iterates.
    init(message: TestMessage, count: Int, mostThatCanBeHeld: Int) {
        self.message = message
        self.count = count
        self.mostThatCanBeHeld = mostThatCanBeHeld
    }

    var receivedCount: Int { received.load(ordering: .relaxed) }

    /// The handler.
    func consume(_ connection: TestConnection) async throws {
        try await goOn.wait()
        for try await _ in connection.messages { received.add(1, ordering: .relaxed) }
        done.signal()
    }

    /// Sends everything, and checks that sending is blocked until the handler iterates.
    func checkSender(_ connection: TestConnection) async throws {
        try await withTestServer(handler: echo) { other in
            let accepted = Atomic(0)
            async let sending: Void = {
                for _ in 0..<count {
                    try await connection.send(message)
                    accepted.add(1, ordering: .relaxed)
                }
                try await connection.finishSending()
            }()
            try await settle(accepted, on: other)
            #expect(accepted.load(ordering: .relaxed) * message.payload.count < mostThatCanBeHeld)
            goOn.signal()
            try await sending
            try await done.wait()
        }
    }
}
