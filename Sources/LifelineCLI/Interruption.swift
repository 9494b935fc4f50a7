internal import Glibc
internal import UnixSignals

/// The first SIGINT or SIGTERM, for which the process is not ended. A second one ends it at once.
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

    /// Waits for it, and returns its number; nil when the task is cancelled.
    func wait() async -> Int32? {
        for await signal in first { return signal.rawValue }
        return nil
    }
}
