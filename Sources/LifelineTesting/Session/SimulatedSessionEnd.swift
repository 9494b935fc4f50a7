package import Lifeline
package import LifelineCore

/// One end of a simulated session: the machine of the real one, over connections of bytes.
///
/// It runs the actions that are about connections, and tells `onActions` of all of them, in order: the simulation acts
/// for the user. Whenever something happened, it writes as long as its connection has room.
package final class SimulatedSessionEnd {
    package typealias Side = SimulatedSessionLink.Side

    /// The content of a message: encoded fields of its kind, such as metadata, and the encoded message.
    package struct Content {
        package var fields: [UInt8]
        package var payload: [UInt8]

        package init(fields: [UInt8] = [], payload: [UInt8] = []) {
            (self.fields, self.payload) = (fields, payload)
        }

        package var byteCount: Int { fields.count + payload.count }

        func borrowed<Result>(_ body: (SessionMachine.Content) -> Result) -> Result {
            fields.withUnsafeBytes { fields in
                payload.withUnsafeBytes { body(SessionMachine.Content(fields: fields, payload: $0)) }
            }
        }
    }

    /// An opening or a frame on its connections, as the machine sees it.
    package enum Traffic {
        /// The peer goes on behind these places; nil: a session begins.
        case opened(OpeningProgress?)
        /// A frame that the machine has handed out, without its length in front, even if the connection has refused it.
        case sent(UnsafeRawBufferPointer)
        /// A frame that the machine is about to take.
        case received(UnsafeRawBufferPointer)
    }

    package let side: Side
    package let options: SessionOptions
    package internal(set) var machine: SessionMachine
    /// The present connection.
    package private(set) var link: SimulatedSessionLink?
    /// Other connections that are not gone yet: older ones, and those for which the machine has no use.
    private var otherLinks: [UInt64: SimulatedSessionLink] = [:]
    /// The decisions of the machine at one time. Messages in them are valid during the call.
    package var onActions: ([SessionMachine.Action]) -> Void = { _ in }
    package var onTraffic: ((Traffic) -> Void)?
    /// The details of each opening.
    package var details = SessionMachine.OpeningDetails()
    /// About how many bytes it writes before it looks again whether there is room.
    package var offeredByteCount = 1 << 10

    /// The budget that it shares with other sessions; nil: none.
    package var budget: SimulatedSessionBudget? {
        didSet { machine.allowance = budget == nil ? .unlimited : .none }
    }

    /// Where durable messages are kept, and whose they are; nil: nowhere.
    var store: (store: SimulatedSessionStore, peer: SessionStoreID?)?

    /// How many times connections have refused what was written.
    package private(set) var failedSendCount = 0
    /// Frames that came over a connection when they did not count any more: what has a place is sent again.
    package private(set) var ignoredFrameCount = 0

    /// How many messages went the short way of those that have nothing special.
    package internal(set) var plainCount = 0
    /// Decides which of them do, as far as they can.
    var ways = SplitMix64(seed: 1)

    private var batches: [[SessionMachine.Action]] = []
    private var runsBatches = false
    /// Connections that were closed at once.
    private var closedLinks: [SimulatedSessionLink] = []

    package init(_ side: Side, options: SessionOptions) {
        self.side = side
        self.options = options
        machine = SessionMachine(role: side == .client ? .client : .server, options: options)
    }

    // MARK: Connections

    /// A client has a connection, in place of the one that it had.
    package func connected(over link: SimulatedSessionLink, now: MonotonicTime) {
        var actions: [SessionMachine.Action] = []
        machine.connected(over: link.id, details, now: now, into: &actions)
        replaceLink(link)
        perform(actions, now: now)
    }

    /// A client has opened a connection to this server's end.
    ///
    /// - Returns: what to say on it if it does not get the session.
    package func opened(
        by hello: ClientOpening,
        _ credentials: SessionCredentials,
        isResumed: Bool,
        over link: SimulatedSessionLink,
        now: MonotonicTime
    ) -> SessionGoodbye? {
        var actions: [SessionMachine.Action] = []
        let refusal = machine.opened(
            by: hello,
            credentials,
            isResumed: isResumed,
            over: link.id,
            details,
            now: now,
            into: &actions
        )
        if refusal == nil {
            replaceLink(link)
            onTraffic?(.opened(isResumed ? hello.progress : nil))
        }
        perform(actions, now: now)
        return refusal
    }

    private func replaceLink(_ link: SimulatedSessionLink) {
        guard link.id == machine.connectionID else { return otherLinks[link.id] = link }
        if let older = self.link { otherLinks[older.id] = older }
        self.link = link
    }

    /// Its present connection is gone, or given up.
    package func disconnected(now: MonotonicTime) {
        if let link { disconnected(link, now: now) }
    }

    /// A connection is gone.
    package func disconnected(_ link: SimulatedSessionLink, now: MonotonicTime) {
        otherLinks[link.id] = nil
        if self.link === link { self.link = nil }
        var actions: [SessionMachine.Action] = []
        machine.disconnected(link.id, now: now, into: &actions)
        perform(actions, now: now)
    }

    /// Takes frames that came over a connection.
    package func received(
        _ frames: [SimulatedSessionLink.Frame],
        over link: SimulatedSessionLink,
        now: MonotonicTime
    ) {
        precondition(!runsBatches, "a frame came within another event, and would be borrowed for too long")
        for frame in frames {
            switch frame {
            case .success(let bytes): bytes.withUnsafeBytes { receive($0, over: link, now: now) }
            case .failure(let violation):
                var actions: [SessionMachine.Action] = []
                machine.receivedViolation(violation, over: link.id, now: now, into: &actions)
                perform(actions, pumps: false, now: now)
            }
        }
        pump(now: now)
    }

    private func receive(_ frame: UnsafeRawBufferPointer, over link: SimulatedSessionLink, now: MonotonicTime) {
        if machine.isDone(with: link.id) {
            ignoredFrameCount += 1
        } else if let onTraffic {
            onTraffic(.received(frame))
            if let inner = try? InboundFrame(parsing: frame), inner.kind == .welcome,
                let welcome = try? ServerOpening(parsing: inner.body)
            {
                onTraffic(.opened(welcome.isResumed ? welcome.progress : nil))
            }
        }
        take(machine.lacking(toReceive: frame))
        var actions: [SessionMachine.Action] = []
        if let arrival = machine.receive(frame, over: link.id, now: now, into: &actions) {
            actions.append(.arrived(arrival))
        }
        perform(actions, pumps: false, now: now)
    }

    /// Its timer rings, in time or early.
    package func timerFired(now: MonotonicTime) {
        var actions: [SessionMachine.Action] = []
        machine.timerFired(now: now, into: &actions)
        perform(actions, now: now)
    }

    // MARK: The driver

    /// Writes what there is to write, as long as the connection has room for it.
    package func pump(now: MonotonicTime) {
        beginCalls(now: now)
        useStore(now: now)
        while let link, offer(over: link, now: now) {}
        var actions: [SessionMachine.Action] = []
        machine.offered(hasRoom: link?.hasRoom(from: side) ?? true, now: now, into: &actions)
        enqueue(actions)
        while let closed = closedLinks.popLast() { disconnected(closed, now: now) }
        budget?.takeBackExcess(of: &machine)
        runBatches()
    }

    /// Has the machine hand out frames. Returns whether there may be more.
    private func offer(over link: SimulatedSessionLink, now: MonotonicTime) -> Bool {
        var (bytes, actions) = ([UInt8](), [SessionMachine.Action]())
        let isMore = machine.offer(
            hasRoom: link.hasRoom(from: side),
            atMost: offeredByteCount,
            now: now,
            into: &actions
        ) { bytes.append(contentsOf: $0) }
        if !bytes.isEmpty {
            if link.refuses(from: side) {
                failedSendCount += 1
                machine.sendingFailed(into: &actions)
            } else {
                if let onTraffic { bytes.withUnsafeBytes { Self.forEachFrame($0) { onTraffic(.sent($0)) } } }
                link.write(bytes, from: side)
                machine.written()
            }
        }
        enqueue(actions)
        return isMore
    }

    private static func forEachFrame(_ bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Void) {
        var rest = bytes
        while case .value(let length, let prefix) = Varint.decode(rest) {
            let end = prefix + Int(length)
            precondition(end <= rest.count, "a frame was handed out in pieces")
            body(UnsafeRawBufferPointer(rebasing: rest[prefix..<end]))
            rest = UnsafeRawBufferPointer(rebasing: rest[end...])
        }
    }

    func take(_ need: SessionNeed?) {
        if let need { budget?.take(need, for: &machine) }
    }

    func perform(_ actions: [SessionMachine.Action], pumps: Bool = true, now: MonotonicTime) {
        enqueue(actions)
        if pumps { pump(now: now) } else { runBatches() }
    }

    private func enqueue(_ actions: [SessionMachine.Action]) {
        if actions.isEmpty { return }
        for action in actions {
            switch action {
            case .sayGoodbye(let id, let goodbye):
                var bytes: [UInt8] = []
                goodbye.write(to: &bytes)
                connection(id)?.write(bytes, from: side)
            case .closeConnection(let id, let closing):
                guard let link = connection(id) else { break }
                link.end(from: side)
                switch closing {
                // The bytes that were written come, and the peer ends its side.
                case .inOrder, .endSending: break
                case .abortNotWelcomed, .abortViolated, .byOwner: closedLinks.append(link)
                }
            default: break
            }
        }
        batches.append(actions)
    }

    private func connection(_ id: UInt64) -> SimulatedSessionLink? {
        link?.id == id ? link : otherLinks[id]
    }

    /// Actions that follow from these come behind them, as in the real driver.
    private func runBatches() {
        if runsBatches { return }
        runsBatches = true
        defer { runsBatches = false }
        while !batches.isEmpty { onActions(batches.removeFirst()) }
    }
}
