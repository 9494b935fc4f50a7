public import LifelineCore
public import LifelineMessages
public import Logging

/// Runs a client, and `body` with it. See `Client`.
///
/// When `body` returns, the client closes, or a close that is under way is awaited: accepted messages are written, and
/// the peer ends its side. When `body` throws or the task is cancelled, the connection is cut. When the call returns,
/// no task of the client is left.
///
/// - Throws: what `body` throws; `CancellationError`.
public nonisolated(nonsending) func withClient<Received: DelimitedMessage, Sent: DelimitedMessage, Result>(
    to endpoint: Endpoint,
    configuration: ClientConfiguration = ClientConfiguration(),
    receiving: Received.Type,
    sending: Sent.Type,
    heartbeat: HeartbeatMessages<Received, Sent>? = nil,
    logger: Logger = Logger(label: "lifeline.client"),
    _ body: nonisolated(nonsending) (Client<Received, Sent>) async throws -> Result
) async throws -> Result {
    let client = Client(
        to: endpoint,
        configuration: configuration,
        receiving: receiving,
        sending: sending,
        heartbeat: heartbeat,
        logger: logger
    )
    // Cancelled and awaited when `body` throws.
    async let running: Void = client.run()
    let result = try await body(client)
    await client.closeInOrder()
    try await running
    return result
}
