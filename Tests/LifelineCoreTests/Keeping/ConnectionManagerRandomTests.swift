import LifelineCore
import LifelineTestSupport
import Testing

/// Random events, in any order and late, and the rules that have to hold after each.
@Suite struct ConnectionManagerRandomTests {
    /// The knowledge of an observer who sees only events and actions.
    private struct Witness {
        let maximumAttempts: Int?
        var connectionCount = 0
        var open: Set<UInt64> = []
        var hasNetwork: Bool
        var attempts = 0
        var steps: UInt64 = 0
        var state = ConnectionState.idle
        var readySince: MonotonicTime?
        /// The time at which the peer that has said goodbye to the current attempt wants to be tried again.
        var pauseEnd: MonotonicTime?

        /// The connection has ended. The peer may have said goodbye to it.
        mutating func ended(isStable: Bool) {
            if isStable { attempts = 0 } else if pauseEnd != nil { attempts = max(attempts - 1, 0) }
        }

        /// Whether the connection, whose end was noticed at `time`, has lasted long enough to refill the budget.
        func isStable(at time: MonotonicTime, lastSignOfLife: MonotonicTime? = nil) -> Bool {
            guard let readySince else { return false }
            return min(time, lastSignOfLife ?? time) - readySince >= .seconds(10)
        }

        /// The first rule that is broken.
        mutating func check(
            _ actions: [ConnectionManager.Action],
            _ manager: ConnectionManager,
            now: MonotonicTime
        ) -> String? {
            if state == .closed, !actions.isEmpty { return "closed is final" }
            for (index, action) in actions.enumerated() {
                switch action {
                case .transition(let step):
                    steps += 1
                    if index != 0 { return "the step comes first" }
                    if step.number != steps { return "a gap in the steps' numbers" }
                    if step.from != state || step.from == step.to { return "it does not go on from the last step" }
                    if step.time != now { return "a wrong time" }
                    if (step.to == .backingOff) != (step.nextAttempt != nil) { return "a wrong next attempt" }
                    if let next = step.nextAttempt, next < now { return "a next attempt in the past" }
                    if let pauseEnd, let next = step.nextAttempt, next < pauseEnd { return "a pause that is too short" }
                    if pauseEnd != nil, step.reason.code == .attemptsUsedUp { return "gave up over a goodbye" }
                    if step.reason.code == .attemptsUsedUp, attempts != maximumAttempts { return "gave up too early" }
                    let expectedAttempt: Int =
                        switch step.to {
                        case .connecting: attempts + 1
                        case .ready, .backingOff, .gaveUp: attempts
                        case .idle, .waitingForNetwork, .draining, .closed: 0
                        }
                    if step.attempt != expectedAttempt { return "a wrong attempt" }
                    state = step.to
                    readySince = state == .ready ? now : nil
                    if state != .ready { pauseEnd = nil }
                case .connect(let id):
                    connectionCount += 1
                    attempts += 1
                    if state != .connecting { return "connects while \(state)" }
                    if id != connectionCount { return "a gap in the connections' numbers" }
                    if !open.isEmpty { return "two connections" }
                    if !hasNetwork { return "connects without network" }
                    if let maximumAttempts, attempts > maximumAttempts { return "over the budget" }
                    open.insert(id)
                case .abort(let id, _):
                    if open.remove(id) == nil { return "aborts what there is not" }
                case .drain(let id):
                    if state != .draining || !open.contains(id) { return "drains what there is not" }
                case .probe(let id):
                    if state != .ready || !open.contains(id) { return "probes what is not connected" }
                    if !hasNetwork { return "probes without network" }
                }
            }
            if manager.state != state { return "a change without a step" }
            let expectsConnection = state == .connecting || state == .ready || state == .draining
            if open.count != (expectsConnection ? 1 : 0) { return "\(open.count) connections while \(state)" }
            if manager.connectionID != open.first { return "another connection than is open" }
            if (manager.nextDeadline != nil) != (state == .backingOff) { return "a wrong deadline while \(state)" }
            return nil
        }
    }

    @Test(arguments: 0..<2000 as Range<UInt64>)
    func invariants(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let hasNetwork = Bool.random(using: &random)
        var backoff = BackoffConfiguration()
        backoff.maximumAttempts = [1, 2, 4, nil].randomElement(using: &random)!
        var manager = ConnectionManager(backoff: backoff, seed: seed, hasNetwork: hasNetwork)
        var witness = Witness(maximumAttempts: backoff.maximumAttempts, hasNetwork: hasNetwork)
        var now = at(1000)
        var trace: [String] = []
        for step in 0..<150 {
            let before = now
            // Time mostly moves to the next deadline, sometimes less, sometimes by a sleep, and sometimes not at all.
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<4: now = max(now, manager.nextDeadline ?? now)
            case 4..<7: now = now + .milliseconds(Int.random(in: 0..<12_000, using: &random))
            case 7: now = now + .seconds(Int.random(in: 0..<10_000, using: &random))
            default: break
            }
            var reported = now
            if step > 0, Int.random(in: 0..<10, using: &random) == 0 {
                // If the clock goes back, the latest time counts.
                reported = before - .seconds(5)
                now = before
            }
            // Mostly the current connection, sometimes an earlier one, or one that never existed.
            let present = manager.connectionID ?? 0
            let isLate = Int.random(in: 0..<4, using: &random) == 0
            let id = isLate ? UInt64.random(in: 0...(present + 1), using: &random) : present

            let (name, actions) = event(&manager, &witness, id, now, reported, &random)
            trace.append("\(now) \(name): \(line(actions))")
            if let failure = witness.check(actions, manager, now: now) {
                Issue.record("seed \(seed): \(failure)\n\(trace.joined(separator: "\n"))")
                return
            }
        }
    }

    private func event(
        _ manager: inout ConnectionManager,
        _ witness: inout Witness,
        _ id: UInt64,
        _ now: MonotonicTime,
        _ reported: MonotonicTime,
        _ random: inout SeededGenerator
    ) -> (String, [ConnectionManager.Action]) {
        let isPresent = id == manager.connectionID
        // The end of a connection that lasted refills the budget, and so does a request for a new start.
        switch Int.random(in: 0..<200, using: &random) {
        case 0..<10:
            return ("start", manager.start(now: reported))
        case 10..<22:
            witness.hasNetwork = true
            if [.waitingForNetwork, .backingOff, .gaveUp].contains(witness.state) { witness.attempts = 0 }
            if witness.pauseEnd != nil { witness.pauseEnd = now }
            return ("networkUp", manager.networkUp(now: reported))
        case 22..<30:
            witness.hasNetwork = false
            return ("networkLost", manager.networkLost(now: reported))
        case 30..<70:
            return ("connected \(id)", manager.connected(id, now: reported))
        case 70..<100:
            if isPresent {
                witness.open.remove(id)
                witness.ended(isStable: witness.isStable(at: now))
            }
            return ("connectFailed \(id)", manager.connectFailed(id, .refused, now: reported))
        case 100..<102:
            if isPresent {
                witness.open.remove(id)
                if witness.isStable(at: now) { witness.attempts = 0 }
            }
            return ("tlsRejected \(id)", manager.connectFailed(id, .badCertificate, now: reported))
        case 102..<120:
            if isPresent {
                witness.open.remove(id)
                witness.ended(isStable: witness.isStable(at: now))
            }
            return ("ended \(id)", manager.connectionEnded(id, .closedByPeer, now: reported))
        case 120..<140:
            // The time is sometimes before the connection, and sometimes later than now.
            let last = now - .milliseconds(Int.random(in: -2000..<40_000, using: &random))
            if isPresent {
                witness.open.remove(id)
                witness.ended(isStable: witness.isStable(at: now, lastSignOfLife: last))
            }
            let actions = manager.connectionEnded(id, .heartbeatTimeout, lastSignOfLife: last, now: reported)
            return ("dead \(id), alive until \(last)", actions)
        case 140..<150:
            let pause = Duration.milliseconds(Int.random(in: 0..<20_000, using: &random))
            if witness.state == .connecting || witness.state == .ready { witness.pauseEnd = now + pause }
            manager.pauseRequested(for: pause, now: reported)
            return ("goodbye for \(pause)", [])
        case 150..<192:
            return ("timer", manager.timerFired(now: reported))
        case 192..<197:
            if [.ready, .backingOff, .gaveUp].contains(witness.state) { witness.attempts = 0 }
            return ("reconnect", manager.reconnectRequested(now: reported))
        case 197:
            return ("cancelled", manager.cancelled(now: reported))
        default:
            return ("close", manager.closeRequested(now: reported))
        }
    }

    /// The random tests reach each state, and leave it in each way that its documentation lists.
    @Test func randomEventsReachEveryStep() {
        var seen: Set<String> = []
        for seed in 0..<300 as Range<UInt64> {
            var random = SeededGenerator(seed: seed)
            var manager = ConnectionManager(attempts: 2, hasNetwork: seed.isMultiple(of: 2))
            var witness = Witness(maximumAttempts: nil, hasNetwork: true)
            var now = at(0)
            for _ in 0..<200 {
                now = max(now + .milliseconds(Int.random(in: 0..<3000, using: &random)), manager.nextDeadline ?? now)
                let id = manager.connectionID ?? 0
                for case .transition(let step) in event(&manager, &witness, id, now, now, &random).1 {
                    seen.insert("\(step.from) \(step.to)")
                }
            }
        }
        let documented: [ConnectionState: [ConnectionState]] = [
            .idle: [.waitingForNetwork, .connecting, .closed],
            .waitingForNetwork: [.connecting, .closed],
            .connecting: [.ready, .waitingForNetwork, .backingOff, .gaveUp, .closed],
            .ready: [.waitingForNetwork, .connecting, .backingOff, .gaveUp, .draining, .closed],
            .backingOff: [.connecting, .waitingForNetwork, .closed],
            .draining: [.closed],
            .gaveUp: [.connecting, .waitingForNetwork, .closed],
        ]
        #expect(seen == Set(documented.flatMap { from, to in to.map { "\(from) \($0)" } }))
    }
}
