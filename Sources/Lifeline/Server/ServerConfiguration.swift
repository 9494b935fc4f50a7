public import LifelineCore
internal import LifelineTransport

/// How a server behaves.
public struct ServerConfiguration: Sendable {
    /// The settings of each connection. `connectTimeout` bounds the handshakes of TLS and WebSocket; `tls` is ignored.
    public var connection = ConnectionConfiguration()

    /// The largest number of open connections; a connection counts until its handler has returned. Values below 1 count
    /// as 1. Default: 10,000, which the usual descriptor limits of a server allow (`ulimit -n`). That many idle
    /// connections take some 50 MB.
    ///
    /// At the limit, connections whose peers have sent nothing are closed: see `closesSilentConnections`. If there are
    /// none, accepting pauses, and further clients wait in the kernel's backlog.
    ///
    /// A silent peer keeps its place until another client needs it. If peers always send something, set
    /// `ConnectionConfiguration.idleTimeout` as well, for example to twice the heartbeat's interval. For handshakes,
    /// TLS and WebSocket have `ConnectionConfiguration.connectTimeout`, and sessions have
    /// `SessionServerConfiguration.helloTimeout`.
    public var maximumConnections = 10_000

    /// Whether, at the limit of `maximumConnections`, a silent connection is closed to make room for a new one. A
    /// connection is silent while its peer has sent no byte of a message, or, on a server of sessions, was not let in
    /// yet. The oldest one is closed first, with `overloaded`. Default: true, because otherwise a peer could keep
    /// everybody else out with connections that send nothing. Set it to false if peers only listen and send no
    /// heartbeats.
    public var closesSilentConnections = true

    /// The number of bytes that all connections together may keep between reads and writes: incomplete frames, messages
    /// that wait for a handler, and bytes that peers do not take. Above it, the connections that have been idle for
    /// longest are closed with `overloaded`. Default: 256 MiB, a thousand connections with full queues. Raise it for
    /// more slow connections, or for long messages.
    ///
    /// A connection that keeps less than 4 KiB is not counted; idle ones take about as much.
    public var memoryBudget = 256 << 20

    /// How many clients that are not accepted yet the kernel holds. Default: 1,024; the system may cap it
    /// (`net.core.somaxconn`).
    public var backlog = 1024

    /// How long handlers may go on at a graceful shutdown, or after the body of `withServer` or a similar function has
    /// returned. Default: 10 s, a third of what orchestrators usually give a process.
    public var shutdownGracePeriod = Duration.seconds(10)

    /// The side that ends first when the server shuts down. Default: the handlers, because they cannot answer once this
    /// side of their connections has ended.
    public var shutdownOrder = ShutdownOrder.handlersFirst

    /// Where handlers run. Default: on the event loop of their connection.
    public var handlerExecutor = HandlerExecutor.eventLoop

    /// The TLS settings for endpoints `tls` and `wss`, which need them. Default: nil.
    public var tls: TLSServerConfiguration?

    /// The rule for accepting WebSocket requests, on endpoints `ws` and `wss`. Default: requests for the endpoint's
    /// path are accepted from programs, and from pages of the same host.
    public var webSocket = WebSocketServerConfiguration()

    /// Makes a configuration with the default values.
    public init() {}
}

/// Where a server runs its handlers, and the interceptors around them. It affects neither a `FrameHandler`, which
/// always runs on its connection's loop, nor functions of a configuration such as `authenticate`.
public enum HandlerExecutor: Sendable {
    /// On the thread that reads and writes the connection on which the handler began. Actors that it calls run there
    /// too, unless they have their own executors. An answer then costs no switch between threads, which would take
    /// longer than most handlers. Handlers must not block there, nor compute or send for milliseconds without a pause
    /// such as `Task.yield()`, because all connections of the loop, their pings, and new connections wait meanwhile. A
    /// server has a loop for each core.
    case eventLoop
    /// On Swift's threads for tasks, one for each core. For handlers that compute or block for milliseconds at a time.
    /// Work that blocks for longer needs its own thread.
    case globalPool

    /// Returns the executor for the handlers of a connection; nil for the executor of the task that starts them.
    ///
    /// - Parameter loop: the executor of the connection's event loop.
    func executor(onLoop loop: (any TaskExecutor)?) -> (any TaskExecutor)? {
        switch self {
        case .eventLoop: loop
        case .globalPool: globalConcurrentExecutor
        }
    }

    /// Returns the executor of the task that starts the handlers of a listener's connections.
    func executor(of listener: any TransportListener) -> (any TaskExecutor)? {
        switch self {
        case .eventLoop: listener.executor
        case .globalPool: globalConcurrentExecutor
        }
    }
}

/// The side of its connections that a server ends first when it shuts down. Delimited messages cannot ask a peer to
/// stop sending. The peer learns it only from the end of this side, and then nothing more can be sent to it.
public enum ShutdownOrder: Sendable {
    /// The handlers' messages end after those that have arrived. The handlers send their last messages and return. Then
    /// this side ends, and later messages of the peer are dropped until the peer ends its side. For protocols with
    /// answers: the peer knows that a message without an answer was not handled.
    case handlersFirst

    /// This side ends at once, after the messages that were accepted; later sends fail with `sendingFinished`. Messages
    /// still arrive until the peer has ended its side, as a `Client` does after it has written all accepted messages.
    /// No message is lost as long as the handler takes it within the client's `ConnectionConfiguration.closeTimeout`
    /// and the grace period. For handlers that only receive.
    case peersFirst
}
