package import LifelineCore
package import Logging

/// Makes connections that carry frames. What stands behind it (event loops, a reactor, memory) does not show.
package protocol Transport: Sendable {
    /// Connects to `endpoint`. Cancelling the task gives the attempt up with `CancellationError`; nothing of it is
    /// left in the kernel when this throws.
    ///
    /// - Throws: `ConnectionError`, `CancellationError`.
    func connect<Receiver: FrameReceiver>(
        to endpoint: Endpoint,
        options: ConnectionOptions,
        makeReceiver: @escaping @Sendable () -> Receiver
    ) async throws -> OpenedConnection<Receiver.Inbox>

    /// Listens on `endpoint` and makes a receiver for each connection accepted.
    func listen<Receiver: FrameReceiver>(
        on endpoint: Endpoint,
        options: ListenerOptions,
        makeReceiver: @escaping @Sendable () -> Receiver
    ) async throws(ConnectionError) -> any TransportListener<Receiver.Inbox>

    /// Runs tasks where all of its connections' frames come in; nil where there is no one such place.
    var executor: (any TaskExecutor)? { get }
}

extension Transport {
    package var executor: (any TaskExecutor)? { nil }
}

/// Takes what comes in on one connection. It lives on the transport's thread, which makes one call at a time, and puts
/// what it makes of the frames into its inbox.
package protocol FrameReceiver: FrameRunSink, SendableMetatype {
    /// Where a consumer on another thread finds what was received.
    associatedtype Inbox: Sendable
    /// Where a consumer on another thread finds what was received.
    var inbox: Inbox { get }
    /// Where the receiver writes what is to be sent when all frames of a part have been received; nil: nowhere.
    var replyBuffer: ReplyBuffer? { get }
    /// The connection stands. Called once, before any frame is received.
    mutating func opened(_ connection: any TransportConnection)
    /// Whether frames may have to be answered also when none is for the inbox any more.
    var answersPings: Bool { get }
    /// How much of a read is received before the tasks that it wakes run. Always the same.
    var partLimit: PartLimit { get }
    /// How much the inbox holds, in bytes. Asked for while it does not take more.
    var inboxByteCount: Int { get }
    /// All frames of one read, or of a part of it, have been received. Tells whether to read on.
    mutating func finishBatch() -> ReadDemand
    /// Frames, prefixes included, that answer what has come and are to be written at once: mostly none. Called after
    /// each `finishBatch()`; what it throws fails the connection.
    mutating func takeReplies() throws(ConnectionError) -> [UInt8]
    /// The frame, prefix included, that asks the peer for a sign of life; nil when this connection has none. What it
    /// throws fails the connection.
    func pingFrame(number: UInt64) throws(ConnectionError) -> [UInt8]?
    /// No frame is for the inbox any more: normally when `error` is nil. Called once.
    ///
    /// While this side may still send, a receiver that `answersPings` is shown later frames all the same;
    /// `finishBatch()` says `refused` then.
    mutating func finish(throwing error: ConnectionError?)
}

extension FrameReceiver {
    package var replyBuffer: ReplyBuffer? { nil }
    package var inboxByteCount: Int { 0 }
    /// 8,192 frames: as many of 32 bytes as the longest read brings. A read of nothing but prefixes has 262,144.
    package var partLimit: PartLimit { PartLimit(frameCount: 8192) }
    package mutating func opened(_ connection: any TransportConnection) {}
}

/// A connection and where its frames arrive.
package struct OpenedConnection<Inbox: Sendable>: Sendable {
    package let connection: any TransportConnection
    package let inbox: Inbox
}

/// The sending and closing side of a connection; may be used from any thread.
package protocol TransportConnection: AnyObject, Sendable {
    /// This side's end.
    var localEndpoint: Endpoint { get }
    /// The peer's end; for a client of a Unix socket, which has no name, the socket's.
    var remoteEndpoint: Endpoint { get }
    /// What the two sides agreed on over TLS (ALPN); nil where there is nothing of the kind.
    var applicationProtocol: String? { get }
    /// What was agreed on when the connection's WebSocket was opened; nil when it has none.
    var webSocket: WebSocketOpening? { get }
    /// Runs tasks where the connection's frames come in; nil where that runs no tasks.
    var executor: (any TaskExecutor)? { get }

    /// Takes whole frames, prefixes included, to be written. The bytes are copied.
    ///
    /// - Returns: nil when they were accepted; a place in the line when they have to wait for room: see `wait(for:)`.
    func offer(_ frames: UnsafeRawBufferPointer, count: Int) throws(ConnectionError) -> PendingSend?
    /// The same with frames that `body` writes, in place of a copy of them.
    func offer(writing body: (inout OutboundBytes) -> Void) throws(ConnectionError) -> PendingSend?
    /// Has a source offer frames when the tasks that run where the connection's frames come in have run for a while, so
    /// that those of many tasks are offered together; from another thread: when that place comes to it. May be called
    /// with a lock held that the source takes: it is never asked from within.
    ///
    /// - Returns: false where it cannot: the source has to offer them now.
    func offerLater(_ source: any FrameSource) -> Bool
    /// There is more to come behind what was offered, which is worth a write of its own where the peer may have nothing
    /// to do until it hears something. Call it without a lock held: it may find that the connection has failed.
    func writeEarly()
    /// Waits until an offer is accepted. When the task is cancelled first, nothing of it will be sent.
    nonisolated(nonsending) func wait(for pending: PendingSend) async throws
    /// Takes a frame, prefix included, if there is room for it now, and tells whether there was. The bytes, which may
    /// come in two parts, are copied.
    func offerNow(_ head: UnsafeRawBufferPointer, _ rest: UnsafeRawBufferPointer) throws(ConnectionError) -> Bool
    /// Waits until there is room for a frame. Throws as `wait(for:)` does.
    nonisolated(nonsending) func waitForRoom() async throws
    /// Takes no more frames, writes those offered so far and then ends this side of the connection.
    /// Returns when that is done; cancelling the task stops the waiting only.
    func finishSending() async throws
    /// The same without waiting.
    func endSending()

    /// Asks the peer for a sign of life now, where the connection has a heartbeat: there is a reason to doubt that it
    /// is still there. It fails with `heartbeatTimeout` unless there is one in time.
    func probe()

    /// The peer was let in, on a connection with `ConnectionOptions.openingFrameLimit`: takes frames up to the full
    /// limit from now on, and makes way for no others. Call it before the peer is told.
    func admitPeer()
    /// Reads on after `ReadDemand.pause`.
    func resumeReading()
    /// Ends the receiver's input now; what comes later is read and dropped, but for pings, which are still answered.
    func stopReceiving()

    /// Writes all frames accepted, and those that waited when this side was told to end; ends this side, waits for the
    /// peer to end its side, and closes.
    /// Returns at once; `waitUntilClosed()` tells how it went.
    func close()
    /// How many of the bytes that were accepted would be lost if the connection was cut; 0 when it is over.
    func undeliveredByteCount() async -> Int
    /// Closes at once, dropping what is not written. Waiting sends and the receiver's input end with `reason`.
    func abort(_ reason: ConnectionError)
    /// Waits until the connection is closed, whatever happens to the task.
    func waitUntilClosed() async -> ClosureReport
    /// Calls `call` when the connection is closed, where that is noticed; here, where it is closed. Takes less memory
    /// than a task that waits.
    func whenClosed(_ call: @escaping @Sendable () -> Void)
}

extension TransportConnection {
    package var applicationProtocol: String? { nil }
    package var webSocket: WebSocketOpening? { nil }
    package var executor: (any TaskExecutor)? { nil }
    package func offerLater(_ source: any FrameSource) -> Bool { false }
    package func admitPeer() {}

    /// Takes one frame, prefix included, to be written, as `offer(_:count:)` does.
    package func offer(_ frame: UnsafeRawBufferPointer) throws(ConnectionError) -> PendingSend? {
        try offer(frame, count: 1)
    }
}

/// What has frames for a connection.
package protocol FrameSource: AnyObject, Sendable {
    /// Offers those that there are. Called without a lock held.
    func offer()
}

/// A listening socket and the connections accepted on it.
package protocol TransportListener<Inbox>: AnyObject, Sendable {
    associatedtype Inbox: Sendable
    /// Where it listens; with the real port when 0 was asked for.
    var boundEndpoint: Endpoint { get }
    /// Runs tasks on the event loop that accepts; nil where none run there.
    var executor: (any TaskExecutor)? { get }
    /// Waits for a connection; nil when the listener has stopped and all have been handed out. For one task at a time.
    func nextConnection() async throws -> OpenedConnection<Inbox>?
    /// Gives the place of a connection that was accepted to another one.
    func releaseConnection()
    /// Stops accepting. What was accepted before is still handed out.
    func stopAccepting() async
    /// Stops accepting and aborts the connections that nobody has taken yet. The others go on.
    func close() async
}

/// What a transport needs to know of a connection.
package struct ConnectionOptions: Sendable {
    package var maximumFrameLength: Int
    package var connectTimeout: Duration
    package var closeTimeout: Duration
    package var outboundMarks: WaterMarks
    /// When a silent peer, or one that does not read, is given up.
    package var liveness: LivenessOptions
    /// How the kernel watches the peer, over TCP; nil when it shall not.
    package var keepalive: KeepaliveConfiguration?
    /// Whether to count the frames that the peer's TCP has not acknowledged. It costs a byte or two for each frame in
    /// flight, and a descriptor.
    package var tracksDelivery: Bool
    package var metrics: TransportMetrics
    /// The most bytes of a frame until the peer is let in (`TransportConnection.admitPeer()`). Nil: all peers are, and
    /// those that were accepted are newcomers until they have sent a byte.
    package var openingFrameLimit: Int?
    /// What the connection's memory is charged to; nil where it is not counted.
    package var memoryBudget: MemoryBudget?
    /// What lies between the socket and the frames, from the socket on.
    package var layers: [any ChannelLayer] = []
    /// Where the socket is connected to, when that is not where the endpoint says: a proxy.
    package var proxyAddress: Endpoint.Address?

    package init(
        maximumFrameLength: Int,
        connectTimeout: Duration,
        closeTimeout: Duration,
        outboundMarks: WaterMarks,
        liveness: LivenessOptions = LivenessOptions(),
        keepalive: KeepaliveConfiguration? = nil,
        tracksDelivery: Bool = false,
        metrics: TransportMetrics
    ) {
        self.maximumFrameLength = maximumFrameLength
        self.connectTimeout = connectTimeout
        self.closeTimeout = closeTimeout
        self.outboundMarks = outboundMarks
        self.liveness = liveness
        self.keepalive = keepalive
        self.tracksDelivery = tracksDelivery
        self.metrics = metrics
    }
}

/// What a transport needs to know of a listener.
package struct ListenerOptions: Sendable {
    package var connection: ConnectionOptions
    package var maximumConnections: Int
    /// Whether newcomers make way for others at the limit.
    package var closesSilentConnections: Bool
    package var backlog: Int
    package var logger: Logger

    package init(
        connection: ConnectionOptions,
        maximumConnections: Int,
        closesSilentConnections: Bool = false,
        backlog: Int,
        logger: Logger
    ) {
        self.connection = connection
        self.maximumConnections = maximumConnections
        self.closesSilentConnections = closesSilentConnections
        self.backlog = backlog
        self.logger = logger
    }
}
