import Lifeline
import LifelineCore

/// A state of a machine, with messages and requests under way.
///
/// Most are busy. They have request r1 sent and processed; request r2 sent, whose parts follow, and a part of it;
/// observed pushes #1 and #2 sent; and behind the full window an observed push #3 and a request r3. The peer's requests
/// 7 and 8 are running, the parts of 8 follow, and a push of the peer is not processed.
struct MachineMatrixSituation {
    enum Phase: String, CaseIterable {
        case none, opening, open, leaving, left
        /// The peer broke the rules, or a client has given up its connection.
        case closing
        case closed
    }

    enum Work: String {
        /// Nothing has happened.
        case new
        /// The session is open.
        case idle
        case busy
    }

    let name: String
    let role: SessionRole
    var phase = Phase.none
    var work = Work.busy
    /// Closing has a deadline of 2,000 ms.
    var isClosing = false
    var hasEnded = false
    /// Draining has a deadline of 1,000 ms.
    var isDraining = false
    var isDrained = false
    var narrow: MachineNarrowSituation?
    /// A server's older connection has until 2,001 ms to end its side.
    var isReplaced = false
    /// A client that has a session got another frame in place of the welcome.
    var isUnwelcome = false

    init(_ name: String, _ role: SessionRole) {
        self.name = name
        self.role = role
    }

    init(_ narrow: MachineNarrowSituation) {
        self.init(narrow.rawValue, narrow.isServer ? .server : .client)
        self.narrow = narrow
    }

    static let all: [MachineMatrixSituation] = clients + servers

    private static let clients: [MachineMatrixSituation] = {
        var situations: [MachineMatrixSituation] = []
        func add(_ name: String, _ change: (inout MachineMatrixSituation) -> Void) {
            var situation = MachineMatrixSituation(name, .client)
            change(&situation)
            situations.append(situation)
        }
        add("new") { $0.work = .new }
        add("newOpening") { ($0.work, $0.phase) = (.new, .opening) }
        add("idle") { ($0.work, $0.phase) = (.idle, .open) }
        add("idleLeft") { ($0.work, $0.phase) = (.idle, .leaving) }
        for phase in Phase.allCases { add(phase.rawValue) { $0.phase = phase } }
        add("unwelcome") { ($0.phase, $0.isUnwelcome) = (.opening, true) }
        for phase in Phase.allCases { add("c-\(phase)") { ($0.phase, $0.isClosing) = (phase, true) } }
        for phase in [Phase.none, .closing, .closed] { add("x-\(phase)") { ($0.phase, $0.hasEnded) = (phase, true) } }
        return situations
    }()

    private static let servers: [MachineMatrixSituation] = {
        var situations: [MachineMatrixSituation] = []
        func add(_ name: String, _ change: (inout MachineMatrixSituation) -> Void) {
            var situation = MachineMatrixSituation("s-" + name, .server)
            change(&situation)
            situations.append(situation)
        }
        add("new") { $0.work = .new }
        add("idle") { ($0.work, $0.phase) = (.idle, .open) }
        add("replaced") { ($0.phase, $0.isReplaced) = (.open, true) }
        for isClosing in [false, true] {
            for phase in Phase.allCases where phase != .opening {
                let name = isClosing ? "c-\(phase)" : phase.rawValue
                add(name) { ($0.phase, $0.isClosing) = (phase, isClosing) }
                add(name + "-draining") { ($0.phase, $0.isClosing, $0.isDraining) = (phase, isClosing, true) }
                guard phase != .none else { continue }
                add(name + "-drained") { ($0.phase, $0.isClosing, $0.isDrained) = (phase, isClosing, true) }
            }
        }
        for phase in [Phase.none, .closing, .closed] { add("x-\(phase)") { ($0.phase, $0.hasEnded) = (phase, true) } }
        return situations
    }()

    func makeEnd() -> MachineMatrixEnd {
        if let narrow { return narrow.makeEnd() }
        let end = MachineMatrixEnd(role)
        switch work {
        case .new: break
        case .idle: end.open()
        case .busy: end.beBusy()
        }
        let now = MonotonicTime.ms(1)
        if isDraining { end.machine.drain(SessionDrain(pause: .seconds(1), deadline: .ms(1_000))) }
        if isDrained {
            end.machine.drain(SessionDrain(pause: .seconds(1), deadline: now))
            end.machine.timerFired(now: now, into: &end.actions)
            end.forget(now: now)
        }
        // Its connection is lost first, because the offered frames would otherwise be lost with it.
        if isReplaced { end.replace(now: now) }
        if hasEnded { end.machine.end(.abandoned, now: now, into: &end.actions) }
        if isClosing { end.machine.close(by: .ms(2_000), now: now, into: &end.actions) }
        enter(end, now: now)
        end.actions = []
        return end
    }

    private func enter(_ end: MachineMatrixEnd, now: MonotonicTime) {
        switch phase {
        case .none:
            if hasEnded { end.forget(now: now) }
            end.machine.disconnected(end.machine.connectionID, now: now, into: &end.actions)
        case .opening:
            end.connect(now: now)
            end.forget(now: now)
            if isUnwelcome { end.receive(HostileFrame.goodbye(2), now: now) }
        case .open: break
        case .leaving:
            end.receive(HostileFrame.goodbye(2), now: now)
            if work == .idle { end.forget(now: now) }
        case .left: end.machine.sendingFailed(into: &end.actions)
        case .closing, .closed:
            if !hasEnded {
                // The server breaks the rules; the client says that it closes its connection.
                let frame = role == .client ? HostileFrame.of(.hello) : HostileFrame.goodbye(3)
                end.receive(frame, now: now)
            }
            if phase == .closed { end.forget(now: now) }
        }
    }
}
