internal import LifelineCore

/// What a channel tells the server that it belongs to.
protocol FrameChannelOwner: AnyObject {
    /// A message has come in.
    func channel(_ channel: FrameChannel, received message: SimulatedMessage)
    /// The client has ended its side.
    func channelInputEnded(_ channel: FrameChannel)
    /// The connection is no more.
    func channelClosed(_ channel: FrameChannel, _ failure: ConnectionError?)
}

/// The server's end of a connection that carries frames: what the transport's handler is over a socket. It drives the
/// same machines: for closing, writing, framing, liveness and replies.
final class FrameChannel: StreamOwner {
    struct Options {
        var maximumFrameLength: Int
        var marks: WaterMarks
        var closeTimeout: Duration
        var liveness: LivenessOptions
    }

    let stream: SimulatedStream
    let side = SimulatedStream.Side.server
    weak var owner: (any FrameChannelOwner)?
    /// Whether this program takes what comes.
    var reads = true { didSet { readingChanged() } }
    /// Whether and when a ping is answered; nil: not.
    var answerDelay: Duration? = .zero

    let host: SimulatedHost
    let options: Options
    let encoder: FrameEncoder
    /// Whether there is a connection. `machine` says how it stands.
    var isStanding = true
    var machine = ConnectionStateMachine()
    var queue: OutboundStateMachine
    var replies: ReplyBacklog
    var assembler: FrameAssembler
    /// Whether too many replies wait for the peer to read them.
    var isReadHeld = false
    /// How often bytes have come in.
    var readCount = 0
    /// Since when what comes is read; nil while it is not.
    var readsSince: MonotonicTime?
    var hasInputEnded = false

    // Outgoing.
    /// Accepted, and not taken by the kernel.
    var outbound: [UInt8] = []
    /// How many of them are the write that is under way. What is accepted meanwhile is the next one.
    var writingByteCount = 0
    /// What writes held, since the beginning.
    var writtenByteCount: UInt64 = 0

    // Timers.
    /// Nil while there is no connection.
    var liveness: Liveness?
    lazy var livenessTimer = HostTimer(host) { [weak self] in self?.livenessTimerFired() }
    lazy var closeTimer = HostTimer(host) { [weak self] in self?.closeTimerFired() }
    var takenAtCloseTimer = 0
    var takenByteCount = 0
    /// Bytes accepted since the beginning.
    var acceptedByteCount: UInt64 = 0

    init(stream: SimulatedStream, host: SimulatedHost, options: Options) {
        self.stream = stream
        self.host = host
        self.options = options
        encoder = FrameEncoder(maximumFrameLength: options.maximumFrameLength)
        assembler = FrameAssembler(decoder: FrameDecoder(maximumFrameLength: options.maximumFrameLength))
        queue = OutboundStateMachine(marks: options.marks)
        replies = ReplyBacklog(marks: options.marks)
        begin()
    }

    var isOpen: Bool { isStanding && machine.isOpen }
    var now: MonotonicTime { host.simulation.now }

    private func begin() {
        readsSince = now
        liveness = Liveness(options.liveness, connectedAt: now)
        readingChanged()
        armLivenessTimer()
    }
}
