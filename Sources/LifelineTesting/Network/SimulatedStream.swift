internal import LifelineCore

/// What happens to one end of a stream. Errors are those that a transport would report.
protocol StreamOwner: AnyObject {
    /// The attempt to connect succeeded.
    func streamOpened()
    /// There is something to `read`, or the end of the input.
    func streamBecameReadable()
    /// Bytes were acknowledged, so that there may be room to `write`.
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

    private enum EndState {
        /// The handshake is not over. Can go to: open, gone.
        case opening
        /// Can go to: closed, gone.
        case open
        /// The program has closed it after its last byte; the kernel still sends what is left. Can go to: gone.
        case closed
        /// It knows the connection no more. Can go to: nothing.
        case gone
    }

    private struct End {
        let host: SimulatedHost
        let addressNumber: Int
        weak var owner: (any StreamOwner)?
        var state = EndState.opening
    }

    /// What goes from one side to the other.
    private struct Direction {
        /// Bytes that the sending program has written and that have not arrived.
        var pending: [UInt8] = []
        /// How many of them are on their way.
        var inFlight = 0
        /// Bytes that have arrived and were not read.
        var unread: [UInt8] = []
        var arrived: UInt64 = 0
        var acknowledged: UInt64 = 0
        var isAcknowledging = false
        /// The end of the stream: wanted, on its way, there.
        var end = false
        var endInFlight = false
        var endArrived = false
        /// What is on its way is lost when this changes.
        var epoch = 0
        var retransmissions = 0
        var awaitsRetransmission = false
        var isProbingWindow = false
        var lastArrival = MonotonicTime(nanoseconds: .min)
        /// So many bytes still arrive before the connection is cut.
        var cut: (after: Int, Cut)?

        /// Bytes that the sending kernel keeps.
        var kept: Int { pending.count + Int(arrived - acknowledged) }
    }

    /// The bytes that a kernel keeps in each direction: of the order of Linux's defaults.
    static let bufferSize = 64 << 10
    /// Linux sends ten segments of 1,460 bytes at once.
    private static let burstSize = 14_600
    /// As Linux's tcp_retries2: about 15 minutes.
    private static let maximumRetransmissions = 15

    /// Which one it is of its network's, counted from 1.
    package let number: Int
    private let simulation: Simulation
    /// It holds the connections that it has let in.
    private weak var server: SimulatedServer?
    private var ends: [End]
    private var directions = [Direction(), Direction()]
    private var isCutOff = false
    private var handshakes = 0

    init(number: Int, from host: SimulatedHost, to server: SimulatedServer) {
        self.number = number
        simulation = host.simulation
        self.server = server
        ends = [
            End(host: host, addressNumber: host.addressNumber),
            End(host: server.host, addressNumber: server.host.addressNumber),
        ]
    }
}

// The handshake.
extension SimulatedStream {
    /// Begins to connect.
    func connect(for owner: any StreamOwner) {
        ends[0].owner = owner
        ends[0].host.openStreamCount += 1
        connect()
    }

    private func connect() {
        let host = ends[0].host
        if !host.isLinkUp {
            // As a kernel that has no route says at once; but not from within the call.
            simulation.schedule(after: .zero) { self.fail(.client, .networkUnreachable) }
            return
        }
        handshakes += 1
        schedule(after: transitTime) {
            guard self.ends[0].state == .opening, self.ends[1].state == .opening else { return }
            if self.isPathOpen { self.server?.answer(self) } else { self.retryHandshake { self.connect() } }
        }
    }

    /// The server lets it in.
    func accept() {
        schedule(after: transitTime) {
            guard self.isPathOpen else { return self.retryHandshake { self.accept() } }
            guard self.ends[0].state == .opening else { return self.sendReset(from: .client) }
            self.move(.client, to: .open)
            self.confirm()
            self.ends[0].owner?.streamOpened()
        }
    }

    /// The server does not let it in.
    func refuse(_ error: ConnectionError) {
        schedule(after: transitTime) {
            guard self.isPathOpen else { return self.retryHandshake { self.connect() } }
            self.fail(.client, error)
        }
    }

    /// The server does not even answer.
    func ignore() {
        retryHandshake { self.connect() }
    }

    /// Tells the server that the client's end is open, before any byte.
    private func confirm() {
        send(from: .client) {
            if self.isPathOpen { self.openServerEnd() } else { self.retryHandshake { self.confirm() } }
        }
    }

    private func openServerEnd() {
        guard ends[1].state == .opening else { return }
        move(.server, to: .open)
        ends[1].owner = server?.accepted(self)
        if ends[1].owner == nil { abort(.server) }
    }

    /// As Linux does: after 1 s, 2 s, 4 s and so on.
    private func retryHandshake(_ body: @escaping () -> Void) {
        guard ends[0].state != .gone, handshakes < 7 else { return }
        handshakes += 1
        schedule(after: .seconds(1 << (handshakes - 1)), body)
    }
}

// What a program does with its end.
extension SimulatedStream {
    /// Bytes from the client that have arrived at the server's kernel.
    package var arrivedClientByteCount: UInt64 { directions[0].arrived }

    /// Bytes that the peer's kernel has acknowledged.
    func acknowledgedByteCount(of side: Side) -> UInt64 { directions[side.rawValue].acknowledged }

    /// Hands bytes to the kernel. Returns how many it takes.
    func write(_ bytes: ArraySlice<UInt8>, from side: Side) -> Int {
        guard ends[side.rawValue].state == .open, !directions[side.rawValue].end else { return 0 }
        let count = min(bytes.count, SimulatedStream.bufferSize - directions[side.rawValue].kept)
        if count <= 0 { return 0 }
        directions[side.rawValue].pending += bytes.prefix(count)
        pump(side)
        return count
    }

    /// No more is written.
    func finishWriting(_ side: Side) {
        directions[side.rawValue].end = true
        pump(side)
    }

    /// What has arrived.
    func read(_ side: Side) -> (bytes: [UInt8], isEnd: Bool) {
        let sender = side.other
        let bytes = directions[sender.rawValue].unread
        directions[sender.rawValue].unread = []
        if bytes.count > SimulatedStream.bufferSize / 2 {
            // The sender learns that there is room again.
            schedule(after: transitTime) { self.pump(sender) }
        }
        return (bytes, directions[sender.rawValue].endArrived)
    }

    /// Closes in order, after `finishWriting`. What the kernel has is still sent.
    func close(_ side: Side) {
        guard ends[side.rawValue].state == .open else { return }
        // As Linux does: the peer is to know that somebody has not read everything.
        if !directions[side.other.rawValue].unread.isEmpty { return abort(side) }
        move(side, to: .closed)
        ends[side.rawValue].owner = nil
    }

    /// Gives up: what is not on its way is dropped, and the peer is told if it can be reached.
    func abort(_ side: Side) {
        let state = ends[side.rawValue].state
        move(side, to: .gone)
        ends[side.rawValue].owner = nil
        if state == .open || state == .closed { sendReset(from: side) }
    }
}

// What happens on the way.
extension SimulatedStream {
    /// Cuts the connection between its ends after `count` more bytes from the client, or at once.
    package func cut(_ cut: Cut, afterClientBytes count: Int) {
        if count > 0 {
            directions[0].cut = (count, cut)
        } else {
            cutOff(cut)
        }
    }

    /// Takes back a cut that has not come yet.
    package func cancelCut() {
        directions[0].cut = nil
    }

    private func cutOff(_ cut: Cut) {
        guard !isCutOff else { return }
        simulation.note("network: connection \(number) \(cut == .reset ? "reset" : "goes silent")")
        isCutOff = true
        guard cut == .reset else { return }
        // Not from within what is under way.
        schedule(after: .zero) {
            self.fail(.client, .connectionReset)
            self.fail(.server, .connectionReset)
        }
    }

    private var isPathOpen: Bool {
        !isCutOff && ends.allSatisfy { $0.host.passesPackets && $0.host.addressNumber == $0.addressNumber }
    }

    private var transitTime: Duration { ends[0].host.randomLatency + ends[1].host.randomLatency }

    /// Sends what there is and the receiver has room for.
    private func pump(_ side: Side) {
        let index = side.rawValue
        guard ends[index].state == .open || ends[index].state == .closed else { return }
        guard !directions[index].awaitsRetransmission, !directions[index].endArrived else { return }
        while true {
            // Who is there no more keeps nothing, and answers with a reset.
            let unreadCount = ends[side.other.rawValue].state == .gone ? 0 : directions[index].unread.count
            let room = SimulatedStream.bufferSize - unreadCount - directions[index].inFlight
            let waiting = directions[index].pending.count - directions[index].inFlight
            var count = min(waiting, room, SimulatedStream.burstSize)
            if count <= 0 {
                if waiting > 0, directions[index].inFlight == 0 { probeWindow(side) }
                break
            }
            // Reads at the other end are cut anywhere.
            if Int.random(in: 0..<4, using: &simulation.random) == 0 {
                count = Int.random(in: 1...count, using: &simulation.random)
            }
            directions[index].inFlight += count
            let (burst, epoch, arrived) = (count, directions[index].epoch, directions[side.other.rawValue].arrived)
            send(from: side, byteCount: burst) {
                if self.directions[index].epoch == epoch { self.arrive(burst, from: side, acknowledging: arrived) }
            }
        }
        if directions[index].end, !directions[index].endInFlight,
            directions[index].inFlight == directions[index].pending.count
        {
            directions[index].endInFlight = true
            let (epoch, arrived) = (directions[index].epoch, directions[side.other.rawValue].arrived)
            send(from: side) {
                if self.directions[index].epoch == epoch { self.arriveEnd(from: side, acknowledging: arrived) }
            }
        }
    }

    /// Asks a peer that has no room every now and then, for it may be gone, or what it said may be lost.
    private func probeWindow(_ side: Side) {
        if directions[side.rawValue].isProbingWindow { return }
        directions[side.rawValue].isProbingWindow = true
        schedule(after: .seconds(5)) {
            self.directions[side.rawValue].isProbingWindow = false
            self.pump(side)
        }
    }

    private func arrive(_ count: Int, from side: Side, acknowledging total: UInt64) {
        let index = side.rawValue
        guard canArrive(from: side) else { return }
        noteAcknowledgement(of: side.other, total)
        directions[index].retransmissions = 0
        let arriving = min(count, directions[index].cut?.after ?? count)
        directions[index].unread += directions[index].pending.prefix(arriving)
        directions[index].pending.removeFirst(arriving)
        directions[index].inFlight -= arriving
        directions[index].arrived += UInt64(arriving)
        if let (after, cut) = directions[index].cut {
            directions[index].cut?.after = after - arriving
            if after == arriving {
                directions[index].cut = nil
                cutOff(cut)
            }
        }
        acknowledge(side)
        ends[side.other.rawValue].owner?.streamBecameReadable()
        // The rest of a burst that a silent cut stopped.
        if arriving < count { arrive(count - arriving, from: side, acknowledging: total) }
    }

    private func arriveEnd(from side: Side, acknowledging total: UInt64) {
        guard canArrive(from: side) else { return }
        // The end says, too, what has come in before it: else a graceful close would not know that nothing is lost.
        noteAcknowledgement(of: side.other, total)
        directions[side.rawValue].endArrived = true
        ends[side.other.rawValue].owner?.streamBecameReadable()
    }

    /// Whether what was sent arrives. What is lost is sent again; who is gone says so.
    private func canArrive(from side: Side) -> Bool {
        guard isPathOpen else {
            lose(side)
            return false
        }
        if side == .client { openServerEnd() }
        switch ends[side.other.rawValue].state {
        case .opening, .open:
            return true
        case .closed where directions[side.rawValue].pending.isEmpty:
            // Its end is all that comes.
            return true
        case .closed, .gone:
            sendReset(from: side.other)
            return false
        }
    }

    /// What is on its way is lost.
    private func lose(_ side: Side) {
        let index = side.rawValue
        directions[index].epoch += 1
        directions[index].inFlight = 0
        directions[index].endInFlight = false
        directions[index].awaitsRetransmission = true
        retransmit(side) {
            self.directions[index].awaitsRetransmission = false
            self.pump(side)
        }
    }

    /// Sends again after 200 ms, 400 ms and so on, up to 120 s, as Linux does, and gives up in the end.
    private func retransmit(_ side: Side, _ body: @escaping () -> Void) {
        let index = side.rawValue
        guard ends[index].state == .open || ends[index].state == .closed else { return }
        directions[index].retransmissions += 1
        if directions[index].retransmissions > SimulatedStream.maximumRetransmissions {
            return fail(side, .transmissionTimedOut)
        }
        schedule(after: min(.milliseconds(200 << (directions[index].retransmissions - 1)), .seconds(120)), body)
    }

    /// Tells the sender what has arrived.
    private func acknowledge(_ side: Side) {
        let index = side.rawValue
        let total = directions[index].arrived
        if directions[index].isAcknowledging { return }
        directions[index].isAcknowledging = true
        send(from: side.other) {
            self.directions[index].isAcknowledging = false
            guard self.ends[index].state != .gone else { return }
            guard self.isPathOpen else {
                // The sender sends it once more, and is told then.
                return self.retransmit(side) { self.acknowledge(side) }
            }
            self.noteAcknowledgement(of: side, total)
            if total < self.directions[index].arrived { self.acknowledge(side) }
            self.pump(side)
            self.ends[index].owner?.streamBecameWritable()
        }
    }

    private func noteAcknowledgement(of side: Side, _ total: UInt64) {
        guard total > directions[side.rawValue].acknowledged else { return }
        directions[side.rawValue].acknowledged = total
        directions[side.rawValue].retransmissions = 0
    }

    private func sendReset(from side: Side) {
        send(from: side) {
            if self.isPathOpen { self.fail(side.other, .connectionReset) }
        }
    }

    private func move(_ side: Side, to state: EndState) {
        let old = ends[side.rawValue].state
        ends[side.rawValue].state = state
        let wasOpen = old == .opening || old == .open
        if side == .client, wasOpen, state != .open { ends[0].host.openStreamCount -= 1 }
    }

    private func fail(_ side: Side, _ error: ConnectionError) {
        let owner = ends[side.rawValue].owner
        let state = ends[side.rawValue].state
        move(side, to: .gone)
        ends[side.rawValue].owner = nil
        if state != .gone { owner?.streamFailed(error) }
    }

    /// Runs `body` when what is sent now arrives, after everything sent before in this direction.
    private func send(from side: Side, byteCount: Int = 0, _ body: @escaping () -> Void) {
        let (client, server) = (ends[0].host, ends[1].host)
        let earliest = max(simulation.now + transitTime, directions[side.rawValue].lastArrival)
        // What came before holds up what follows, on each of the links.
        let arrival = earliest + client.occupation(by: byteCount) + server.occupation(by: byteCount)
        directions[side.rawValue].lastArrival = arrival
        simulation.schedule(at: arrival, body)
    }

    private func schedule(after delay: Duration, _ body: @escaping () -> Void) {
        simulation.schedule(after: delay, body)
    }
}

extension ConnectionError {
    static var connectionReset: ConnectionError {
        ConnectionError(code: .closedByPeer, message: "The peer reset the connection.")
    }

    static var connectionRefused: ConnectionError {
        ConnectionError(code: .connectFailed, message: "The peer refused the connection.")
    }

    static var networkUnreachable: ConnectionError {
        ConnectionError(code: .connectFailed, message: "There is no route to the peer.")
    }

    static var certificateRejected: ConnectionError {
        ConnectionError(code: .tlsRejected, message: "The peer's certificate was not accepted.")
    }

    static var transmissionTimedOut: ConnectionError {
        ConnectionError(code: .ioError, message: "The peer acknowledged nothing for too long.")
    }
}
