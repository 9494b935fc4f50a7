public import LifelineCore

/// A client with the machines of the real one: when to connect and to try again, what becomes of sends meanwhile, when a
/// peer counts as dead. Its connections, time and network are simulated.
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
        /// How many bytes may be written since the peer last sent one. Over it, it is asked for a sign of life. Default: nil, as
        /// many as it takes.
        public var unansweredByteLimit: Int?
        /// How much may wait for a connection.
        public var sendQueue = SendQueueConfiguration()
        /// How long an attempt to connect may take. Default: 10 s.
        public var connectTimeout = Duration.seconds(10)
        /// How long a graceful close may go on without progress; in all, when the peer has ended its side, and for the last
        /// acknowledgements. Default: 5 s.
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

    package let configuration: Configuration
    let encoder: FrameEncoder
    var manager: ConnectionManager
    var queue: SendQueue
    /// The attempt or connection that there is, or that is still being closed.
    var channel: FrameChannel?
    var channelID: ConnectionManager.ConnectionID = 0
    /// The attempt to begin when the connection before is closed.
    var nextAttempt: ConnectionManager.ConnectionID?
    /// Messages in the queue, by their place in it.
    var waiting: [SendQueue.ID: Waiting] = [:]
    /// Messages that wait in line on the connection without having been in the queue.
    var direct: [UInt64: (frame: [UInt8], policy: SendPolicy)] = [:]
    /// Looks whether the machine has slept, while there is a connection whose peer can be asked.
    var sleepWatch: SleepWatch?
    /// Until when a connection may write on after the peer's end; nil when the peer has not ended, and once it is cut.
    var closeDeadline: MonotonicTime?
    private var userHasClosed = false
    /// The send that is in the connection's hands.
    var inHand: (id: SendQueue.ID, number: UInt64)?
    /// Rings at the machines' next deadline.
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
        manager = ConnectionManager(
            backoff: configuration.backoff,
            seed: host.simulation.random.next(),
            hasNetwork: host.reportedStatus
        )
        queue = SendQueue(configuration.sendQueue)
        host.observeStatus { [weak self] isUp in self?.networkChanged(isUp) }
    }

    /// Where the connection stands.
    public var state: ConnectionState { manager.state }

    /// How many sends have not ended.
    public var waitingSendCount: Int { sendOutcomes.reduce(0) { $1 == nil ? $0 + 1 : $0 } }

    /// Starts the client, as `run()` does.
    public func start() {
        report(.start) { $0.start(now: $1) }
    }

    /// Asks for a new connection now.
    public func reconnect() {
        cutWhatCloses(.reconnectRequested)
        report(.reconnect) { $0.reconnectRequested(now: $1) }
    }

    /// Closes in order; a second time, at once.
    public func close() {
        if userHasClosed { cutWhatCloses(.closedByUser) }
        userHasClosed = true
        report(.close) { $0.closeRequested(now: $1) }
    }

    /// Ends at once, as when the task that runs the client is cancelled.
    public func cancel() {
        cutWhatCloses(.cancelled)
        report(.cancel) { $0.cancelled(now: $1) }
    }

    /// Sends a message. Returns its number, counted from 1.
    @discardableResult
    public func send(_ payload: [UInt8] = [], policy: SendPolicy = .wait()) -> UInt64 {
        offer(payload, policy)
    }

    /// Gives a send up if it still waits.
    public func cancelSend(_ number: UInt64) {
        withdraw(number)
    }
}

/// What has been reported to the machine that decides about connections.
package enum SimulatedClientEvent: Sendable {
    case start, reconnect, close, cancel, networkUp, networkLost, timer, connected, connectFailed
    case ended(lastSignOfLife: MonotonicTime?)
    /// Something about an attempt that was given up.
    case late
}

/// Sees what a client does, to check it.
package protocol SimulatedClientObserver: AnyObject {
    func client(_ client: SimulatedClient, reports event: SimulatedClientEvent)
    func client(_ client: SimulatedClient, runs action: ConnectionManager.Action)
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

// The machine that decides about connections.
extension SimulatedClient {
    var now: MonotonicTime { host.simulation.now }

    /// Tells the machine what has happened, and does what it decides.
    func report(
        _ event: SimulatedClientEvent,
        _ body: (inout ConnectionManager, MonotonicTime) -> [ConnectionManager.Action]
    ) {
        observer?.client(self, reports: event)
        perform(body(&manager, now))
        handOver()
        setTimer()
    }

    func setTimer() {
        timer.set(to: deadlines.min())
    }

    /// Those of all that the timer rings for.
    var deadlines: [MonotonicTime] {
        [manager.nextDeadline, queue.nextDeadline, sleepWatch?.deadline, closeDeadline].compactMap(\.self)
    }

    private func timerFired() {
        observer?.clientTimerFired(self, isWanted: deadlines.contains { $0 <= now })
        end(queue.timerFired(now: now))
        report(.timer) { $0.timerFired(now: $1) }
        if let deadline = closeDeadline, deadline <= now { cutWhatCloses(.peerReadsTooSlowly) }
        if sleepWatch?.timerFired(now: now) == true { channel?.probe() }
        setTimer()
    }

    private func readingChanged() {
        host.simulation.note("\(host.name): reads \(reads ? "again" : "no more")")
        channel?.reads = reads
    }

    private func networkChanged(_ isUp: Bool) {
        if !isUp { cutWhatCloses(.networkLost) }
        report(isUp ? .networkUp : .networkLost) { isUp ? $0.networkUp(now: $1) : $0.networkLost(now: $1) }
    }

    private func perform(_ actions: [ConnectionManager.Action]) {
        for action in actions {
            observer?.client(self, runs: action)
            switch action {
            case .transition(let transition):
                host.simulation.note("\(host.name): \(transition)")
                transitions.append(transition)
                moveQueue(to: transition.to)
            case .connect(let id):
                nextAttempt = id
                beginNextAttempt()
            case .abort(let id, let reason):
                giveUp(id, reason)
            case .drain(let id):
                if id == channelID { closeChannel() }
            case .probe(let id):
                if id == channelID { channel?.probe() }
            }
        }
    }

    private func moveQueue(to state: ConnectionState) {
        sleepWatch = nil
        switch state {
        case .ready:
            queue.becameReady()
            sleepWatch = configuration.heartbeat.map { SleepWatch(interval: $0.interval, now: now) }
        case .draining, .closed: end(queue.closed(.clientClosed))
        case .idle, .waitingForNetwork, .connecting, .backingOff, .gaveUp: end(queue.becameUnready())
        }
    }

    private func giveUp(_ id: ConnectionManager.ConnectionID, _ reason: TransitionReason) {
        if nextAttempt == id { nextAttempt = nil }
        if reportsLate {
            host.simulation.schedule(after: host.simulation.random.duration(upTo: .seconds(3))) {
                self.reportLate(id)
            }
        }
        guard channelID == id, let channel else { return }
        channel.abort(reason.asError)
    }

    private func reportLate(_ id: ConnectionManager.ConnectionID) {
        switch Int.random(in: 0..<3, using: &host.simulation.random) {
        case 0: report(.late) { $0.connected(id, now: $1) }
        case 1: report(.late) { $0.connectFailed(id, .connectionRefused, now: $1) }
        default: report(.late) { $0.connectionEnded(id, .ended(by: nil), now: $1) }
        }
    }
}

extension ConnectionError {
    fileprivate static var clientClosed: ConnectionError {
        ConnectionError(code: .closedLocally, message: "The client is closed. Make another one to go on.")
    }
}
