internal import LifelineCore

/// Receives the events at one end of a stream. Errors are those that a transport would report.
protocol StreamOwner: AnyObject {
    /// The attempt to connect succeeded.
    func streamOpened()
    /// There is something to `read`, or the end of the input.
    func streamBecameReadable()
    /// Bytes were acknowledged, so there may be room to `write`.
    func streamBecameWritable()
    /// The attempt failed, or the connection is lost. Nothing follows.
    func streamFailed(_ error: ConnectionError)
}

/// A TCP connection between two hosts, or the attempt to make one.
package final class SimulatedStream {
    enum Side: Int {
        case client, server

        var other: Side { self == .client ? .server : .client }
    }

    /// How a connection is cut between its ends.
    package enum Cut: Sendable {
        /// Both ends are told.
        case reset
        /// Nothing passes any more.
        case silence
    }

    enum EndState {
        /// The handshake is in progress. Can go to: open, gone.
        case opening
        /// Can go to: closed, gone.
        case open
        /// The program has closed it after its last byte; the kernel still sends the rest. Can go to: gone.
        case closed
        /// The kernel has forgotten the connection. Can go to: no other state.
        case gone
    }

    struct End {
        let host: SimulatedHost
        let addressNumber: Int
        weak var owner: (any StreamOwner)?
        var state = EndState.opening
    }

    /// One direction of a stream: its bytes, and what each side knows of them.
    struct Direction {
        /// Written bytes that have not arrived.
        var pending: [UInt8] = []
        /// The number of those bytes that are under way.
        var inFlight = 0
        /// Bytes that have arrived and were not read yet.
        var unread: [UInt8] = []
        var arrived: UInt64 = 0
        var acknowledged: UInt64 = 0
        var isAcknowledging = false
        /// The end of the stream: requested, under way, arrived.
        var end = false
        var endInFlight = false
        var endArrived = false
        /// Changes when everything under way is lost.
        var epoch = 0
        /// The number of retransmissions since the last acknowledgement.
        var retransmissions = 0
        /// Whether a retransmission is scheduled.
        var retransmitsLater = false
        /// Whether bytes under way were lost.
        var hasLostBytes = false
        /// Whether an acknowledgement was lost.
        var hasLostAcknowledgement = false
        /// Whether the receiver has no room, as far as the sender knows.
        var isWindowClosed = false
        /// How often it was closed.
        var windowEpoch = 0
        var windowProbes = 0
        var unansweredWindowProbes = 0
        var lastArrival = MonotonicTime(nanoseconds: .min)
        /// The number of bytes that still arrive before the connection is cut.
        var cut: (after: Int, Cut)?

        /// The bytes that the sending kernel keeps.
        var kept: Int { pending.count + Int(arrived - acknowledged) }
    }

    /// The bytes that a kernel keeps in each direction: of the order of Linux's defaults.
    static let bufferSize = 64 << 10
    /// Linux sends ten segments of 1,460 bytes at once.
    static let burstSize = 14_600
    /// Like Linux's tcp_retries2: about 15 minutes.
    static let maximumRetransmissions = 15
    /// Like Linux's tcp_syn_retries: about 2 minutes.
    static let maximumHandshakeRetries = 6

    /// Its number among the connections to its server, from 1 on.
    package let number: Int
    let simulation: Simulation
    /// The server that accepted it, which holds the stream.
    weak var server: (any SimulatedListener)?
    var ends: [End]
    var directions = [Direction(), Direction()]
    var isCutOff = false
    var handshakeRetries = 0
    /// Called with the bytes that the client's kernel takes.
    package var onClientBytes: ((ArraySlice<UInt8>) -> Void)?

    init(number: Int, from host: SimulatedHost, to server: any SimulatedListener) {
        self.number = number
        simulation = host.simulation
        self.server = server
        ends = [
            End(host: host, addressNumber: host.addressNumber),
            End(host: server.host, addressNumber: server.host.addressNumber),
        ]
    }
}

// The basis of the other files.
extension SimulatedStream {
    var isPathOpen: Bool {
        !isCutOff && ends.allSatisfy { $0.host.passesPackets && $0.host.addressNumber == $0.addressNumber }
    }

    var clientHost: SimulatedHost { ends[0].host }

    /// Whether both ends still know it.
    var isKnown: Bool { ends.allSatisfy { $0.state == .opening || $0.state == .open } && !isCutOff }

    var transitTime: Duration { ends[0].host.randomLatency + ends[1].host.randomLatency }

    func sendReset(from side: Side) {
        send(from: side) {
            if self.isPathOpen { self.fail(side.other, .connectionReset) }
        }
    }

    func move(_ side: Side, to state: EndState) {
        let old = ends[side.rawValue].state
        ends[side.rawValue].state = state
        let wasOpen = old == .opening || old == .open
        if side == .client, wasOpen, state != .open { ends[0].host.openStreamCount -= 1 }
    }

    func fail(_ side: Side, _ error: ConnectionError) {
        let owner = ends[side.rawValue].owner
        let state = ends[side.rawValue].state
        move(side, to: .gone)
        ends[side.rawValue].owner = nil
        if state != .gone { owner?.streamFailed(error) }
    }

    /// Runs `body` when a packet that is sent now arrives, after all earlier ones in this direction.
    func send(from side: Side, byteCount: Int = 0, _ body: @escaping () -> Void) {
        let (client, server) = (ends[0].host, ends[1].host)
        let earliest = max(simulation.now + transitTime, directions[side.rawValue].lastArrival)
        // Earlier bytes delay later ones, on each link.
        let arrival = earliest + client.occupation(by: byteCount) + server.occupation(by: byteCount)
        directions[side.rawValue].lastArrival = arrival
        simulation.schedule(at: arrival, body)
    }

    func schedule(after delay: Duration, _ body: @escaping () -> Void) {
        simulation.schedule(after: delay, body)
    }
}
