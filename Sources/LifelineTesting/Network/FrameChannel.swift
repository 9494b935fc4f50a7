internal import LifelineCore

/// What a channel tells the client or the server that it belongs to.
protocol FrameChannelOwner: AnyObject {
    /// A message has come in.
    func channel(_ channel: FrameChannel, received message: SimulatedMessage)
    /// The peer has ended its side.
    func channelInputEnded(_ channel: FrameChannel)
    /// A frame that had to wait is accepted now.
    func channel(_ channel: FrameChannel, accepted number: UInt64)
    /// The attempt succeeded.
    func channelOpened(_ channel: FrameChannel)
    /// The connection is no more, or the attempt failed. Frames of these numbers waited, and were not accepted.
    func channelClosed(_ channel: FrameChannel, _ report: FrameChannel.ClosureReport, refused: [UInt64])
    /// Bytes are sent to learn whether the peer lives.
    func channelWillSendPing(_ channel: FrameChannel, number: UInt64)
}

/// One end of a connection that carries frames, for client and server: what the transport's handler is over a socket.
/// It drives the same machines: framing, heartbeat and ledger.
final class FrameChannel: StreamOwner {
    struct Options {
        var maximumFrameLength: Int
        var marks: WaterMarks
        var closeTimeout: Duration
        var heartbeat: HeartbeatConfiguration?
    }

    /// How it ended.
    struct ClosureReport {
        /// Nil when both sides ended it, or the peer did not in time.
        var failure: ConnectionError?
        /// When bytes last came in; at first, when it was opened.
        var lastInboundAt: MonotonicTime?
        /// Frames with messages that the peer's TCP has not acknowledged.
        var unacknowledgedFrameCount: Int
        var acknowledgedByteCount: UInt64
    }

    private enum State {
        /// Can go to: open, closed.
        case opening
        /// Can go to: closing, closed.
        case open
        /// What was accepted is written, then this side ends. Can go to: closed.
        case closing
        /// Can go to: nothing.
        case closed
    }

    let stream: SimulatedStream
    let side: SimulatedStream.Side
    weak var owner: (any FrameChannelOwner)?
    /// Whether this program takes what comes.
    var reads = true { didSet { if reads { readAvailable() } } }
    /// Whether and when a ping is answered; nil: not.
    var answerDelay: Duration? = .zero

    private let host: SimulatedHost
    private let options: Options
    private let encoder: FrameEncoder
    private var assembler: FrameAssembler
    private var ledger = DeliveryLedger()
    private var state: State
    private var isReadHeld = false
    /// Bytes of answers to the peer's pings, since little was left to write.
    private var replyByteCount = 0
    private var inputEnded = false
    private var outputEnded = false
    private(set) var lastInboundAt: MonotonicTime?

    // Outgoing.
    /// Accepted, and not taken by the kernel.
    private var outbound: [UInt8] = []
    /// Frames that wait for room.
    private var line: [(number: UInt64, frame: [UInt8])] = []

    // Timers.
    private(set) var heartbeat: Heartbeat?
    private(set) lazy var heartbeatTimer = HostTimer(host) { [weak self] in self?.heartbeatTimerFired() }
    private(set) lazy var closeTimer = HostTimer(host) { [weak self] in self?.closeTimerFired() }
    private var progressAtCloseTimer = 0
    private var takenByteCount = 0
    /// Bytes accepted since the beginning.
    private(set) var acceptedByteCount: UInt64 = 0

    init(stream: SimulatedStream, side: SimulatedStream.Side, host: SimulatedHost, options: Options) {
        self.stream = stream
        self.side = side
        self.host = host
        self.options = options
        encoder = FrameEncoder(maximumFrameLength: options.maximumFrameLength)
        assembler = FrameAssembler(decoder: FrameDecoder(maximumFrameLength: options.maximumFrameLength))
        state = side == .client ? .opening : .open
        if side == .server { begin() }
    }

    var isOpen: Bool { state == .open }
    var isClosing: Bool { state == .closing }
    /// Whether the line moves by itself: the kernel has yet to take what is before it.
    var awaitsRoom: Bool { outbound.count > options.marks.low }
    var isClosed: Bool { state == .closed }
    var isOpening: Bool { state == .opening }
    var waitingNumbers: [UInt64] { line.map(\.number) }
    private var now: MonotonicTime { host.simulation.now }

    private func begin() {
        lastInboundAt = now
        heartbeat = options.heartbeat.map { Heartbeat($0, connectedAt: now) }
        setHeartbeatTimer()
    }
}

// Sending.
extension FrameChannel {
    enum OfferResult {
        case accepted
        /// `FrameChannelOwner` hears how it ends.
        case waits
        case refused
    }

    /// Takes a frame with a message of this number.
    func offer(_ frame: [UInt8], number: UInt64) -> OfferResult {
        guard state == .open else { return .refused }
        guard line.isEmpty, outbound.count < options.marks.high else {
            line.append((number, frame))
            return .waits
        }
        accept(frame)
        flush()
        return .accepted
    }

    /// Takes a frame back that waits. False when it was accepted meanwhile.
    func withdraw(_ number: UInt64) -> Bool {
        guard let index = line.firstIndex(where: { $0.number == number }) else { return false }
        line.remove(at: index)
        return true
    }

    /// Sends bytes that are no message, whatever waits.
    func sendUncounted(_ bytes: [UInt8]) {
        guard state == .open else { return }
        ledger.uncountedBytesAccepted(bytes.count)
        acceptedByteCount += UInt64(bytes.count)
        outbound += bytes
        flush()
    }

    private func accept(_ frame: [UInt8]) {
        ledger.frameAccepted(byteCount: frame.count)
        acceptedByteCount += UInt64(frame.count)
        outbound += frame
    }

    private func flush() {
        let count = outbound.isEmpty ? 0 : stream.write(outbound[...], from: side)
        outbound.removeFirst(count)
        takenByteCount += count
        if outbound.count <= options.marks.low {
            replyByteCount = 0
            while !line.isEmpty, outbound.count < options.marks.high {
                let (number, frame) = line.removeFirst()
                accept(frame)
                owner?.channel(self, accepted: number)
            }
            if !outbound.isEmpty, count > 0 { return flush() }
            resumeReading()
        }
        if state == .closing, outbound.isEmpty, !outputEnded {
            outputEnded = true
            stream.finishWriting(side)
            closeIfBothEnded()
        }
    }

    func streamBecameWritable() {
        ledger.bytesAcknowledged(total: stream.acknowledgedByteCount(of: side))
        flush()
    }
}

// Receiving.
extension FrameChannel {
    private struct Sink: FrameSink {
        var messages: [SimulatedMessage] = []

        mutating func receive(frame: UnsafeRawBufferPointer) throws {
            guard let message = SimulatedMessage(frame) else { throw FramingError.malformedPrefix }
            messages.append(message)
        }
    }

    func streamBecameReadable() {
        readAvailable()
    }

    private func readAvailable() {
        // A peer that asks and does not read the answers is not read either. Messages do not count: of two peers that
        // send much, each would wait for the other to read.
        isReadHeld = replyByteCount >= options.marks.high
        guard reads, !isReadHeld, !inputEnded else { return }
        guard state == .open || state == .closing else { return }
        let (bytes, isEnd) = stream.read(side)
        if !bytes.isEmpty {
            lastInboundAt = now
            if state == .open { receive(bytes) }
        }
        // What comes with the end is read before it.
        if isEnd, !isClosed { endInput() }
    }

    private func resumeReading() {
        guard isReadHeld else { return }
        isReadHeld = false
        // Not from within a send.
        host.simulation.schedule(after: .zero) { self.readAvailable() }
    }

    private func receive(_ bytes: [UInt8]) {
        var sink = Sink()
        var failure: ConnectionError?
        do {
            try bytes.withUnsafeBytes { try assembler.receive($0, into: &sink) }
        } catch {
            failure = .violation(error)
        }
        for message in sink.messages where state == .open {
            switch message.kind {
            case .message:
                owner?.channel(self, received: message)
            case .ping:
                answer(message.number)
            case .pong:
                heartbeat?.receivedPong(number: message.number, now: now)
                setHeartbeatTimer()
            }
        }
        if let failure, state == .open { fail(failure) }
    }

    private func answer(_ number: UInt64) {
        guard let answerDelay else { return }
        guard let pong = try? SimulatedMessage(kind: .pong, number: number).frame(encoder) else { return }
        replyByteCount += pong.count
        if answerDelay <= .zero { return sendUncounted(pong) }
        host.simulation.schedule(after: answerDelay) { self.host.whenAwake { self.sendUncounted(pong) } }
    }

    private func endInput() {
        inputEnded = true
        if state == .open {
            do {
                try assembler.finish()
            } catch {
                return fail(.violation(error))
            }
            owner?.channelInputEnded(self)
        }
        closeIfBothEnded()
    }
}

// The heartbeat.
extension FrameChannel {
    /// There is a reason to ask whether the peer lives.
    func probe() {
        guard state == .open, let number = heartbeat?.probe(now: now) else { return }
        sendPing(number)
    }

    private func sendPing(_ number: UInt64) {
        owner?.channelWillSendPing(self, number: number)
        if let ping = try? SimulatedMessage(kind: .ping, number: number).frame(encoder) { sendUncounted(ping) }
        setHeartbeatTimer()
    }

    private func setHeartbeatTimer() {
        heartbeatTimer.set(to: state == .open ? heartbeat?.deadline : nil)
    }

    private func heartbeatTimerFired() {
        guard state == .open else { return }
        switch heartbeat?.timerFired(lastInboundAt: lastInboundAt, now: now) {
        case .sendPing(let number): sendPing(number)
        case .timedOut: fail(.silent)
        case .some(.none), nil: setHeartbeatTimer()
        }
    }
}

// Opening and closing.
extension FrameChannel {
    func streamOpened() {
        guard state == .opening else { return }
        state = .open
        begin()
        owner?.channelOpened(self)
    }

    func streamFailed(_ error: ConnectionError) {
        finish(error)
    }

    /// Ends this side when everything accepted is written, waits for the peer's end, and closes. What waits is refused.
    /// Returns the numbers of what was.
    func close() -> [UInt64] {
        guard state == .open else { return [] }
        state = .closing
        setHeartbeatTimer()
        let refused = waitingNumbers
        line = []
        setCloseTimer()
        flush()
        readAvailable()
        return refused
    }

    /// Gives the connection up.
    func abort(_ error: ConnectionError) {
        fail(error)
    }

    private func fail(_ error: ConnectionError) {
        guard state != .closed else { return }
        stream.abort(side)
        finish(error)
    }

    private func closeIfBothEnded() {
        guard state == .closing, inputEnded, outputEnded else { return }
        stream.close(side)
        finish(nil)
    }

    private func setCloseTimer() {
        progressAtCloseTimer = takenByteCount
        closeTimer.set(to: now + options.closeTimeout)
    }

    private func closeTimerFired() {
        guard state == .closing else { return }
        if outputEnded {
            stream.close(side)
            finish(nil)
        } else if takenByteCount > progressAtCloseTimer {
            setCloseTimer()
        } else {
            fail(.peerDoesNotRead)
        }
    }

    private func finish(_ error: ConnectionError?) {
        guard state != .closed else { return }
        state = .closed
        setHeartbeatTimer()
        closeTimer.set(to: nil)
        let acknowledged = stream.acknowledgedByteCount(of: side)
        ledger.bytesAcknowledged(total: acknowledged)
        let refused = waitingNumbers
        line = []
        outbound = []
        let report = ClosureReport(
            failure: error,
            lastInboundAt: lastInboundAt,
            unacknowledgedFrameCount: ledger.unacknowledgedFrameCount,
            acknowledgedByteCount: acknowledged
        )
        owner?.channelClosed(self, report, refused: refused)
    }
}

extension ConnectionError {
    static func violation(_ cause: any Error) -> ConnectionError {
        ConnectionError(code: .protocolViolation, message: "The peer sent what is no frame.", cause: cause)
    }

    static var silent: ConnectionError { TransitionReason(.heartbeatTimeout).asError }

    static var peerDoesNotRead: ConnectionError {
        ConnectionError(code: .closedLocally, message: "The peer stopped reading; closing it was given up.")
    }
}
