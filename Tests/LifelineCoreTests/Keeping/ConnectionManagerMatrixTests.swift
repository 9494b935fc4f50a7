import LifelineCore
import Testing

/// Every state × every event: the actions and the next state, so that no pair is undecided.
@Suite struct ConnectionManagerMatrixTests {
    /// Every state, with the variants that change the meaning of events.
    enum Situation: CaseIterable, Sendable {
        case idle, idleOffline, waitingForNetwork, connecting
        /// Connected 1 s ago; and 15 s ago.
        case ready, stable
        /// The same, and the peer said goodbye at the beginning, without a pause.
        case dismissed, dismissedStable
        case backingOff, draining, gaveUp, gaveUpOffline, closed
    }

    enum Event: CaseIterable, Sendable {
        case start, networkUp, networkLost, connected, connectFailed, tlsRejected, peerClosed, drained
        /// Given up by the heartbeat: silent from the beginning; and alive until just now.
        case peerSilent, peerDied
        case otherConnected, otherFailed, otherEnded
        case timerEarly, timerDue, reconnect, close, cancelled
    }

    /// The time of the event, and the manager before it.
    private func manager(in situation: Situation) -> (ConnectionManager, now: MonotonicTime) {
        var manager = ConnectionManager(hasNetwork: situation != .idleOffline && situation != .waitingForNetwork)
        if situation == .idle || situation == .idleOffline { return (manager, at(1)) }
        _ = manager.start(now: at(0))
        switch situation {
        case .idle, .idleOffline, .waitingForNetwork, .connecting:
            return (manager, at(1))
        case .ready, .stable, .dismissed, .dismissedStable, .draining:
            _ = manager.connected(1, now: at(0))
            if situation == .draining { _ = manager.closeRequested(now: at(0)) }
            if [.dismissed, .dismissedStable].contains(situation) { manager.pauseRequested(for: .zero, now: at(0)) }
            return (manager, [.stable, .dismissedStable].contains(situation) ? at(15) : at(1))
        case .backingOff:
            _ = manager.connectFailed(1, .refused, now: at(0))
            return (manager, at(0.5))
        case .gaveUp, .gaveUpOffline:
            _ = manager.connectFailed(1, .badCertificate, now: at(0))
            if situation == .gaveUpOffline { _ = manager.networkLost(now: at(0)) }
            return (manager, at(1))
        case .closed:
            _ = manager.cancelled(now: at(0))
            return (manager, at(1))
        }
    }

    private func apply(
        _ event: Event,
        to manager: inout ConnectionManager,
        now: MonotonicTime
    ) -> [ConnectionManager.Action] {
        switch event {
        case .start: return manager.start(now: now)
        case .networkUp: return manager.networkUp(now: now)
        case .networkLost: return manager.networkLost(now: now)
        case .connected: return manager.connected(1, now: now)
        case .connectFailed: return manager.connectFailed(1, .refused, now: now)
        case .tlsRejected: return manager.connectFailed(1, .badCertificate, now: now)
        case .peerClosed: return manager.connectionEnded(1, .closedByPeer, now: now)
        case .drained: return manager.connectionEnded(1, TransitionReason(.drained), now: now)
        case .peerSilent: return manager.connectionEnded(1, .heartbeatTimeout, lastSignOfLife: at(0), now: now)
        case .peerDied: return manager.connectionEnded(1, .heartbeatTimeout, lastSignOfLife: now, now: now)
        case .otherConnected: return manager.connected(0, now: now)
        case .otherFailed: return manager.connectFailed(0, .refused, now: now)
        case .otherEnded: return manager.connectionEnded(0, .closedByPeer, now: now)
        case .timerEarly: return manager.timerFired(now: now)
        case .timerDue: return manager.timerFired(now: manager.nextDeadline ?? now)
        case .reconnect: return manager.reconnectRequested(now: now)
        case .close: return manager.closeRequested(now: now)
        case .cancelled: return manager.cancelled(now: now)
        }
    }

    /// The actions, as `line` writes them.
    private func expected(_ situation: Situation, _ event: Event) -> String {
        switch event {
        case .start:
            switch situation {
            case .idle: "→ connecting started (1), connect 1"
            case .idleOffline: "→ waitingForNetwork started"
            case .waitingForNetwork, .connecting, .ready, .stable, .dismissed, .dismissedStable, .backingOff,
                .draining, .gaveUp, .gaveUpOffline, .closed:
                ""
            }
        case .networkUp:
            switch situation {
            case .waitingForNetwork: "→ connecting networkUp (1), connect 1"
            case .backingOff, .gaveUp, .gaveUpOffline: "→ connecting networkUp (1), connect 2"
            case .ready, .stable, .dismissed, .dismissedStable: "probe 1"
            case .idle, .idleOffline, .connecting, .draining, .closed: ""
            }
        case .networkLost:
            switch situation {
            case .connecting, .ready, .stable, .dismissed, .dismissedStable:
                "→ waitingForNetwork networkLost, abort 1 networkLost"
            case .backingOff: "→ waitingForNetwork networkLost"
            case .draining: "→ closed networkLost, abort 1 networkLost"
            case .idle, .idleOffline, .waitingForNetwork, .gaveUp, .gaveUpOffline, .closed: ""
            }
        case .connected:
            switch situation {
            case .connecting: "→ ready connected (1)"
            case .idle, .idleOffline, .waitingForNetwork, .ready, .stable, .dismissed, .dismissedStable, .backingOff,
                .draining, .gaveUp, .gaveUpOffline, .closed:
                ""
            }
        case .connectFailed, .peerClosed, .drained:
            ended(situation, event == .connectFailed ? "connectFailed" : event == .drained ? "drained" : "closedByPeer")
        case .peerSilent:
            // A silent connection is not stable.
            ended(
                situation == .stable ? .ready : situation == .dismissedStable ? .dismissed : situation,
                "heartbeatTimeout"
            )
        case .peerDied:
            ended(situation, "heartbeatTimeout")
        case .tlsRejected:
            switch situation {
            case .connecting, .ready, .dismissed: "→ gaveUp tlsRejected (1)"
            case .stable, .dismissedStable: "→ gaveUp tlsRejected"
            case .draining: "→ closed tlsRejected"
            case .idle, .idleOffline, .waitingForNetwork, .backingOff, .gaveUp, .gaveUpOffline, .closed: ""
            }
        case .otherConnected, .otherFailed, .otherEnded, .timerEarly:
            ""
        case .timerDue:
            switch situation {
            case .backingOff: "→ connecting retryDue (2), connect 2"
            case .idle, .idleOffline, .waitingForNetwork, .connecting, .ready, .stable, .dismissed, .dismissedStable,
                .draining, .gaveUp, .gaveUpOffline, .closed:
                ""
            }
        case .reconnect:
            switch situation {
            case .ready, .stable, .dismissed, .dismissedStable:
                "→ connecting reconnectRequested (1), abort 1 reconnectRequested, connect 2"
            case .backingOff, .gaveUp: "→ connecting reconnectRequested (1), connect 2"
            case .gaveUpOffline: "→ waitingForNetwork reconnectRequested"
            case .idle, .idleOffline, .waitingForNetwork, .connecting, .draining, .closed: ""
            }
        case .close:
            switch situation {
            case .ready, .stable, .dismissed, .dismissedStable: "→ draining closedByUser, drain 1"
            case .connecting, .draining: "→ closed closedByUser, abort 1 closedByUser"
            case .idle, .idleOffline, .waitingForNetwork, .backingOff, .gaveUp, .gaveUpOffline: "→ closed closedByUser"
            case .closed: ""
            }
        case .cancelled:
            switch situation {
            case .connecting, .ready, .stable, .dismissed, .dismissedStable, .draining:
                "→ closed cancelled, abort 1 cancelled"
            case .idle, .idleOffline, .waitingForNetwork, .backingOff, .gaveUp, .gaveUpOffline: "→ closed cancelled"
            case .closed: ""
            }
        }
    }

    /// The attempt or connection has ended.
    private func ended(_ situation: Situation, _ reason: String) -> String {
        switch situation {
        case .connecting, .ready: "→ backingOff \(reason) (1) in 1.0 seconds"
        case .dismissed: "→ backingOff \(reason) in 0.1 seconds"
        case .stable, .dismissedStable: "→ connecting \(reason) (1), connect 2"
        case .draining: "→ closed \(reason)"
        case .idle, .idleOffline, .waitingForNetwork, .backingOff, .gaveUp, .gaveUpOffline, .closed: ""
        }
    }

    @Test(arguments: Situation.allCases, Event.allCases)
    func pair(situation: Situation, event: Event) throws {
        var (manager, now) = manager(in: situation)
        let before = manager.state
        let actions = apply(event, to: &manager, now: now)
        #expect(line(actions) == expected(situation, event))

        let steps = actions.compactMap { if case .transition(let step) = $0 { step } else { nil } }
        #expect(steps.count <= 1)
        #expect(manager.state == steps.last?.to ?? before, "without a step the state remains")
        if let step = steps.first {
            #expect(actions.first == .transition(step), "the step comes first")
            #expect(step.from == before && step.to != before)
            #expect(step.nextAttempt == (step.to == .backingOff ? manager.nextDeadline : nil))
        }
        #expect((manager.nextDeadline != nil) == (manager.state == .backingOff))
        switch manager.state {
        case .connecting, .ready, .draining: #expect(manager.connectionID != nil)
        case .idle, .waitingForNetwork, .backingOff, .gaveUp, .closed: #expect(manager.connectionID == nil)
        }
    }
}
