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
/// It drives the same machines: for closing, writing, framing, liveness, replies and delivery.
final class FrameChannel: StreamOwner {
    struct Options {
        var maximumFrameLength: Int
        var marks: WaterMarks
        var closeTimeout: Duration
        var liveness: LivenessOptions
    }

    /// What there is of the connection.
    enum Stage {
        /// The attempt is under way. Can go to: standing, closed.
        case opening
        /// `machine` says how it stands. Can go to: ending, closed.
        case standing
        /// Both sides have ended, and what was written last is on its way. Can go to: closed.
        case ending(ClosureReport, AcknowledgementWait)
        /// Can go to: nothing.
        case closed
    }

    /// A frame that waits for room.
    struct Waiting {
        let id: UInt64
        let number: UInt64
        let frame: [UInt8]
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
    var stage: Stage
    var machine = ConnectionStateMachine()
    var queue: OutboundStateMachine
    var replies: ReplyBacklog
    var assembler: FrameAssembler
    var ledger = DeliveryLedger()
    /// Whether too many replies wait for the peer to read them.
    var isReadHeld = false
    /// How often bytes have come in.
    var readCount = 0
    /// Since when what comes is read; nil while it is not.
    var readsSince: MonotonicTime?
    var hasInputEnded = false
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
    var line: [Waiting] = []

    // Timers.
    /// Nil while there is no connection.
    var liveness: Liveness?
    lazy var livenessTimer = HostTimer(host, clock: .uptime) { [weak self] in self?.livenessTimerFired() }
    /// For closing, and while the end waits for acknowledgements.
    lazy var closeTimer = HostTimer(host, clock: .uptime) { [weak self] in self?.closeTimerFired() }
    var takenAtCloseTimer = 0
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
        queue = OutboundStateMachine(marks: options.marks)
        replies = ReplyBacklog(marks: options.marks)
        stage = .opening
        if side == .server { begin() }
    }

    var isOpening: Bool { if case .opening = stage { true } else { false } }
    var isStanding: Bool { if case .standing = stage { true } else { false } }
    var isOpen: Bool { isStanding && machine.isOpen }
    var isEnding: Bool { if case .ending = stage { true } else { false } }
    var isClosing: Bool { (isStanding && machine.isClosing) || isEnding }
    /// Whether the line moves by itself: the kernel has yet to take what is before it.
    var awaitsRoom: Bool { writingByteCount > 0 }
    var waitingNumbers: [UInt64] { line.map(\.number) }
    var now: MonotonicTime { host.simulation.now }

    func begin() {
        stage = .standing
        lastInboundAt = now
        readsSince = now
        liveness = Liveness(options.liveness, connectedAt: now)
        readingChanged()
        armLivenessTimer()
    }
}
