internal import LifelineCore

/// The server that a channel belongs to.
protocol FrameChannelOwner: AnyObject {
    /// Receives a message.
    func channel(_ channel: FrameChannel, received message: SimulatedMessage)
    /// The client has ended its output.
    func channelInputEnded(_ channel: FrameChannel)
    /// The connection has ended.
    func channelClosed(_ channel: FrameChannel, _ failure: ConnectionError?)
}

/// The server's end of a connection that carries frames. Like the transport's handler over a socket, it drives the
/// machines for closing, writing, framing, liveness and replies.
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
    /// Whether the program reads.
    var reads = true { didSet { readingChanged() } }
    /// The delay before a ping is answered; nil if it is not answered.
    var answerDelay: Duration? = .zero

    let host: SimulatedHost
    let options: Options
    let encoder: FrameEncoder
    /// Whether the connection exists. `machine` has its state.
    var isStanding = true
    var machine = ConnectionStateMachine()
    var queue: OutboundStateMachine
    var replies: ReplyBacklog
    var assembler: FrameAssembler
    /// Whether too many replies wait for the peer to read them.
    var isReadHeld = false
    /// The number of reads that brought bytes.
    var readCount = 0
    /// The time since which the program reads; nil while it does not.
    var readsSince: MonotonicTime?
    var hasInputEnded = false

    // Outgoing.
    /// Accepted bytes that the kernel has not taken.
    var outbound: [UInt8] = []
    /// The number of those bytes that belong to the write in progress. Bytes that are accepted meanwhile form the next
    /// write.
    var writingByteCount = 0
    /// The bytes of all writes since the beginning.
    var writtenByteCount: UInt64 = 0

    // Timers.
    /// Nil if there is no connection.
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
