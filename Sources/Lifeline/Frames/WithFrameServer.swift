public import LifelineCore
internal import LifelineRuntime
internal import LifelineTransport
public import Logging

extension Server {
    /// Makes a server that passes the frames of each connection to that connection's handler. It does nothing until it
    /// is run.
    ///
    /// When a peer has ended its side, accepted frames are written, and the connection is closed. When a handler
    /// throws, its connection is cut, and the error and the peer are logged.
    ///
    /// `ServerConfiguration.shutdownOrder` decides how the server shuts down. Either the handlers' input ends after the
    /// frames that have arrived, and the connections are closed gracefully: frames that other threads have sent until
    /// then go out, and no more. Or this side ends first, and handlers go on, without being able to answer, until the
    /// peers end their sides.
    ///
    /// - Parameters:
    ///   - logger: receives the events of single connections.
    ///   - makeHandler: called for each connection, on its event loop, when it is open and before it is read.
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

/// Runs a server of frames, and `body` with it once it listens. See
/// `Server.init(listeningOn:configuration:logger:frameHandler:)`.
///
/// When `body` returns, the server shuts down with the configuration's grace period, as `Server.shutdown(gracePeriod:)`
/// does; when it throws or the task is cancelled, connections are cut.
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
