/// Makes calls from a number of tasks. Each task makes its next call when the last one has returned.
func concurrentCalls(
    inFlight: Int,
    _ limit: SendLimit,
    _ call: @escaping @Sendable () async throws -> Void
) async throws -> Outcome {
    let begin = now()
    // Each task has a part of the messages.
    let part = SendLimit(nanoseconds: limit.nanoseconds, messages: (limit.messages + inFlight - 1) / inFlight)
    return try await withThrowingTaskGroup(of: Outcome.self) { group in
        for _ in 0..<inFlight {
            group.addTask {
                var outcome = Outcome()
                var trips = RoundTrips(inFlight: inFlight, begin: begin)
                repeat {
                    try await call()
                    outcome.messages += 1
                    trips?.end()
                } while !part.isReached(since: begin, sent: outcome.messages)
                trips?.complete(&outcome)
                return outcome
            }
        }
        var total = Outcome()
        for try await outcome in group {
            total.messages += outcome.messages
            total.median = outcome.median
            total.percentile99 = outcome.percentile99
        }
        total.nanoseconds = now() - begin
        return total
    }
}
