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
    func channelClosed(_ channel: FrameChannel, _ report: ClosureReport, refused: [UInt64])
    /// Bytes are sent to learn whether the peer lives.
    func channelWillSendPing(_ channel: FrameChannel, number: UInt64)
}

/// One end of a connection that carries frames, for client and server: what the transport's handler is over a socket.
/// It drives the same machines: framing, liveness and ledger.
final class FrameChannel: StreamOwner {
    struct Options {
        var maximumFrameLength: Int
        var marks: WaterMarks
        var closeTimeout: Duration
        var liveness: LivenessOptions
    }

    enum State {
        /// Can go to: open, closed.
        case opening
        /// Can go to: closing, closed.
        case open
        /// What was accepted is written, then this side ends. Can go to: ending, closed.
        case closing
        /// Both sides have ended, and what was written last is on its way. Can go to: closed.
        case ending
        /// Can go to: nothing.
        case closed
    }

    let stream: SimulatedStream
    let side: SimulatedStream.Side
    weak var owner: (any FrameChannelOwner)?
    /// Whether this program takes what comes.
    var reads = true { didSet { readingChanged() } }
    /// Whether and when a ping is answered; nil: not.
    var answerDelay: Duration? = .zero

    let host: SimulatedHost
    let options: Options
    let encoder: FrameEncoder
    var assembler: FrameAssembler
    var ledger = DeliveryLedger()
    var state: State
    var isReadHeld = false
    /// How often bytes have come in.
    var readCount = 0
    /// Since when what comes is read; nil while it is not.
    var readsSince: MonotonicTime?
    /// Bytes of answers to the peer's pings, since little was left to write.
    var replyByteCount = 0
    var inputEnded = false
    var outputEnded = false
    var lastInboundAt: MonotonicTime?

    // Outgoing.
    /// Frames with messages that were accepted since the beginning.
    var acceptedFrameCount = 0
    /// Accepted, and not taken by the kernel.
    var outbound: [UInt8] = []
    /// How many of them are the write that is under way. What is accepted meanwhile is the next one.
    var writingByteCount = 0
    /// What writes held, since the beginning.
    var writtenByteCount: UInt64 = 0
    /// Frames that wait for room.
    var line: [(number: UInt64, frame: [UInt8])] = []

    // Timers.
    /// Nil while there is no connection.
    var liveness: Liveness?
    lazy var livenessTimer = HostTimer(host, clock: .uptime) { [weak self] in self?.livenessTimerFired() }
    lazy var closeTimer = HostTimer(host, clock: .uptime) { [weak self] in self?.closeTimerFired() }
    var progressAtCloseTimer = 0
    var takenByteCount = 0
    /// Where the last message's last byte stands in the connection's bytes.
    var messageEnd: UInt64 = 0
    /// Bytes accepted since the beginning.
    var acceptedByteCount: UInt64 = 0

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
    var isClosing: Bool { state == .closing || state == .ending }
    var isEnding: Bool { state == .ending }
    /// Whether the line moves by itself: the kernel has yet to take what is before it.
    var awaitsRoom: Bool { outbound.count > options.marks.low }
    var isClosed: Bool { state == .closed }
    var isOpening: Bool { state == .opening }
    var waitingNumbers: [UInt64] { line.map(\.number) }
    var now: MonotonicTime { host.simulation.now }

    func begin() {
        lastInboundAt = now
        readsSince = now
        liveness = Liveness(options.liveness, connectedAt: now)
        readingChanged()
        armLivenessTimer()
    }
}
