/// The bytes that can be on their way between two sides that answer each message before they read the next one. With
/// more, each could wait for the other to read.
let safelyHeldByteCount = 512 << 10

/// Keeps messages on their way, and sends in a separate task, so that receiving never waits for sending.
///
/// - Parameters:
///   - send: sends a number of messages.
///   - receive: returns how many have arrived, compared by the check; 0 at the end.
func echoSendingBesides(
    inFlight: Int,
    _ limit: SendLimit,
    send: @escaping @Sendable (Int) async throws -> Void,
    receive: (inout EchoCheck) async throws -> Int
) async throws -> Outcome {
    let (counts, toSend) = AsyncStream<Int>.makeStream()
    let sending = Task {
        for await count in counts { try await send(count) }
    }
    defer { sending.cancel() }
    var outcome = Outcome()
    var check = EchoCheck()
    let begin = now()
    var sent = inFlight
    toSend.yield(inFlight)
    while outcome.messages < sent {
        let count = try await receive(&check)
        guard count > 0 else { throw ConnectionEnded() }
        outcome.messages += count
        if !limit.isReached(since: begin, sent: sent) {
            sent += count
            toSend.yield(count)
        }
    }
    toSend.finish()
    try await sending.value
    outcome.nanoseconds = now() - begin
    return outcome
}

struct ConnectionEnded: Error, CustomStringConvertible {
    var description: String { "The server ended the connection." }
}
