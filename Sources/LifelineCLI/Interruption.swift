internal import Glibc
internal import UnixSignals

/// The first SIGINT or SIGTERM, which does not end the process. A second one ends it at once.
struct Interruption: Sendable {
    private let first: AsyncStream<UnixSignal>

    /// Catches signals from now on.
    init() async {
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        let (first, continuation) = AsyncStream.makeStream(of: UnixSignal.self)
        self.first = first
        Task {
            for await signal in signals {
                if case .terminated = continuation.yield(signal) { _exit(128 + signal.rawValue) }
                continuation.finish()
            }
        }
    }

    /// Waits for the signal, and returns its number; nil when the task is cancelled.
    func wait() async -> Int32? {
        for await signal in first { return signal.rawValue }
        return nil
    }
}

/// Runs `body`, and cancels it when the user interrupts.
///
/// - Throws: `Interrupted`; what `body` throws.
func untilInterrupted(
    _ interruption: Interruption,
    _ body: @escaping @Sendable () async throws -> Void
) async throws {
    try await withThrowingTaskGroup(of: Bool.self) { group in
        group.addTask {
            try await body()
            return true
        }
        group.addTask {
            if let signal = await interruption.wait() { throw Interrupted(signal: signal) }
            return false
        }
        // The second task ends without a signal only when it is cancelled.
        while try await group.next() == false {}
        group.cancelAll()
    }
}
