internal import Lifeline
internal import Logging

/// Runs `body` with the endpoint of a relay to `server`, whose connections are cut again and again.
///
/// The relay is the bad network between the two ends, which know nothing of it. It passes on the frames of the session,
/// delimited messages, without looking into them.
///
/// - Parameter messageCount: how many messages of the server a connection carries. The next one is lost with the
///   connection.
nonisolated(nonsending) func withCuttingRelay<Result>(
    to server: Endpoint,
    cuttingAfter messageCount: Int,
    logger: Logger,
    _ body: nonisolated(nonsending) (Endpoint) async throws -> Result
) async throws -> Result {
    try await withServer(
        listeningOn: Endpoint("tcp://127.0.0.1:0"),
        logger: logger,
        receiving: RawMessage.self,
        sending: RawMessage.self
    ) { downstream in
        try await withConnection(to: server, receiving: RawMessage.self, sending: RawMessage.self) { upstream in
            // An error of one direction ends the other one, too.
            try await withThrowingDiscardingTaskGroup { group in
                group.addTask {
                    for try await message in downstream.messages { try await upstream.send(message) }
                    try await upstream.finishSending()
                }
                group.addTask {
                    var passedCount = 0
                    for try await message in upstream.messages {
                        // An error that leaves their closures cuts both connections.
                        if passedCount == messageCount { throw Cut() }
                        try await downstream.send(message)
                        passedCount += 1
                    }
                    try await downstream.finishSending()
                }
            }
        }
    } _: { relay in
        try await body(relay.boundEndpoint)
    }
}

private struct Cut: Error {}
