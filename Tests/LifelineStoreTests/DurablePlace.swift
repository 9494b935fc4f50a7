#if Store
import Lifeline
import LifelineStore
import LifelineTestSupport

/// A server's endpoint, and the stores of the server and a client.
struct DurablePlace {
    let endpoint: Endpoint
    let clientPath: String
    let serverPath: String

    func withClient(
        closeTimeout: Duration = .zero,
        frameLimit: Int? = nil,
        _ body: (SessionClient) async throws -> Void
    ) async throws {
        let store = try SQLiteSessionStore(path: clientPath, for: .client(of: endpoint))
        var configuration = SessionClientConfiguration()
        configuration.store = store
        configuration.closeTimeout = closeTimeout
        if let frameLimit { configuration.client.connection.maximumFrameLength = frameLimit }
        configuration.client.backoff.initialDelay = .milliseconds(10)
        configuration.client.backoff.maximumAttempts = nil
        try await withSessionClient(to: endpoint, configuration: configuration, body)
        try store.close()
    }
}

/// Calls `body` with a place of its own.
func withDurablePlace(_ body: (DurablePlace) async throws -> Void) async throws {
    try await withTemporaryPath("place") { path in
        try await body(
            DurablePlace(
                endpoint: .unix(path: path + ".socket"),
                clientPath: path + ".client",
                serverPath: path + ".server"
            )
        )
    }
}
#endif
