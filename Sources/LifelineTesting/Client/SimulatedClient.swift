public import LifelineCore

/// A client with the machines of the real one: when to connect and to try again, what becomes of sends meanwhile, when
/// a peer counts as dead. Its connections, time and network are simulated.
public final class SimulatedClient {
    /// How the client behaves.
    public struct Configuration: Sendable {
        /// How it tries to connect again.
        public var backoff = BackoffConfiguration()
        /// When a silent peer is asked for a sign of life, and when it counts as dead. Nil: never.
        public var heartbeat: HeartbeatConfiguration? = HeartbeatConfiguration()
        /// How long the peer may send nothing. Default: nil, as long as it likes.
        public var idleTimeout: Duration?
        /// How long bytes may wait for the peer while it takes none. Default: nil, as long as it likes.
        public var writeTimeout: Duration?
        /// How many bytes may be written since the peer last sent one. Over it, it is asked for a sign of life.
        /// Default: nil, as many as it takes.
        public var unansweredByteLimit: Int?
        /// How much may wait for a connection.
        public var sendQueue = SendQueueConfiguration()
        /// How long an attempt to connect may take. Default: 10 s.
        public var connectTimeout = Duration.seconds(10)
        /// How long a graceful close may go on without progress; in all, when the peer has ended its side, and for the
        /// last acknowledgements. Default: 5 s.
        public var closeTimeout = Duration.seconds(5)
        /// The largest frame. Default: 4 MiB.
        public var maximumFrameLength = 4 << 20
        /// Between which marks sends wait for a peer that does not read. Default: 64 and 256 KiB.
        public var outboundMarks = WaterMarks(low: 64 << 10, high: 256 << 10)

        /// Makes a configuration with the default values.
        public init() {}

        package var liveness: LivenessOptions {
            LivenessOptions(
                heartbeat: heartbeat,
                idleTimeout: idleTimeout,
                writeTimeout: writeTimeout,
                unansweredByteLimit: unansweredByteLimit
            )
        }
    }

    /// How a send ended.
    public enum SendOutcome: Sendable, Hashable {
        /// A connection took the message. It arrives, or the connection counts it as undelivered when it ends.
        case accepted
        /// Its time to live was over before a connection took it.
        case dropped
        /// It was given up before a connection took it.
        case cancelled
        /// It was not sent, for this reason.
        case failed(ConnectionError.Code)
    }

    /// A connection that has ended.
    public struct ConnectionReport: Sendable, Hashable {
        /// The attempt's number, counted from 1.
        public let attempt: UInt64
        /// When it ended.
        public let time: MonotonicTime
        /// Messages that it had accepted and that the peer's TCP has not acknowledged.
        public let undeliveredMessageCount: Int
    }

    /// Where it runs.
    public let host: SimulatedHost
    /// Whom it connects to.
    public let server: SimulatedServer
    /// Whether the program takes the messages that come. If not, the server's buffers fill up and it has to wait.
    public var reads = true { didSet { if reads != oldValue { readingChanged() } } }
    /// Every step so far, in order.
    public private(set) var transitions: [ConnectionTransition] = []
    /// Every connection that has ended, in order.
    public internal(set) var connectionReports: [ConnectionReport] = []
    /// How the sends have ended, the message's number being the index plus 1; nil while one waits.
    public internal(set) var sendOutcomes: [SendOutcome?] = []
    /// The bytes of the messages that the server sent.
    public internal(set) var receivedMessages: [[UInt8]] = []

    /// A message in the queue.
    struct Waiting {
        let number: UInt64
        let frame: [UInt8]
        /// When it is not to wait any more.
        let deadline: MonotonicTime?
    }

    /// A message in line on the connection that has not been in the queue.
    struct InLine {
        let frame: [UInt8]
        let policy: SendPolicy
        /// Since when it waits.
        let start: MonotonicTime
    }

    package let configuration: Configuration
    let encoder: FrameEncoder
    var machine: ClientMachine
    /// What the machine has decided and is not done yet: what one action leads to comes after those before it.
    private var actions: [ClientMachine.Action] = []
    private var runsActions = false
    /// The attempt or connection that there is, or that is still being closed.
    var channel: FrameChannel?
    var channelID: ClientMachine.ConnectionID = 0
    /// Messages in the queue, by their place in it.
    var waiting: [SendQueue.ID: Waiting] = [:]
    /// Messages that wait in line on the connection without having been in the queue.
    var direct: [UInt64: InLine] = [:]
    /// The send that is in the connection's hands.
    var inHand: (id: SendQueue.ID, number: UInt64)?
    /// Whether nothing of the client is left.
    var isFinished = false
    /// Rings at the machine's next deadline.
    private(set) lazy var timer = HostTimer(host, clock: .continuous) { [weak self] in self?.timerFired() }
    private(set) lazy var connectTimer = HostTimer(host, clock: .uptime) { [weak self] in self?.connectTimedOut() }
    /// Who checks what the client does.
    package weak var observer: (any SimulatedClientObserver)?
    /// Whether what was given up is reported to the machine all the same, and late, as happens between threads.
    package var reportsLate = false

    /// Puts a client on a host. It does nothing before `start()`.
    public init(
        on host: SimulatedHost,
        connectingTo server: SimulatedServer,
        configuration: Configuration = Configuration()
    ) {
        self.host = host
        self.server = server
        self.configuration = configuration
        encoder = FrameEncoder(maximumFrameLength: configuration.maximumFrameLength)
        machine = ClientMachine(
            configuration.machine,
            seed: host.simulation.random.next(),
            hasNetwork: host.reportedStatus
        )
        host.observeStatus { [weak self] isUp in self?.networkChanged(isUp) }
    }

    /// Where the connection stands.
    public var state: ConnectionState { machine.state }

    /// How many sends have not ended.
    public var waitingSendCount: Int { sendOutcomes.reduce(0) { $1 == nil ? $0 + 1 : $0 } }

    /// Starts the client, as `run()` does. Only the first time counts.
    public func start() {
        report(.start) { machine, now in (try? machine.start(now: now)) ?? [] }
    }

    /// Asks for a new connection now.
    public func reconnect() {
        report(.reconnect) { $0.reconnectRequested(now: $1) }
    }

    /// Closes in order; a second time, at once.
    public func close() {
        report(.close) { $0.closedByUser(now: $1) }
    }

    /// Ends at once, as when the task that runs the client is cancelled.
    public func cancel() {
        report(.cancel) { $0.cancelled(now: $1) }
    }

    /// Sends a message. Returns its number, counted from 1.
    @discardableResult
    public func send(_ payload: [UInt8] = [], policy: SendPolicy = .wait()) -> UInt64 {
        offer(payload, policy)
    }

    /// Gives a send up if it still waits.
    public func cancelSend(_ number: UInt64) {
        cancelSending(number)
    }
}

/// What has been reported to the client's machine.
package enum SimulatedClientEvent: Sendable {
    case start, reconnect, close, cancel, networkUp, networkLost, timer, connected, connectFailed, inputEnded
    case closed(ClosureReport)
    /// Something about sends.
    case send
    /// Something about an attempt that was given up.
    case late
}

/// Sees what a client does, to check it.
package protocol SimulatedClientObserver: AnyObject {
    func client(_ client: SimulatedClient, reports event: SimulatedClientEvent)
    func client(_ client: SimulatedClient, runs action: ClientMachine.Action)
    func client(_ client: SimulatedClient, began attempt: UInt64, over stream: SimulatedStream)
    func client(_ client: SimulatedClient, offered number: UInt64, _ payload: [UInt8], _ policy: SendPolicy)
    func client(_ client: SimulatedClient, ended number: UInt64, _ outcome: SimulatedClient.SendOutcome)
    /// `end` is where the message's last byte stands in the connection's bytes.
    func client(_ client: SimulatedClient, accepted number: UInt64, end: UInt64, on attempt: UInt64)
    func client(
        _ client: SimulatedClient,
        closed attempt: UInt64,
        over stream: Int,
        for failure: ConnectionError.Code?,
        acknowledged: UInt64,
        undelivered: Int
    )
    func clientTimerFired(_ client: SimulatedClient, isWanted: Bool)
}

// The machine that decides.
extension SimulatedClient {
    var now: MonotonicTime { host.simulation.now }

    /// Tells the machine what has happened, and does what it decides.
    func report(
        _ event: SimulatedClientEvent,
        _ body: (inout ClientMachine, MonotonicTime) -> [ClientMachine.Action]
    ) {
        observer?.client(self, reports: event)
        actions += body(&machine, now)
        runActions()
        setTimer()
    }

    func setTimer() {
        timer.set(to: machine.nextDeadline)
    }

    private func timerFired() {
        observer?.clientTimerFired(self, isWanted: machine.nextDeadline.map { $0 <= now } ?? false)
        report(.timer) { $0.timerFired(now: $1) }
    }

    private func readingChanged() {
        host.note("reads \(reads ? "again" : "no more")")
        channel?.reads = reads
    }

    private func networkChanged(_ isUp: Bool) {
        report(isUp ? .networkUp : .networkLost) { isUp ? $0.networkUp(now: $1) : $0.networkLost(now: $1) }
    }

    private func runActions() {
        if runsActions { return }
        runsActions = true
        defer { runsActions = false }
        while !actions.isEmpty { run(actions.removeFirst()) }
    }

    private func run(_ action: ClientMachine.Action) {
        observer?.client(self, runs: action)
        switch action {
        case .transition(let transition):
            host.note("\(transition)")
            transitions.append(transition)
        case .connect(let id):
            connect(id)
        case .abort(let id, let reason):
            if reportsLate { reportLate(id) }
            channel?.abort(reason.asError)
        case .close:
            closeChannel()
        case .probe:
            channel?.probe()
        case .handOver(let send, _):
            handOver(send)
        case .withdraw(let send):
            withdraw(send)
        case .endSend(let ended, _):
            end(ended)
        case .finish:
            isFinished = true
        case .publish, .use:
            break
        }
    }

    private func reportLate(_ id: ClientMachine.ConnectionID) {
        host.simulation.schedule(after: host.simulation.random.duration(upTo: .seconds(3))) {
            switch Int.random(in: 0..<5, using: &self.host.simulation.random) {
            case 0: self.report(.late) { $0.connected(id, now: $1) }
            case 1: self.report(.late) { $0.connectFailed(id, .connectionRefused, now: $1) }
            case 2: self.report(.late) { $0.inputEnded(id, now: $1) }
            case 3: self.report(.late) { machine, _ in machine.sendFailed(on: id) }
            default: self.report(.late) { $0.connectionClosed(id, ClosureReport(), now: $1) }
            }
        }
    }
}

extension SimulatedClient.Configuration {
    fileprivate var machine: ClientMachine.Configuration {
        var machine = ClientMachine.Configuration()
        machine.backoff = backoff
        machine.sendQueue = sendQueue
        machine.closeTimeout = closeTimeout
        machine.sleepWatchInterval = heartbeat?.interval
        return machine
    }
}
