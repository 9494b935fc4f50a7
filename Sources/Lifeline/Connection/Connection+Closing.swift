internal import LifelineCore
internal import LifelineMessages
internal import LifelineTransport

extension Connection {
    /// Runs `body` and then closes: gracefully when it returns, at once when it throws.
    nonisolated(nonsending) func closing<Result>(
        after body: nonisolated(nonsending) (Connection) async throws -> Result
    ) async throws -> Result {
        try await transport.closing { try await body(self) }
    }
}

extension Connection {
    /// Waits until the peer's system has everything that was accepted, as long as it takes something in each
    /// `patience`.
    ///
    /// For a sender that is about to cut the connection: a cut drops the bytes that are still on their way.
    ///
    /// - Returns: the number of bytes that it did not take.
    /// - Throws: `CancellationError`.
    package func waitForDelivery(patience: Duration) async throws -> Int {
        var (leastCount, lastProgress) = (Int.max, ContinuousClock.now)
        while true {
            let count = await transport.undeliveredByteCount()
            if count == 0 { return 0 }
            if count < leastCount {
                (leastCount, lastProgress) = (count, .now)
            } else if lastProgress.duration(to: .now) >= patience {
                return count
            }
            // Poll seldom when nothing moves.
            let idleTime = lastProgress.duration(to: .now)
            try await Task.sleep(for: min(max(idleTime / 4, .milliseconds(10)), .milliseconds(250)))
        }
    }
}

extension TransportConnection {
    /// Runs `body` and then closes: gracefully when it returns, at once when it throws.
    nonisolated(nonsending) func closing<Result>(
        after body: nonisolated(nonsending) () async throws -> Result
    ) async throws -> Result {
        let result: Result
        do {
            result = try await body()
        } catch {
            abort(.closedLocally)
            _ = await waitUntilClosed()
            throw error
        }
        try await closeGracefully()
        return result
    }

    private nonisolated(nonsending) func closeGracefully() async throws {
        let report = await withTaskCancellationHandler {
            close()
            return await waitUntilClosed()
        } onCancel: {
            abort(.closedLocally)
        }
        try Task.checkCancellation()
        if report.failedInUse, let failure = report.failure { throw failure }
        if report.unwrittenByteCount > 0 {
            throw ConnectionError(
                code: report.failure?.code ?? .closedLocally,
                message:
                    "Closing lost up to \(report.unwrittenByteCount) bytes that send had accepted: the peer did not "
                    + "read them in time, or went away.",
                cause: report.failure
            )
        }
    }
}
