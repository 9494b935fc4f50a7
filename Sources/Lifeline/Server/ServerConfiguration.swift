public import LifelineCore
internal import LifelineTransport

/// How a server behaves.
public struct ServerConfiguration: Sendable {
    /// How each connection behaves. Its `connectTimeout` bounds the handshakes of TLS and WebSocket, and its `tls`
    /// plays no part.
    public var connection = ConnectionConfiguration()

    /// How many connections may be open at once; a connection counts until its handler has returned. Values below 1
    /// count as 1. Default: 10,000, which the descriptor limits of a server allow (`ulimit -n`), and which take some
    /// 50 MB while they are idle.
    ///
    /// At the limit, connections make way whose peers have said nothing, as `closesSilentConnections` has it. Where
    /// there are none, accepting pauses: further clients wait in the kernel's backlog.
    ///
    /// A peer that says nothing has its place for as long as nobody else wants it. Where peers always have something to
    /// say, give `ConnectionConfiguration.idleTimeout` a value as well, such as twice the heartbeat's interval; TLS and
    /// WebSocket have `ConnectionConfiguration.connectTimeout` for their handshakes, sessions
    /// `SessionServerConfiguration.helloTimeout`.
    public var maximumConnections = 10_000

    /// Whether a connection makes way for another one at the limit of `maximumConnections` when its peer has sent no
    /// byte of a message yet, or, on a server of sessions, was not let in yet: the oldest one first. It fails with
    /// `overloaded`. Default: true, or a peer that opens connections and says nothing would keep everybody else out.
    /// Set it to false where peers only listen and send no heartbeats either.
    public var closesSilentConnections = true

    /// How much memory the connections may take together, in bytes, for what they keep between reads and writes: frames
    /// that have come in part, messages that wait for a handler which does not read, and what peers do not take. Over
    /// it, the connections that have been idle for longest are closed with `overloaded`. Default: 256 MiB, a thousand
    /// connections whose queues are full. Give a server with more connections that are slow, or with long messages,
    /// more.
    ///
    /// A connection that keeps less than 4 KiB is not counted; idle ones take about as much.
    public var memoryBudget = 256 << 20

    /// How many clients the kernel holds that are not accepted yet. Default: 1,024; the system may cap it
    /// (`net.core.somaxconn`).
    public var backlog = 1024

    /// How long the handlers may go on when the server shuts down by graceful shutdown, or by the end of the body of
    /// `withServer` and the like. Default: 10 s, a third of what orchestrators usually give a process.
    public var shutdownGracePeriod = Duration.seconds(10)

    /// The side that ends first when the server shuts down. Default: the handlers, since those that answer could not
    /// any more once this side of their connections has ended.
    public var shutdownOrder = ShutdownOrder.handlersFirst

    /// Where handlers run. Default: on the event loop of their connection.
    public var handlerExecutor = HandlerExecutor.eventLoop

    /// How TLS is spoken on an endpoint `tls` or `wss`, which need it. Default: nil.
    public var tls: TLSServerConfiguration?

    /// Which requests for a WebSocket are taken, on endpoints `ws` and `wss`. Default: those for the endpoint's path,
    /// from programs and from pages of the same host.
    public var webSocket = WebSocketServerConfiguration()

    /// Makes a configuration with the default values.
    public init() {}
}

/// Where a server runs its handlers, and the interceptors around them. It says nothing of a `FrameHandler`, which is
/// always on its connection's loop, nor of the functions of a configuration, `authenticate` and the like.
public enum HandlerExecutor: Sendable {
    /// On the thread that reads and writes the connection which the handler began with, and with it the actors that it
    /// calls, unless they have executors of their own: an answer costs no switch between threads, which takes longer
    /// than most handlers do. Nothing must block there, nor compute or send for milliseconds without a pause, such as
    /// `Task.yield()`: all connections of the loop, their pings included, and new ones, wait meanwhile. A server has a
    /// loop for each core.
    case eventLoop
    /// On the threads that Swift has for tasks, one for each core. For handlers that compute for milliseconds at a
    /// time, or block for as long; what blocks for longer needs a thread of its own.
    case globalPool

    /// What runs the handlers of a connection; nil: whatever runs the task that begins them.
    ///
    /// - Parameter loop: what runs the connection's tasks on its event loop.
    func executor(onLoop loop: (any TaskExecutor)?) -> (any TaskExecutor)? {
        switch self {
        case .eventLoop: loop
        case .globalPool: globalConcurrentExecutor
        }
    }

    /// What runs the task that begins the handlers of a listener's connections.
    func executor(of listener: any TransportListener) -> (any TaskExecutor)? {
        switch self {
        case .eventLoop: listener.executor
        case .globalPool: globalConcurrentExecutor
        }
    }
}

/// Which side of its connections a server ends first when it shuts down. Delimited messages have no word for "no more
/// of them, please": a peer learns it from the end of this side, after which nothing can be sent to it.
public enum ShutdownOrder: Sendable {
    /// The handlers' messages end with what has arrived. They send what they still have to, and return; then this side
    /// ends, and what the peer has still sent is dropped until it ends its own. For protocols with answers: what was
    /// not answered was not handled, and a peer can tell.
    case handlersFirst

    /// This side ends at once, after what was accepted; sends fail with `sendingFinished` from then on. The messages go
    /// on until the peer has ended its own side, as a `Client` does when it has written what it had accepted. Nothing
    /// that was sent is lost as long as the handler takes it within the client's `ConnectionConfiguration.closeTimeout`
    /// and the grace period. For handlers that only receive.
    case peersFirst
}
