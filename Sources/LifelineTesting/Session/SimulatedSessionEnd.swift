package import Lifeline
package import LifelineCore

/// One end of a simulated session: the machine of the real one, over a connection of bytes.
///
/// It does what the machine wants of connections, and tells `onActions` of everything, in order: who simulates acts for the
/// user. It writes as long as its connection has room whenever something happened.
package final class SimulatedSessionEnd {
    package typealias Machine = SessionMachine<SessionPayload, Int>
    package typealias Side = SimulatedSessionLink.Side

    package let side: Side
    package let options: SessionOptions
    package private(set) var machine: Machine
    /// The connection that it reads and writes.
    package private(set) var link: SimulatedSessionLink?
    /// How the session ended; nil while it goes on.
    package private(set) var end: SessionGoodbye?
    /// What the machine decided at one time.
    package var onActions: ([Machine.Action]) -> Void = { _ in }
    /// What goes with each opening.
    package var details = SessionOpeningDetails()

    /// Whether it leaves `received` 0 in its openings, and so is sent again what it has not processed.
    package var understatesReceived = false

    private var batches: [[Machine.Action]] = []
    private var runsBatches = false
    private var leavesLink = false

    package init(_ side: Side, options: SessionOptions) {
        self.side = side
        self.options = options
        machine = Machine(role: side == .client ? .client : .server, options: options)
    }

    // MARK: Connections

    /// A client has a connection, in place of the one that it had.
    package func connected(over link: SimulatedSessionLink, now: MonotonicTime) {
        self.link = link
        perform(machine.connected(now: now), now: now)
    }

    /// A client has opened a connection to this server's end.
    package func opened(
        by hello: SessionHello,
        _ credentials: SessionCredentials,
        isResumed: Bool,
        over link: SimulatedSessionLink,
        now: MonotonicTime
    ) {
        self.link = link
        perform(machine.opened(by: hello, credentials, isResumed: isResumed, now: now), now: now)
    }

    /// Its connection is gone, or given up.
    package func disconnected(now: MonotonicTime) {
        guard link != nil else { return }
        link = nil
        perform(machine.disconnected(now: now), now: now)
    }

    /// Takes what came over a connection; of another one than it has, nothing.
    package func received(
        _ frames: [Result<SimulatedSessionLink.Frame, SessionViolation>],
        over link: SimulatedSessionLink,
        now: MonotonicTime
    ) {
        for frame in frames where self.link === link {
            switch frame {
            case .success(let frame): perform(machine.received(frame, now: now), pumps: false, now: now)
            case .failure(let violation):
                perform(machine.receivedViolation(violation, now: now), pumps: false, now: now)
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

    @discardableResult
    package func respond(to request: IncomingRequest, _ payload: OutgoingPayload, now: MonotonicTime) -> Bool {
        let (isAccepted, actions) = machine.respond(to: request, .outgoing(payload), now: now)
        perform(actions, now: now)
        return isAccepted
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

    package func close(now: MonotonicTime) {
        perform(machine.close(), now: now)
    }

    package func abandon(_ goodbye: SessionGoodbye, now: MonotonicTime) {
        perform(machine.abandon(goodbye), now: now)
    }

    package func drain(pause: Duration, now: MonotonicTime) {
        machine.drain(pause: pause)
        pump(now: now)
    }

    // MARK: The driver

    /// Writes what there is to write, as long as the connection has room; then leaves it, if the machine wants that.
    package func pump(now: MonotonicTime) {
        while let link, link.hasRoom(from: side), let (frame, actions) = machine.nextFrame(now: now) {
            link.write(understatesReceived ? frame.understated : frame, details, from: side, now: now)
            enqueue(actions)
        }
        if leavesLink, let link {
            leavesLink = false
            link.end(from: side)
            disconnected(now: now)
        }
        runBatches(now: now)
    }

    private func perform(_ actions: [Machine.Action], pumps: Bool = true, now: MonotonicTime) {
        enqueue(actions)
        if pumps { pump(now: now) } else { runBatches(now: now) }
    }

    private func enqueue(_ actions: [Machine.Action]) {
        if actions.isEmpty { return }
        for action in actions {
            switch action {
            case .notWelcomed, .violated: leavesLink = link != nil
            case .ended(let goodbye, _):
                end = goodbye
                leavesLink = link != nil
            case .peerLeaving(let goodbye): if goodbye.code == .violation { leavesLink = link != nil }
            default: break
            }
        }
        batches.append(actions)
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
