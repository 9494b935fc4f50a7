import LifelineCore
import Testing

/// Every situation × every event: the actions, and the next state of the client, so that no pair is undecided.
@Suite struct ClientMachineMatrixTests {
    /// Every state of the connection, of the driver's knowledge of it, and of the sends, if it changes the meaning of
    /// events.
    enum Situation: String, CaseIterable, Sendable {
        case idle, idleOffline, waitingForNetwork, connecting
        /// An attempt, with m1, which may wait, and m2, which must not be late, in the queue.
        case connectingQueued
        /// The peer has ended its side before the connection was reported.
        case endedEarly
        /// An attempt that was given up, without and with a next one.
        case givenUp, givenUpNext
        /// Connected 1 s ago; and 12 s ago.
        case ready, stable
        /// The same, and the peer asked for a pause when it was connected: of 1.5 s; and of 20 s.
        case pausing, pausingStable
        /// m1 is handed over; m2 waits, and so does m3, which must not wait without a connection.
        case handing
        /// m3, which must not wait without a connection, is handed over; m4, which must not either, waits; m1 and m2
        /// are sent.
        case handingThird
        /// Like `handing`, but the sender of m1 has cancelled it.
        case withdrawing
        /// The connection refused a message: m1 waits.
        case failed
        /// The peer has ended: without and with an immediate next attempt.
        case ended, endedNext
        /// The peer has ended while m1 is handed over.
        case endedHanding
        /// The closing connection was cut: by the loss of the network, the user, and a request for another connection.
        case lost, cancelled, replaced
        case backingOff, gaveUp
        /// Without and with m1 handed over.
        case draining, drainingHanding
        /// Closed while the connection that the peer has ended still writes; and the same after the user's `close()`.
        case closedEnded, closedEndedByUser
        case over
    }

    enum Event: String, CaseIterable, Sendable {
        case start, networkUp, networkLost
        /// The peer asks for a pause, of 0.1 s and of 100 s.
        case pausedShortly, pausedLong
        case connected, connectedLate, connectedOther, connectFailed, tlsRejected, connectGivenUp
        /// Also with a time before the latest one.
        case inputEnded, inputEndedBefore, inputEndedOther
        case closed, closedReset, closedWithinFrame, closedViolated, closedWithoutEnd, closedSilent, closedOther
        case timerEarly, timerDue, timerLate
        case reconnect, beginClose, close, cut, cancel
        case offerWait, offerFail, offerDrop, offerLarge, offerTooLarge, cancelFirst, cancelSecond
        case sendFailed, sendFailedOther, handedOver, refused, handedOverOther
    }

    /// The machine in a situation, and the time of the event.
    func machine(in situation: Situation) throws -> (ClientMachine, now: MonotonicTime) {
        var machine = ClientMachine(hasNetwork: situation != .idleOffline && situation != .waitingForNetwork)
        switch situation {
        case .idle, .idleOffline: return (machine, at(1))
        default: _ = try machine.start(now: at(0))
        }
        switch situation {
        case .idle, .idleOffline, .waitingForNetwork, .connecting:
            return (machine, at(1))
        case .connectingQueued:
            _ = machine.offered(byteCount: 10, policy: .wait(timeout: .seconds(2)), since: at(0), now: at(0))
            _ = machine.offered(byteCount: 10, policy: .drop(after: .seconds(3)), since: at(0), now: at(0))
        case .endedEarly:
            _ = machine.inputEnded(1, now: at(0))
        case .givenUp, .givenUpNext:
            _ = machine.networkLost(now: at(0))
            if situation == .givenUpNext { _ = machine.networkUp(now: at(0)) }
        case .backingOff:
            _ = machine.connectFailed(1, .refused, now: at(0))
            return (machine, at(0.5))
        case .gaveUp:
            _ = machine.connectFailed(1, .badCertificate, now: at(0))
        case .handing, .handingThird, .withdrawing, .endedHanding, .drainingHanding:
            _ = machine.offered(byteCount: 10, policy: .wait(timeout: .seconds(20)), since: at(0), now: at(0))
            let areMore = [.handing, .handingThird, .withdrawing].contains(situation)
            if areMore {
                _ = machine.offered(byteCount: 10, policy: .wait(timeout: .seconds(30)), since: at(0), now: at(0))
            }
            connect(&machine)
            if areMore { _ = machine.offered(byteCount: 10, policy: .fail, since: at(0), now: at(0)) }
            if situation == .handingThird {
                _ = machine.handOverEnded(1, on: 1, isAccepted: true, now: at(0))
                _ = machine.handOverEnded(2, on: 1, isAccepted: true, now: at(0))
                _ = machine.offered(byteCount: 10, policy: .fail, since: at(0), now: at(0))
            }
            if situation == .withdrawing { _ = machine.sendCancelled(1) }
            if situation == .endedHanding { _ = machine.inputEnded(1, now: at(0)) }
            if situation == .drainingHanding { _ = machine.closeRequested(now: at(0)) }
        case .failed:
            connect(&machine)
            _ = machine.sendFailed(on: 1)
            _ = machine.offered(byteCount: 10, policy: .wait(timeout: .seconds(20)), since: at(0), now: at(0))
        case .ready, .stable, .pausing, .pausingStable, .endedNext, .ended, .lost, .cancelled, .replaced, .draining,
            .closedEnded,
            .closedEndedByUser, .over:
            connect(&machine)
            end(&machine, as: situation)
            return (machine, [.stable, .pausingStable, .endedNext].contains(situation) ? at(12) : at(1))
        }
        return (machine, at(1))
    }

    private func connect(_ machine: inout ClientMachine) {
        _ = machine.connected(1, now: at(0))
    }

    private func end(_ machine: inout ClientMachine, as situation: Situation) {
        switch situation {
        case .pausing: machine.peerLeaving(pause: .seconds(1.5), now: at(0))
        case .pausingStable: machine.peerLeaving(pause: .seconds(20), now: at(0))
        case .endedNext: _ = machine.inputEnded(1, now: at(11))
        case .ended: _ = machine.inputEnded(1, now: at(0))
        case .lost: _ = machine.networkLost(now: at(0))
        case .cancelled: _ = machine.cancelled(now: at(0))
        case .replaced: _ = machine.reconnectRequested(now: at(0))
        case .draining: _ = machine.closeRequested(now: at(0))
        case .closedEnded, .closedEndedByUser:
            _ = machine.inputEnded(1, now: at(0))
            _ = situation == .closedEnded ? machine.closeRequested(now: at(0)) : machine.closedByUser(now: at(0))
        case .over:
            _ = machine.cancelled(now: at(0))
            _ = machine.connectionClosed(1, .inOrder, now: at(0))
        default: break
        }
    }

    /// The actions, as `line` writes them.
    private func apply(_ event: Event, to machine: inout ClientMachine, now: MonotonicTime) -> String {
        switch event {
        case .start:
            do { return try line(machine.start(now: now)) } catch { return "\(error.code)" }
        case .networkUp: return line(machine.networkUp(now: now))
        case .networkLost: return line(machine.networkLost(now: now))
        case .pausedShortly, .pausedLong:
            machine.peerLeaving(pause: event == .pausedLong ? .seconds(100) : .milliseconds(100), now: now)
            return ""
        case .connected: return line(machine.connected(1, now: now))
        case .connectedLate: return line(machine.connected(1, now: now + .seconds(1)))
        case .connectedOther: return line(machine.connected(9, now: now))
        case .connectFailed: return line(machine.connectFailed(1, .refused, now: now))
        case .tlsRejected: return line(machine.connectFailed(1, .badCertificate, now: now))
        case .connectGivenUp: return line(machine.connectFailed(1, nil, now: now))
        case .inputEnded: return line(machine.inputEnded(1, now: now))
        case .inputEndedBefore: return line(machine.inputEnded(1, now: at(-5)))
        case .inputEndedOther: return line(machine.inputEnded(9, now: now))
        case .closed: return line(machine.connectionClosed(1, .inOrder, now: now))
        case .closedReset: return line(machine.connectionClosed(1, .reset, now: now))
        case .closedWithinFrame: return line(machine.connectionClosed(1, .withinFrame, now: now))
        case .closedViolated: return line(machine.connectionClosed(1, .violated, now: now))
        case .closedWithoutEnd: return line(machine.connectionClosed(1, .withoutPeersEnd, now: now))
        case .closedSilent: return line(machine.connectionClosed(1, .silent, now: now))
        case .closedOther: return line(machine.connectionClosed(9, .inOrder, now: now))
        case .timerEarly: return line(machine.timerFired(now: now))
        case .timerDue: return line(machine.timerFired(now: machine.nextDeadline ?? now))
        case .timerLate: return line(machine.timerFired(now: now + .seconds(40)))
        case .reconnect: return line(machine.reconnectRequested(now: now))
        case .beginClose: return line(machine.closeRequested(now: now))
        case .close: return line(machine.closedByUser(now: now))
        case .cut: return line(machine.cutRequested(now: now))
        case .cancel: return line(machine.cancelled(now: now))
        case .offerWait: return offer(.wait(timeout: .seconds(2)), to: &machine, now: now)
        case .offerFail: return offer(.fail, to: &machine, now: now)
        case .offerDrop: return offer(.drop(after: .seconds(3)), to: &machine, now: now)
        // The message just fits behind two others.
        case .offerLarge: return offer(.wait(timeout: .seconds(2)), byteCount: 20, to: &machine, now: now)
        case .offerTooLarge: return offer(.wait(timeout: .seconds(2)), byteCount: 41, to: &machine, now: now)
        case .cancelFirst: return line(machine.sendCancelled(1))
        case .cancelSecond: return line(machine.sendCancelled(2))
        case .sendFailed: return line(machine.sendFailed(on: 1))
        case .sendFailedOther: return line(machine.sendFailed(on: 9))
        case .handedOver: return line(machine.handOverEnded(1, on: 1, isAccepted: true, now: now))
        case .refused: return line(machine.handOverEnded(1, on: 1, isAccepted: false, now: now))
        case .handedOverOther: return line(machine.handOverEnded(1, on: 9, isAccepted: true, now: now))
        }
    }

    /// The message has already waited for half a second.
    private func offer(
        _ policy: SendPolicy,
        byteCount: Int = 10,
        to machine: inout ClientMachine,
        now: MonotonicTime
    ) -> String {
        "\(machine.offered(byteCount: byteCount, policy: policy, since: now - .milliseconds(500), now: now))"
    }

    /// The actions, and in brackets the next state of the client if it has changed.
    private func result(_ situation: Situation, _ event: Event) throws -> String {
        var (machine, now) = try machine(in: situation)
        let before = machine.summary
        let actions = apply(event, to: &machine, now: now)
        return machine.summary == before ? actions : "\(actions) [\(machine.summary)]"
    }

    @Test(arguments: Event.allCases)
    func table(event: Event) throws {
        var expected: [Situation: String] = [:]
        let lines = try #require(Self.expectedOfConnections[event] ?? Self.expectedOfRequests[event])
        for line in lines.split(separator: "\n") {
            let parts = line.split(separator: ":", maxSplits: 1)
            for word in parts[0].split(separator: " ") {
                let situation = try #require(Situation(rawValue: String(word)), "\(word)")
                #expect(expected[situation] == nil, "\(event) \(situation) stands twice")
                expected[situation] = parts[1].trimmingPrefix(" ").description
            }
        }
        for situation in Situation.allCases {
            // Pairs that are not in the table change nothing.
            let result = try result(situation, event)
            #expect(result == expected[situation] ?? "", "\(event) while \(situation)")
        }
    }
}
