package import LifelineCore
package import Logging

/// Makes connections that carry frames. It hides its implementation (event loops, a reactor, memory).
package protocol Transport: Sendable {
    /// Connects to `endpoint`. Cancelling the task gives up the attempt with `CancellationError`. When this throws, no
    /// socket of the attempt is left in the kernel.
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

    /// Runs tasks on the event loop of all its connections; nil if they have several.
    var executor: (any TaskExecutor)? { get }
}

extension Transport {
    package var executor: (any TaskExecutor)? { nil }
}

/// Receives the frames of one connection. It lives on the transport's thread, which makes one call at a time, and puts
/// its results into its inbox.
package protocol FrameReceiver: FrameRunSink, SendableMetatype {
    /// The type of the inbox.
    associatedtype Inbox: Sendable
    /// The inbox, where a consumer on another thread finds the results.
    var inbox: Inbox { get }
    /// The buffer for replies, which are sent when all frames of a part have been received; nil if there is none.
    var replyBuffer: ReplyBuffer? { get }
    /// Notes that the connection is open. Called once, before any frame is received.
    mutating func opened(_ connection: any TransportConnection)
    /// Whether frames may need an answer even when the inbox takes no more.
    var answersPings: Bool { get }
    /// The part of a read that is received before the tasks that it wakes run. It never changes.
    var partLimit: PartLimit { get }
    /// The number of bytes in the inbox. Read while the inbox takes no more.
    var inboxByteCount: Int { get }
    /// Notes that all frames of one read, or of a part of it, were received. Returns whether to read on.
    mutating func finishBatch() -> ReadDemand
    /// Returns frames, prefixes included, to write at once as replies: mostly none. Called after each `finishBatch()`;
    /// an error fails the connection.
    mutating func takeReplies() throws(ConnectionError) -> [UInt8]
    /// Returns the frame, prefix included, that asks the peer for a sign of life; nil when this connection has none. An
    /// error fails the connection.
    func pingFrame(number: UInt64) throws(ConnectionError) -> [UInt8]?
    /// Ends the inbox, in order when `error` is nil. Called once.
    ///
    /// While this side may still send, a receiver that `answersPings` still gets later frames; `finishBatch()` then
    /// returns `refused`.
    mutating func finish(throwing error: ConnectionError?)
}

extension FrameReceiver {
    package var replyBuffer: ReplyBuffer? { nil }
    package var inboxByteCount: Int { 0 }
    /// 8,192 frames: as many frames of 32 bytes as the longest read has. A read of only prefixes has 262,144.
    package var partLimit: PartLimit { PartLimit(frameCount: 8192) }
    package mutating func opened(_ connection: any TransportConnection) {}
}

/// A connection and its inbox.
package struct OpenedConnection<Inbox: Sendable>: Sendable {
    package let connection: any TransportConnection
    package let inbox: Inbox
}

/// The sending and closing side of a connection; any thread may use it.
package protocol TransportConnection: AnyObject, Sendable {
    /// The endpoint of this side.
    var localEndpoint: Endpoint { get }
    /// The endpoint of the peer; for a client of a Unix socket, which has no name, that of the socket.
    var remoteEndpoint: Endpoint { get }
    /// The application protocol agreed on over TLS (ALPN), if any.
    var applicationProtocol: String? { get }
    /// The result of opening the connection's WebSocket; nil when it has none.
    var webSocket: WebSocketOpening? { get }
    /// Runs tasks on the connection's event loop; nil if the loop runs no tasks.
    var executor: (any TaskExecutor)? { get }

    /// Offers whole frames, prefixes included, for writing. The bytes are copied.
    ///
    /// - Returns: nil when they were accepted; a place in the line when they have to wait for room: see `wait(for:)`.
    func offer(_ frames: UnsafeRawBufferPointer, count: Int) throws(ConnectionError) -> PendingSend?
    /// Does the same with frames that `body` writes, without a copy.
    func offer(writing body: (inout OutboundBytes) -> Void) throws(ConnectionError) -> PendingSend?
    /// Makes a source offer its frames after the tasks on the connection's loop have run for a while, so that the
    /// frames of many tasks are offered together. From another thread, this happens when the loop gets to it. The
    /// caller may hold a lock that the source takes: the source is never called from within.
    ///
    /// - Returns: false if that is impossible: then the source has to offer them now.
    func offerLater(_ source: any FrameSource) -> Bool
    /// Writes the offered frames early, although more follow, when the peer may be idle until it gets them. Call it
    /// without a lock held: it may find that the connection has failed.
    func writeEarly()
    /// Waits until an offer is accepted. When the task is cancelled first, none of its frames is sent.
    nonisolated(nonsending) func wait(for pending: PendingSend) async throws
    /// Accepts a frame, prefix included, if there is room now. Returns whether it was accepted. The bytes, which may
    /// come in two parts, are copied.
    func offerNow(_ head: UnsafeRawBufferPointer, _ rest: UnsafeRawBufferPointer) throws(ConnectionError) -> Bool
    /// Waits until there is room for a frame. Throws as `wait(for:)` does.
    nonisolated(nonsending) func waitForRoom() async throws
    /// Accepts no more frames, writes those offered so far, and then ends this side of the connection. Returns when
    /// that is done; cancelling the task only stops the waiting.
    func finishSending() async throws
    /// Does the same without waiting.
    func endSending()

    /// Asks the peer for a sign of life now, if the connection has a heartbeat, because there is a reason to doubt that
    /// the peer is still there. Without one in time, the connection fails with `heartbeatTimeout`.
    func probe()

    /// Notes that the peer was let in, on a connection with `ConnectionOptions.openingFrameLimit`. From now on the
    /// connection takes frames up to the full limit, and no longer makes way for others. Call it before the peer is
    /// told.
    func admitPeer()
    /// Resumes reading after `ReadDemand.pause`.
    func resumeReading()
    /// Ends the receiver's input now. Later bytes are read and dropped, except pings, which are still answered.
    func stopReceiving()

    /// Writes all frames accepted, and those that waited when this side was told to end; ends this side, waits for the
    /// peer to end its side, and closes. Returns at once; `waitUntilClosed()` returns the result.
    func close()
    /// Returns the number of accepted bytes that would be lost if the connection was cut; 0 when it is over.
    func undeliveredByteCount() async -> Int
    /// Closes at once: writes the accepted bytes that the kernel takes without waiting, and drops the others. Waiting
    /// sends and the receiver's input end with `reason`.
    func abort(_ reason: ConnectionError)
    /// Waits until the connection is closed, even if the task is cancelled.
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

    /// Offers one frame, prefix included, as `offer(_:count:)` does.
    package func offer(_ frame: UnsafeRawBufferPointer) throws(ConnectionError) -> PendingSend? {
        try offer(frame, count: 1)
    }
}

/// A source of frames for a connection.
package protocol FrameSource: AnyObject, Sendable {
    /// Offers the present frames. Called without a lock held.
    func offer()
}

/// A listening socket and the connections accepted on it.
package protocol TransportListener<Inbox>: AnyObject, Sendable {
    associatedtype Inbox: Sendable
    /// The endpoint on which it listens, with the real port when 0 was asked for.
    var boundEndpoint: Endpoint { get }
    /// Runs tasks on the event loop that accepts; nil if none run there.
    var executor: (any TaskExecutor)? { get }
    /// Waits for a connection; returns nil when the listener has stopped and all have been handed out. Only one task
    /// may wait at a time.
    func nextConnection() async throws -> OpenedConnection<Inbox>?
    /// Frees the place of an accepted connection for another one.
    func releaseConnection()
    /// Stops accepting. Connections accepted before are still handed out.
    func stopAccepting() async
    /// Stops accepting, and aborts the connections that were not taken yet. The others go on.
    func close() async
}

/// A transport's options for a connection.
package struct ConnectionOptions: Sendable {
    package var maximumFrameLength: Int
    package var connectTimeout: Duration
    package var closeTimeout: Duration
    package var outboundMarks: WaterMarks
    /// When a silent peer, or one that does not read, is given up.
    package var liveness: LivenessOptions
    /// How the kernel watches the peer over TCP; nil turns this off.
    package var keepalive: KeepaliveConfiguration?
    /// Whether to count the frames that the peer's TCP has not acknowledged. It costs a byte or two for each frame in
    /// flight, and a descriptor.
    package var tracksDelivery: Bool
    package var metrics: TransportMetrics
    /// The most bytes of a frame until the peer is let in (`TransportConnection.admitPeer()`). Nil lets all peers in;
    /// an accepted connection is a newcomer until its peer has sent a byte.
    package var openingFrameLimit: Int?
    /// The budget for the connection's memory; nil if it is not counted.
    package var memoryBudget: MemoryBudget?
    /// The layers between the socket and the frames, from the socket on.
    package var layers: [any ChannelLayer] = []
    /// The address of a proxy that the socket connects to, instead of the endpoint's.
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

/// A transport's options for a listener.
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
