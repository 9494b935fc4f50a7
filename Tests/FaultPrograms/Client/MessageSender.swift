import FaultSupport
import Lifeline
import LifelineProtos

/// Sends messages with the numbers 1, 2, 3… across all connections, and reports the accepted ones.
actor MessageSender {
    private let text: String
    private let sendMessage: @Sendable (Sample_Chat_V1_ChatMessage) async throws -> Void
    private var lastID: UInt64 = 0
    private var commandCount = 0
    private var flow: Task<Void, Never>?

    init(size: Int, send: @escaping @Sendable (Sample_Chat_V1_ChatMessage) async throws -> Void) {
        self.text = String(repeating: "x", count: size)
        self.sendMessage = send
    }

    /// Sends a number of messages, and reports all accepted ones together.
    func send(_ count: UInt64) async {
        commandCount += 1
        let (number, first) = (commandCount, lastID + 1)
        let acceptedCount = await sendAll(count)
        var done = FaultEvent.messages(.done, first...(first + count - 1))
        (done.attempt, done.count) = (number, acceptedCount)
        done.print()
    }

    private func sendAll(_ count: UInt64) async -> Int {
        var acceptedCount = 0
        var accepted: ClosedRange<UInt64>?
        for _ in 0..<count {
            lastID += 1
            let id = lastID
            do {
                try await sendMessage(
                    .with { message in
                        message.nonce = id
                        message.text = text
                    }
                )
                acceptedCount += 1
                accepted = (accepted?.lowerBound ?? id)...id
            } catch {
                if let ids = accepted { FaultEvent.messages(.sent, ids).print() }
                accepted = nil
                FaultEvent.refused(id, "\(error)").print()
            }
        }
        if let ids = accepted { FaultEvent.messages(.sent, ids).print() }
        return acceptedCount
    }

    /// Sends one message every `interval` from now on; zero stops this.
    func flow(every interval: Duration) async {
        flow?.cancel()
        await flow?.value
        guard interval > .zero else {
            flow = nil
            return
        }
        flow = Task {
            let clock = ContinuousClock()
            var next = clock.now
            while !Task.isCancelled {
                _ = await sendAll(1)
                next += interval
                try? await clock.sleep(until: next)
            }
        }
    }
}
