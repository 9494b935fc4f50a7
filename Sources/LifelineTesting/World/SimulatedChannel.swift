internal import Glibc
internal import LifelineCore
internal import LifelineTransport
internal import NIOCore

/// The channel of a connection over a simulated stream, as NIO has one over a socket.
///
/// Unchecked, like all parts of a world: only the world's thread uses it.
final class SimulatedChannel: SimulatedChannelBase, AcknowledgedChannel, @unchecked Sendable, StreamOwner {
    /// The stream of its connection.
    let number: Int
    let side: SimulatedStream.Side
    /// The kernel's state of the connection, which outlives the channel.
    let connection: SimulatedStream
    /// Nil once it is closed.
    private var stream: SimulatedStream?
    /// Succeeds when the connection is established.
    private var connected: EventLoopPromise<any Channel>?
    private var connectTimer: Scheduled<Void>?

    /// Received bytes that the handlers have not read.
    private var unread: ArraySlice<UInt8> = []
    private var hasInputEnded = false
    private var wantsRead = false
    private var isReading = false
    private var receiveAllocator: any RecvByteBufferAllocator = FixedSizeRecvByteBufferAllocator(capacity: 64 << 10)
    private var allowsHalfClosure = false
    private var readCount = 0
    /// The time since which the handlers want to read; nil while they do not.
    private var readsSince: MonotonicTime?

    private struct Write {
        var bytes: ArraySlice<UInt8>
        let promise: EventLoopPromise<Void>?
        var isFlushed = false
    }

    private var writes: [Write] = []
    private var writtenByteCount: UInt64 = 0
    /// No more writes are accepted.
    private var isOutputClosed = false
    /// Succeeds when this side has ended its output.
    private var outputClosed: EventLoopPromise<Void>?
    private var isOutputEnded = false
    /// Closing resets the connection.
    private var resetsOnClose = false

    init(
        _ side: SimulatedStream.Side,
        of stream: SimulatedStream,
        _ process: WorldProcess,
        parent: (any Channel)? = nil
    ) {
        (number, self.side, connection, self.stream) = (stream.number, side, stream, stream)
        super.init(process, parent: parent)
        process.add(self)
    }

    /// Linux's ports for clients (ip_local_port_range).
    var clientPort: Int { 32_768 + number % 28_232 }

    // MARK: Connecting

    /// Connects as a client. On the loop.
    func connect(timeout: Duration, _ connected: EventLoopPromise<any Channel>) {
        self.connected = connected
        connectTimer = eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(timeout)) {
            self.failConnecting(ChannelError.connectTimeout(TimeAmount(timeout)))
        }
        stream?.connect(for: self)
    }

    private func failConnecting(_ error: any Error) {
        connectTimer?.cancel()
        connected.take()?.fail(error)
        close0(error: error, mode: .all, promise: nil)
    }

    func streamOpened() {
        onLoop {
            guard self.isOpen else { return }
            self.connectTimer?.cancel()
            self.note(.opened)
            self.activate()
            self.connected.take()?.assumeIsolated().succeed(self)
        }
    }

    /// The connection is established.
    func activate() {
        isActive = true
        readsSince = process.host.simulation.now
        pipeline.fireChannelActive()
        if isAutoReading { pipeline.read() }
    }

    func streamFailed(_ error: ConnectionError) {
        onLoop {
            guard self.isOpen else { return }
            // Streams without a number come from a peer that is not a program of the world.
            let error: any Error =
                error.systemErrorNumber.map { IOError(errnoCode: $0, reason: error.message) } ?? error
            if self.connected != nil { return self.failConnecting(error) }
            self.pipeline.fireErrorCaught(error)
            self.close0(error: error, mode: .all, promise: nil)
        }
    }

    // MARK: Reading

    func streamBecameReadable() { onLoop { self.readOn() } }

    override func read0() {
        wantsRead = true
        if isReading { return }
        if readsSince == nil { readsSince = process.host.simulation.now }
        onLoop { self.readOn() }
    }

    /// Passes received bytes to the handlers, one read at a time, while they want more.
    private func readOn() {
        guard isActive, !isReading else { return }
        isReading = true
        defer {
            isReading = false
            if !wantsRead { readsSince = nil }
        }
        while wantsRead, isActive, let stream, !hasInputEnded {
            var isEnd = false
            if unread.isEmpty {
                let read = stream.read(side)
                (unread, isEnd) = (read.bytes[...], read.isEnd)
            }
            if unread.isEmpty, !isEnd { return }
            wantsRead = false
            if unread.isEmpty { return endInput() }
            var buffer = receiveAllocator.buffer(allocator: allocator)
            let part = unread.prefix(max(1, buffer.writableBytes))
            unread = unread.dropFirst(part.count)
            readCount += 1
            note(.read(byteCount: part.count, byClient: side == .client))
            report(.read(part))
            buffer.writeBytes(part)
            _ = receiveAllocator.record(actualReadBytes: part.count)
            pipeline.fireChannelRead(buffer)
            pipeline.fireChannelReadComplete()
            if isAutoReading, isActive { pipeline.read() }
        }
    }

    private func endInput() {
        hasInputEnded = true
        note(.inputEnded)
        guard allowsHalfClosure else { return close0(error: ChannelError.eof, mode: .all, promise: nil) }
        pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
    }

    // MARK: Writing

    override func write0(_ data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard isOpen, !isOutputClosed else {
            promise?.fail(isOpen ? ChannelError.outputClosed : ChannelError.ioOnClosedChannel)
            return
        }
        let buffer = unwrapData(data, as: ByteBuffer.self)
        let bytes = Array(buffer.readableBytesView)[...]
        report(.wrote(bytes))
        writes.append(Write(bytes: bytes, promise: promise))
        writtenByteCount += UInt64(buffer.readableBytes)
    }

    override func flush0() {
        for index in writes.indices { writes[index].isFlushed = true }
        writeOn()
    }

    func streamBecameWritable() { onLoop { self.writeOn() } }

    private func writeOn() {
        while isActive, let stream, let first = writes.first, first.isFlushed {
            let count = first.bytes.isEmpty ? 0 : stream.write(first.bytes, from: side)
            if count > 0 { note(.wrote(byteCount: count, byClient: side == .client)) }
            writes[0].bytes = first.bytes.dropFirst(count)
            guard writes[0].bytes.isEmpty else { return }
            writes.removeFirst().promise?.assumeIsolated().succeed(())
        }
        closeOutput()
    }

    // MARK: Closing

    /// Ends this side's output if that was requested and the kernel has all flushed bytes.
    private func closeOutput() {
        guard isOutputClosed, !isOutputEnded, isActive, writes.first?.isFlushed != true else { return }
        isOutputEnded = true
        failWrites(ChannelError.outputClosed)
        stream?.finishWriting(side)
        outputClosed.take()?.assumeIsolated().succeed(())
        pipeline.fireUserInboundEventTriggered(ChannelEvent.outputClosed)
    }

    override func close0(error: any Error, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard isOpen else {
            promise?.fail(ChannelError.alreadyClosed)
            return
        }
        switch mode {
        case .input:
            promise?.fail(ChannelError.operationUnsupported)
        case .output:
            if isOutputClosed {
                promise?.fail(ChannelError.outputClosed)
                return
            }
            isOutputClosed = true
            outputClosed = promise
            closeOutput()
        case .all:
            connectTimer?.cancel()
            connected.take()?.fail(error)
            let wasActive = isActive
            becomeClosed()
            process.remove(self)
            failWrites(ChannelError.ioOnClosedChannel)
            outputClosed.take()?.fail(ChannelError.ioOnClosedChannel)
            let resets = resetsOnClose || !wasActive || !unread.isEmpty
            releaseStream(resetting: resets, because: words(for: error), wasOpen: wasActive)
            promise?.assumeIsolated().succeed(())
            announceClosed(wasActive: wasActive)
        }
    }

    /// The process is killed: the kernel closes its sockets. No handler learns of it.
    func abandon() {
        let resets = !isActive || !unread.isEmpty
        releaseStream(resetting: resets, because: "its process was killed", wasOpen: isActive)
    }

    private func releaseStream(resetting: Bool, because reason: @autoclosure () -> String, wasOpen: Bool) {
        guard let stream else { return }
        self.stream = nil
        note(.ended(reason(), byClient: side == .client, wasOpen: wasOpen))
        report(.ended)
        if resetting {
            stream.abort(side)
        } else {
            if !stream.hasFinishedWriting(side) { stream.finishWriting(side) }
            stream.close(side)
            stream.release(side)
        }
    }

    private func failWrites(_ error: any Error) {
        let failed = writes
        writes = []
        for write in failed { write.promise?.fail(error) }
    }

    private func note(_ event: @autoclosure () -> Note.ConnectionEvent) {
        process.host.machine.note(.connection(number, event()))
    }

    private func report(_ event: Traffic.Event) {
        process.world?.onTraffic?(Traffic(connection: number, isByClient: side == .client, event: event))
    }

    // MARK: Status

    var acknowledgedByteCount: UInt64 { connection.acknowledgedByteCount(of: side) }
    var unacknowledgedByteCount: UInt64 { connection.takenByteCount(of: side) - acknowledgedByteCount }
    var isDone: Bool { connection.isGone(side) }

    /// Nil unless it is open.
    var status: ChannelStatus? {
        guard isActive, !isOutputClosed, !hasInputEnded else { return nil }
        let taken = connection.takenByteCount(of: side)
        return ChannelStatus(
            stream: number,
            readCount: readCount,
            readsSince: readsSince,
            writtenByteCount: writtenByteCount,
            takenByteCount: Int(taken),
            waitingByteCount: Int(writtenByteCount - taken),
            acknowledgedByteCount: acknowledgedByteCount,
            unacknowledgedByteCount: writtenByteCount - acknowledgedByteCount,
            isCutOff: connection.isCutOff
        )
    }

    // MARK: Options

    override func set<Option: ChannelOption>(_ option: Option, to value: Option.Value) throws {
        switch (option, value) {
        case (is ChannelOptions.Types.AllowRemoteHalfClosureOption, let value as Bool):
            allowsHalfClosure = value
        case (is ChannelOptions.Types.RecvAllocatorOption, let value as any RecvByteBufferAllocator):
            receiveAllocator = value
        default:
            try super.set(option, to: value)
        }
    }

    override func get<Option: ChannelOption>(_ option: Option) throws -> Option.Value {
        switch option {
        case is ChannelOptions.Types.AllowRemoteHalfClosureOption:
            allowsHalfClosure as! Option.Value
        case is ChannelOptions.Types.BufferedWritableBytesOption:
            writes.reduce(0) { $0 + $1.bytes.count } as! Option.Value
        default:
            try super.get(option)
        }
    }
}

/// The reason for the end of a connection, for a note.
private func words(for error: any Error) -> String {
    switch error {
    case ChannelError.ioOnClosedChannel: "its program has closed it"
    case ChannelError.eof: "the peer has closed it"
    case ChannelError.connectTimeout: "no answer in time"
    case let error as IOError: String(cString: strerror(error.errnoCode))
    default: "\(error)"
    }
}

extension SimulatedChannel: SocketOptionProvider {
    /// Accepts the option that a transport sets: closing resets the connection.
    func unsafeSetSocketOption<Value: Sendable>(
        level: NIOBSDSocket.OptionLevel,
        name: NIOBSDSocket.Option,
        value: Value
    ) -> EventLoopFuture<Void> {
        if let value = value as? linger { resetsOnClose = value.l_onoff != 0 && value.l_linger == 0 }
        return eventLoop.makeSucceededVoidFuture()
    }

    func unsafeSetSocketOption<Value: Sendable>(
        level: SocketOptionLevel,
        name: SocketOptionName,
        value: Value
    ) -> EventLoopFuture<Void> {
        unsafeSetSocketOption(
            level: NIOBSDSocket.OptionLevel(rawValue: CInt(level)),
            name: NIOBSDSocket.Option(rawValue: CInt(name)),
            value: value
        )
    }

    func unsafeGetSocketOption<Value: Sendable>(
        level: NIOBSDSocket.OptionLevel,
        name: NIOBSDSocket.Option
    ) -> EventLoopFuture<Value> {
        eventLoop.makeFailedFuture(ChannelError.operationUnsupported)
    }

    func unsafeGetSocketOption<Value: Sendable>(
        level: SocketOptionLevel,
        name: SocketOptionName
    ) -> EventLoopFuture<Value> {
        eventLoop.makeFailedFuture(ChannelError.operationUnsupported)
    }
}
