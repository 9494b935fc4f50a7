internal import LifelineCore
internal import LifelineRuntime
internal import Logging
internal import NIOCore

/// A listening socket. Accepted connections wait in a queue, which the connection limit bounds.
final class NIOTransportListener<Receiver: FrameReceiver>: TransportListener {
    typealias Inbox = Receiver.Inbox

    let boundEndpoint: Endpoint
    let executor: (any TaskExecutor)?

    private let channel: any Channel
    private let acceptor: NIOLoopBound<AcceptHandler>
    private let accepted: BatchQueue<OpenedConnection<Inbox>>
    private let socketFile: UnixSocketFile?

    private init(
        boundEndpoint: Endpoint,
        executor: LoopExecutor?,
        channel: any Channel,
        acceptor: NIOLoopBound<AcceptHandler>,
        accepted: BatchQueue<OpenedConnection<Inbox>>
    ) {
        self.boundEndpoint = boundEndpoint
        self.executor = executor
        self.channel = channel
        self.acceptor = acceptor
        self.accepted = accepted
        if case .unix(let path) = boundEndpoint.address {
            self.socketFile = UnixSocketFile(listeningAt: path)
        } else {
            self.socketFile = nil
        }
    }

    static func listen(
        on endpoint: Endpoint,
        options: ListenerOptions,
        group: any EventLoopGroup,
        executors: LoopExecutors,
        channels: any ChannelMaker,
        makeReceiver: @escaping @Sendable () -> Receiver
    ) async throws(ConnectionError) -> NIOTransportListener {
        // The marks have no effect: the accept handler pauses at the connection limit.
        let accepted = BatchQueue<OpenedConnection<Inbox>>(marks: WaterMarks(low: 0, high: .max))
        let loop = group.next()
        let newcomers = options.closesSilentConnections ? Newcomers() : nil
        let acceptor = loop.submit {
            NIOLoopBound(
                AcceptHandler(
                    maximumConnections: options.maximumConnections,
                    newcomers: newcomers,
                    logger: options.logger,
                    executor: executors[loop]
                ) {
                    accepted.finish(throwing: nil)
                },
                eventLoop: loop
            )
        }
        do {
            let acceptor = try await acceptor.get()
            let channel = try await channels.listen(
                on: endpoint.address,
                loop: loop,
                group: group,
                backlog: Int32(clamping: max(1, options.backlog)),
                keepalive: options.connection.keepalive
            ) { channel in
                try channel.pipeline.syncOperations.addHandler(acceptor.value)
            } initializeConnection: { channel in
                try channel.setConnectionOptions()
                let release: @Sendable () -> Void = { loop.execute { acceptor.value.releaseConnection() } }
                try initialize(
                    channel,
                    receiver: makeReceiver(),
                    endpoint: endpoint,
                    options: options.connection,
                    logger: options.logger,
                    accepted: accepted,
                    newcomers: newcomers,
                    executor: executors[channel.eventLoop],
                    release: release
                )
            }
            return NIOTransportListener(
                boundEndpoint: Endpoint(channel.localAddress, spokenToAs: endpoint) ?? endpoint,
                executor: executors[loop],
                channel: channel,
                acceptor: acceptor,
                accepted: accepted
            )
        } catch {
            throw ConnectionError(listeningOn: endpoint, failedWith: error)
        }
    }

    /// Sets up an accepted connection. The consumer that takes it releases its place, or this function if none will.
    private static func initialize(
        _ channel: any Channel,
        receiver: Receiver,
        endpoint: Endpoint,
        options: ConnectionOptions,
        logger: Logger,
        accepted: BatchQueue<OpenedConnection<Inbox>>,
        newcomers: Newcomers?,
        executor: LoopExecutor?,
        release: @escaping @Sendable () -> Void
    ) throws {
        var (isHandedOn, newcomer): (Bool, Newcomer?) = (false, nil)
        channel.closeFuture.assumeIsolated().whenComplete { _ in
            newcomer?.leave()
            if !isHandedOn { release() }
        }
        let handler = ConnectionHandler(receiver: receiver, options: options) { handler, channel in
            let opened = handler.open(channel, endpoint: endpoint, isProxied: false, executor: executor)
            if accepted.receive([opened], cost: 1) == .refused {
                handler.fail(.closedLocally, resetting: true)
            } else {
                isHandedOn = true
            }
        }
        if let newcomers {
            let (loop, bound) = (channel.eventLoop, NIOLoopBound((handler, channel), eventLoop: channel.eventLoop))
            newcomer = newcomers.add {
                loop.execute { Self.makeWay(bound.value.0, bound.value.1) }
            }
        }
        handler.newcomer = newcomer
        let pipeline = channel.pipeline.syncOperations
        if options.layers.isEmpty {
            try handler.readIntoSharedBuffer(of: channel)
            return try pipeline.addHandler(handler)
        }
        try pipeline.addHandler(
            ActiveHandler { channel in
                let deadline = NIODeadline.now() + TimeAmount(options.connectTimeout)
                return channel.addLayers(options.layers, deadline: deadline, lingering: true) {
                    try $0.pipeline.syncOperations.addHandler(handler)
                }
                .assumeIsolated().whenFailure { error in
                    logger.info(
                        "An accepted connection could not be set up",
                        metadata: [
                            "remote": "\(channel.remoteAddress.map { "\($0)".escaped() } ?? "unknown")",
                            "error": "\(ConnectionError(acceptingOn: endpoint, failedWith: error))",
                        ]
                    )
                }
            }
        )
    }

    /// Closes a connection whose peer has sent nothing.
    private static func makeWay(_ handler: ConnectionHandler<Receiver>, _ channel: any Channel) {
        if handler.context != nil { return handler.fail(.madeWay, resetting: true) }
        // Its layers have not finished their handshakes.
        channel.triggerUserOutboundEvent(SocketCut(), promise: nil)
        channel.close(promise: nil)
    }

    func nextConnection() async throws -> OpenedConnection<Inbox>? {
        while true {
            try Task.checkCancellation()
            // Each connection is a batch of its own.
            if let connection = accepted.takeBatch(resumeReading: {}).first { return connection }
            guard try await accepted.untyped.wait(besides: nil) else { return nil }
        }
    }

    func releaseConnection() {
        channel.eventLoop.execute { [acceptor] in acceptor.value.releaseConnection() }
    }

    func stopAccepting() async {
        // Remove the file first, so that a server that starts meanwhile does not find a file that is about to be
        // removed.
        socketFile?.remove()
        // Fails when the socket is already closed.
        try? await channel.close()
    }

    func close() async {
        await stopAccepting()
        for opened in accepted.finishDiscarding() {
            opened.connection.abort(.closedLocally)
            releaseConnection()
        }
    }
}
