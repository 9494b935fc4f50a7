internal import Lifeline
internal import Logging

/// Runs `body` with the endpoint of a relay to `server`, whose connections are cut again and again.
///
/// The relay simulates a bad network between the two ends, which do not notice it. It passes on the session's frames,
/// which are delimited messages, without decoding them.
///
/// - Parameter messageCount: how many of the server's messages a connection carries. The next one is lost with the
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
            // An error in one direction also ends the other one.
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
