/// The end of a command that runs until it is done, something fails, or its user ends it.
struct CommandEnd: Sendable {
    private let events: AsyncThrowingStream<Never, any Error>
    private let finisher: AsyncThrowingStream<Never, any Error>.Continuation

    init() {
        (events, finisher) = AsyncThrowingStream.makeStream(of: Never.self)
    }

    /// Ends the command, which fails if there is an error. Later calls do nothing.
    func finish(throwing error: (any Error)? = nil) { finisher.finish(throwing: error) }

    /// Waits until the command is ended, the user interrupts it, or the time is over. May be called once.
    ///
    /// - Parameter duration: nil for no limit.
    func wait(or interruption: Interruption, within duration: Duration?) async throws {
        let waiting = Task { [finisher] in
            if await interruption.wait() != nil { finisher.finish() }
        }
        let timing = duration.map { duration in
            Task { [finisher] in
                try await Task.sleep(for: duration)
                finisher.finish()
            }
        }
        defer {
            waiting.cancel()
            timing?.cancel()
        }
        for try await _ in events {}
    }
}
