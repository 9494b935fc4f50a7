public import LifelineCore
internal import LifelineRuntime
internal import LifelineTransport
public import Logging

/// Listens on an endpoint, has a handler of its own take the frames of each connection, and runs `body` meanwhile.
///
/// Connections are spread over the process's event loops, one a core. When a peer has ended its side, what was accepted is
/// written, and its connection is closed. A handler that throws has its connection cut; the error and the peer are logged.
///
/// When `body` returns, the server shuts down with the configuration's grace period, as `Server.shutdown(gracePeriod:)`
/// says: by `shutdownOrder`, either handlers' input ends with what has come, and their connections are closed gracefully (what
/// other threads have sent until then goes out, and no more); or this side ends first, and handlers go on, without being able
/// to answer, until the peers end theirs. When `body` throws or the task is cancelled, connections are cut.
///
/// - Parameters:
///   - logger: gets what happens to single connections, as `withServer` says.
///   - makeHandler: called for each connection, on its event loop, when it stands and nothing was read.
/// - Throws: `ConnectionError` when listening fails; what `body` throws.
public nonisolated(nonsending) func withFrameServer<Handler: FrameHandler & ~Copyable, Result>(
    listeningOn endpoint: Endpoint,
    configuration: ServerConfiguration = ServerConfiguration(),
    logger: Logger = Logger(label: "lifeline.server"),
    handler makeHandler: @escaping @Sendable (FrameConnection) -> Handler,
    _ body: nonisolated(nonsending) (Server) async throws -> Result
) async throws -> Result {
    let limit = configuration.connection.maximumFrameLength
    return try await serving(
        on: endpoint,
        configuration: configuration,
        maximumFrameLength: limit,
        hasHeartbeat: false,
        carrying: .delimited,
        logger: logger,
        makeReceiver: { FrameHandlerReceiver(maximumFrameLength: limit, makeHandler: makeHandler) },
        serve: { opened in
            try await opened.connection.closing {
                if let error = try await opened.inbox.wait() { throw error }
            }
        },
        body
    )
}
