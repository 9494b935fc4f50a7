internal import CLifelineNetlink
internal import Glibc
internal import LifelineCore
internal import LifelineRuntime
internal import Logging
internal import NIOCore

/// Runs a `NetworkStateMachine`: owns the socket and the timer, both on one event loop, where it has to be used.
///
/// Answers and events share the socket. Messages of other processes cannot be distinguished from the kernel's, but only
/// root may send here.
final class NetlinkDriver {
    private let loop: any EventLoop
    private let kinds: InterfaceKinds
    private let logger: Logger
    private let publish: @Sendable (NetworkPath) -> Void

    private var machine: NetworkStateMachine
    private var channel: (any Channel)?
    private var port: UInt32 = 0
    private var dump: NetworkDump?
    private var dumpCount: UInt32 = 0
    /// Distinguishes events of the present socket from late ones of earlier sockets.
    private var socketNumber = 0
    private var timer = LoopTimer()
    private var isStopped = false
    /// Whether the warning was logged, because a sandbox refuses every few seconds for ever.
    private var hasWarned = false

    init(
        configuration: NetworkMonitorConfiguration,
        loop: any EventLoop,
        logger: Logger,
        publish: @escaping @Sendable (NetworkPath) -> Void
    ) {
        self.loop = loop
        self.logger = logger
        self.publish = publish
        kinds = InterfaceKinds(sysfs: configuration.sysfs)
        machine = NetworkStateMachine(configuration: configuration)
    }

    func start() {
        run(machine.started(now: .now()))
    }

    func stop() {
        isStopped = true
        timer.cancel()
        closeSocket()
    }

    // MARK: The machine

    private func run(_ actions: [NetworkStateMachine.Action]) {
        guard !isStopped else { return }
        for action in actions {
            switch action {
            case .open: open()
            case .dump: beginDump()
            case .publish(let path): publish(path)
            }
        }
        setTimer()
    }

    private func setTimer() {
        guard !isStopped, let deadline = machine.nextDeadline else { return }
        timer.set(to: deadline, now: .now(), on: loop) {
            self.timer.fired()
            self.run(self.machine.timerFired(now: .now()))
        }
    }

    // MARK: The socket

    private func open() {
        closeSocket()
        do {
            try openSocket()
        } catch {
            openingFailed(error)
        }
    }

    private func openSocket() throws {
        let socket = try NetlinkSocket.open(subscribingTo: .changes, blocking: false)
        let number = socketNumber
        let driver = NIOLoopBound(self, eventLoop: loop)
        let opened = try socket.makeChannel(on: loop) { channel in
            let handler = NetlinkHandler(driver: driver.value, socketNumber: number)
            try channel.pipeline.syncOperations.addHandler(handler)
        }
        opened.assumeIsolated().whenComplete { result in
            switch result {
            case .success(let channel) where number == self.socketNumber && !self.isStopped:
                (self.channel, self.port) = (channel, socket.port)
                self.run(self.machine.opened(now: .now()))
            case .success(let channel):
                channel.close(promise: nil)
            case .failure(let error):
                if number == self.socketNumber { self.openingFailed(error) }
            }
        }
    }

    private func openingFailed(_ error: any Error) {
        warn("The kernel lets no netlink socket be opened; the network counts as there", error)
        run(machine.openingFailed(now: .now()))
    }

    private func closeSocket() {
        socketNumber += 1
        dump = nil
        channel?.close(promise: nil)
        channel = nil
    }

    /// Notes that the socket with this number failed.
    fileprivate func socketFailed(_ error: (any Error)?, number: Int) {
        guard number == socketNumber, !isStopped else { return }
        // On an overrun the channel is closed, with ENOBUFS or without an error, depending on the order of events.
        if let error, (error as? IOError)?.errnoCode != ENOBUFS {
            warn("The netlink socket failed; everything is read again", error)
        } else {
            logger.debug("Events came faster than they were read; everything is read again")
        }
        closeSocket()
        run(machine.socketFailed(now: .now()))
    }

    private func warn(_ message: Logger.Message, _ error: any Error) {
        logger.log(level: hasWarned ? .debug : .warning, message, metadata: ["error": "\(error)"])
        hasWarned = true
    }

    // MARK: Messages

    private func beginDump() {
        dumpCount &+= 1
        let dump = NetworkDump(number: dumpCount)
        self.dump = dump
        send(dump.firstRequest)
    }

    private func send(_ request: NetlinkRequest) {
        channel?.writeAndFlush(ByteBuffer(bytes: request.bytes), promise: nil)
    }

    fileprivate func received(_ datagram: ByteBuffer, number: Int) {
        guard number == socketNumber, !isStopped else { return }
        do throws(NetlinkError) {
            try datagram.readableBytesSpan.forEachNetlinkMessage { (header, payload) throws(NetlinkError) in
                // An action may have closed the socket.
                guard number == socketNumber else { return }
                if header.port == port {
                    try receivedAnswer(header, payload)
                } else if Int(header.type) == NLMSG_OVERRUN {
                    throw .refused(ENOBUFS)
                } else if let subject = Self.subjects[header.type] {
                    machine.receivedEvent(about: subject, now: .now())
                }
            }
            setTimer()
        } catch {
            socketFailed(error, number: number)
        }
    }

    private func receivedAnswer(_ header: NetlinkHeader, _ payload: RawSpan) throws(NetlinkError) {
        switch try dump?.received(header, payload) {
        case .send(let request)?:
            send(request)
        case .finish(let tables, let isConsistent)?:
            (dump, hasWarned) = (nil, false)
            let path = NetworkPath(tables, kind: kinds.kind(of:))
            run(machine.dumpEnded(path, isConsistent: isConsistent, now: .now()))
        case .some(.none), nil:
            break
        }
    }

    private static let subjects: [UInt16: NetworkStateMachine.Subject] = [
        UInt16(RTM_NEWLINK): .link, UInt16(RTM_DELLINK): .link,
        UInt16(RTM_NEWADDR): .other, UInt16(RTM_DELADDR): .other,
        UInt16(RTM_NEWROUTE): .other, UInt16(RTM_DELROUTE): .other,
        UInt16(RTM_NEWNEXTHOP): .other, UInt16(RTM_DELNEXTHOP): .other,
    ]
}

/// Passes the channel's events to the driver.
private final class NetlinkHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let driver: NetlinkDriver
    private let socketNumber: Int

    init(driver: NetlinkDriver, socketNumber: Int) {
        self.driver = driver
        self.socketNumber = socketNumber
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        driver.received(unwrapInboundIn(data), number: socketNumber)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
        driver.socketFailed(error, number: socketNumber)
    }

    func channelInactive(context: ChannelHandlerContext) {
        driver.socketFailed(nil, number: socketNumber)
    }
}
