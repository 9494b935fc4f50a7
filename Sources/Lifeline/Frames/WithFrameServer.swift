public import LifelineCore
internal import LifelineRuntime
internal import LifelineTransport
public import Logging

extension Server {
    /// Makes a server that has a handler of its own take the frames of each connection. It does nothing until it is
    /// run.
    ///
    /// When a peer has ended its side, what was accepted is written, and its connection is closed. A handler that
    /// throws has its connection cut; the error and the peer are logged.
    ///
    /// When the server shuts down, by `ServerConfiguration.shutdownOrder`, either handlers' input ends with what has
    /// come, and their connections are closed gracefully (what other threads have sent until then goes out, and no
    /// more); or this side ends first, and handlers go on, without being able to answer, until the peers end theirs.
    ///
    /// - Parameters:
    ///   - logger: gets what happens to single connections.
    ///   - makeHandler: called for each connection, on its event loop, when it stands and nothing was read.
    public convenience init<Handler: FrameHandler & ~Copyable>(
        listeningOn endpoint: Endpoint,
        configuration: ServerConfiguration = ServerConfiguration(),
        logger: Logger = Logger(label: "lifeline.server"),
        frameHandler makeHandler: @escaping @Sendable (FrameConnection) -> Handler
    ) {
        let limit = configuration.connection.maximumFrameLength
        self.init(
            listeningOn: endpoint,
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
            }
        )
    }
}

/// Runs a server of frames, and `body` with it once it listens;
/// `Server.init(listeningOn:configuration:logger:frameHandler:)` says what it does.
///
/// When `body` returns, the server shuts down with the configuration's grace period, as `Server.shutdown(gracePeriod:)`
/// says; when it throws or the task is cancelled, connections are cut.
///
/// - Throws: `ConnectionError` when listening fails; what `body` throws.
public nonisolated(nonsending) func withFrameServer<Handler: FrameHandler & ~Copyable, Result>(
    listeningOn endpoint: Endpoint,
    configuration: ServerConfiguration = ServerConfiguration(),
    logger: Logger = Logger(label: "lifeline.server"),
    handler makeHandler: @escaping @Sendable (FrameConnection) -> Handler,
    _ body: nonisolated(nonsending) (Server) async throws -> Result
) async throws -> Result {
    let server = Server(
        listeningOn: endpoint,
        configuration: configuration,
        logger: logger,
        frameHandler: makeHandler
    )
    return try await server.lifecycle.withRunning(server, body)
}
