/// How a server behaves.
public struct ServerConfiguration: Sendable {
    /// How each connection behaves. Its `connectTimeout` bounds the WebSocket handshake.
    public var connection = ConnectionConfiguration()

    /// How many connections may be open at once; a connection counts until its handler has returned. Values below 1
    /// count as 1. Default: 10,000, which the descriptor limits of a server allow (`ulimit -n`), and which take some
    /// 50 MB while they are idle.
    ///
    /// At the limit accepting pauses: further clients wait in the kernel's backlog.
    public var maximumConnections = 10_000

    /// How many clients the kernel holds that are not accepted yet. Default: 1,024; the system may cap it
    /// (`net.core.somaxconn`).
    public var backlog = 1024

    /// How long the handlers may go on when the server shuts down by leaving `withServer`. Default: 10 s, a third of
    /// what orchestrators usually give a process.
    public var shutdownGracePeriod = Duration.seconds(10)

    /// Which requests for a WebSocket are taken, on endpoints `ws` and `wss`. Default: those for the endpoint's path, from
    /// programs and from pages of the same host.
    public var webSocket = WebSocketServerConfiguration()

    /// Makes a configuration with the default values.
    public init() {}
}
