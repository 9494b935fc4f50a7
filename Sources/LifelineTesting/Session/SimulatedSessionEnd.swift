package import Lifeline
package import LifelineCore

/// One end of a simulated session: the machine of the real one, over connections of bytes.
///
/// It runs the actions that are about connections, and tells `onActions` of all of them, in order: the simulation acts
/// for the user. It writes as long as its connection has room whenever something happened.
package final class SimulatedSessionEnd {
    package typealias Machine = SessionMachine<SessionPayload, Int>
    package typealias Side = SimulatedSessionLink.Side

    package let side: Side
    package let options: SessionOptions
    package private(set) var machine: Machine
    /// The present connection.
    package private(set) var link: SimulatedSessionLink?
    /// Other connections that are not gone yet: older ones, and those for which the machine has no use.
    private var otherLinks: [UInt64: SimulatedSessionLink] = [:]
    /// What the machine decided at one time.
    package var onActions: ([Machine.Action]) -> Void = { _ in }
    /// What goes with each opening.
    package var details = SessionOpeningDetails()

    /// What it shares with other sessions; nil: nothing.
    package var budget: SimulatedSessionBudget? {
        didSet { machine.allowance = budget == nil ? .unlimited : .none }
    }

    /// Whether it leaves `received` 0 in its openings, and so is sent again what it has not processed.
    package var understatesReceived = false

    /// How many frames connections have refused.
    package private(set) var failedSendCount = 0

    private var batches: [[Machine.Action]] = []
    private var runsBatches = false
    /// Connections that were closed at once.
    private var closedLinks: [SimulatedSessionLink] = []

    package init(_ side: Side, options: SessionOptions) {
        self.side = side
        self.options = options
        machine = Machine(role: side == .client ? .client : .server, options: options)
    }

    // MARK: Connections

    /// A client has a connection, in place of the one that it had.
    package func connected(over link: SimulatedSessionLink, now: MonotonicTime) {
        let actions = machine.connected(over: link.id, now: now)
        replaceLink(link)
        perform(actions, now: now)
    }

    /// A client has opened a connection to this server's end.
    ///
    /// - Returns: what to say on it if it does not get the session.
    package func opened(
        by hello: SessionHello,
        _ credentials: SessionCredentials,
        isResumed: Bool,
        over link: SimulatedSessionLink,
        now: MonotonicTime
    ) -> SessionGoodbye? {
        let (refusal, actions) = machine.opened(by: hello, credentials, isResumed: isResumed, over: link.id, now: now)
        if refusal == nil { replaceLink(link) }
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
        perform(machine.disconnected(link.id, now: now), now: now)
    }

    /// Takes what came over a connection.
    package func received(
        _ frames: [Result<SimulatedSessionLink.Frame, SessionViolation>],
        over link: SimulatedSessionLink,
        now: MonotonicTime
    ) {
        for frame in frames {
            switch frame {
            case .success(let frame):
                take(machine.lacking(for: frame))
                perform(machine.received(frame, over: link.id, now: now), pumps: false, now: now)
            case .failure(let violation):
                perform(machine.receivedViolation(violation, over: link.id, now: now), pumps: false, now: now)
            }
        }
        pump(now: now)
    }

    /// Its timer rings, in time or early.
    package func timerFired(now: MonotonicTime) {
        perform(machine.timerFired(now: now), now: now)
    }

    // MARK: What users do

    package func push(
        _ payload: OutgoingPayload,
        of request: IncomingRequest? = nil,
        _ delivery: SessionDelivery,
        now: MonotonicTime,
        accepted: (Machine.Offer) -> Void
    ) {
        take(machine.lacking(toSend: .outgoing(payload)))
        let (offer, actions) = machine.push(.outgoing(payload), of: request, delivery, isObserved: true, now: now)
        accepted(offer)
        perform(actions, now: now)
    }

    package func request(
        _ payload: OutgoingPayload,
        _ waiter: Int,
        deadline: MonotonicTime?,
        now: MonotonicTime
    ) throws(RequestError) -> Machine.RequestID {
        take(machine.lacking(toSend: .outgoing(payload)))
        let id = try machine.request(.outgoing(payload), waiter, deadline: deadline, now: now)
        pump(now: now)
        return id
    }

    /// - Parameter ended: is told of the waiter, before what follows from it.
    package func cancelRequest(_ id: Machine.RequestID, now: MonotonicTime, ended: (Int?) -> Void) {
        let (waiter, actions) = machine.cancelRequest(id, now: now)
        ended(waiter)
        perform(actions, now: now)
    }

    package func respond(to request: IncomingRequest, _ payload: OutgoingPayload, now: MonotonicTime) {
        take(machine.lacking(toSend: .outgoing(payload)))
        perform(machine.respond(to: request, .outgoing(payload), now: now).1, now: now)
    }

    package func refuse(_ request: IncomingRequest, _ refusal: RequestRefusal, now: MonotonicTime) {
        take(machine.lacking(toSend: .refusal(refusal)))
        perform(machine.refuse(request, refusal, now: now), now: now)
    }

    /// - Parameter withdrawn: is told whether it was, before what follows from it.
    package func withdraw(_ number: Machine.Number, now: MonotonicTime, withdrawn: (Bool) -> Void) {
        let (isWithdrawn, actions) = machine.withdraw(number, now: now)
        withdrawn(isWithdrawn)
        perform(actions, now: now)
    }

    package func finish(_ receipt: Machine.Receipt, now: MonotonicTime) {
        machine.finish(receipt, now: now)
        pump(now: now)
    }

    package func close(by deadline: MonotonicTime? = nil, now: MonotonicTime) {
        perform(machine.close(by: deadline, now: now), now: now)
    }

    package func end(_ reason: SessionEndReason, now: MonotonicTime) {
        perform(machine.end(reason, now: now), now: now)
    }

    package func drain(pause: Duration, by deadline: MonotonicTime, now: MonotonicTime) {
        machine.drain(pause: pause, by: deadline)
        pump(now: now)
    }

    // MARK: The driver

    /// Writes what there is to write, as long as the connection has room for it.
    package func pump(now: MonotonicTime) {
        while let link, let (frame, actions) = machine.nextFrame(hasRoom: link.hasRoom(from: side), now: now) {
            if link.refuses(from: side) {
                failedSendCount += 1
                enqueue(actions + machine.sendingFailed(), now: now)
            } else {
                link.write(understatesReceived ? frame.understated : frame, details, from: side, now: now)
                enqueue(actions, now: now)
            }
        }
        enqueue(machine.offeredFrames(hasRoom: link?.hasRoom(from: side) ?? true, now: now), now: now)
        while let closed = closedLinks.popLast() { disconnected(closed, now: now) }
        budget?.takeBackExcess(of: &machine)
        runBatches(now: now)
    }

    private func take(_ need: SessionNeed?) {
        if let need { budget?.take(need, for: &machine) }
    }

    private func perform(_ actions: [Machine.Action], pumps: Bool = true, now: MonotonicTime) {
        enqueue(actions, now: now)
        if pumps { pump(now: now) } else { runBatches(now: now) }
    }

    private func enqueue(_ actions: [Machine.Action], now: MonotonicTime) {
        if actions.isEmpty { return }
        for action in actions {
            switch action {
            case .sayGoodbye(let id, let goodbye):
                connection(id)?.write(.goodbye(goodbye), SessionOpeningDetails(), from: side, now: now)
            case .closeConnection(let id, let closing):
                guard let link = connection(id) else { break }
                link.end(from: side)
                switch closing {
                // What was written comes, and the peer ends its side.
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

    /// What the user does meanwhile comes behind it, as in the real driver.
    private func runBatches(now: MonotonicTime) {
        if runsBatches { return }
        runsBatches = true
        defer { runsBatches = false }
        while !batches.isEmpty { onActions(batches.removeFirst()) }
    }
}

extension SessionFrame {
    /// An opening that says nothing of what has come and is not processed.
    fileprivate var understated: SessionFrame {
        switch self {
        case .hello(var hello):
            hello.progress.received = 0
            return .hello(hello)
        case .welcome(var welcome):
            welcome.progress.received = 0
            return .welcome(welcome)
        case .message, .goodbye:
            return self
        }
    }
}
