internal import Dispatch
internal import Glibc

/// The first SIGINT or SIGTERM, for which the process is not ended. A second one ends it at once.
struct Interruption: Sendable {
    private let signals: AsyncStream<Int32>

    /// Catches signals from now on, until it has been waited for.
    init() {
        let (signals, continuation) = AsyncStream.makeStream(of: Int32.self)
        self.signals = signals
        let queue = DispatchQueue(label: "lifeline.signals")
        for number in [SIGINT, SIGTERM] {
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            // It has itself, and lives as long as the process.
            source.setEventHandler { [source] in
                _ = source
                if case .terminated = continuation.yield(number) { _exit(128 + number) }
                continuation.finish()
            }
            source.resume()
        }
    }

    /// Waits for it. Nil when the task is cancelled.
    func wait() async -> Int32? {
        for await number in signals { return number }
        return nil
    }
}
