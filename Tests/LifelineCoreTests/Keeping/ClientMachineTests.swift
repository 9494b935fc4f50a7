import LifelineCore
import Testing

/// Behavior that needs more than one event.
@Suite struct ClientMachineTests {
    private var machine = ClientMachine()

    init() throws {
        _ = try machine.start(now: at(0))
    }

    // MARK: Connections

    @Test mutating func oneConnectionAtATime() {
        _ = machine.connected(1, now: at(0))
        #expect(line(machine.reconnectRequested(now: at(1))).hasSuffix("abort 1 reconnectRequested"))
        #expect(machine.attemptID == 2 && machine.linkID == 1)
        // The second attempt is given up before it begins; the third one begins.
        #expect(line(machine.networkLost(now: at(2))) == "→ waitingForNetwork networkLost held")
        #expect(line(machine.networkUp(now: at(3))) == "→ connecting networkUp (1) held")
        #expect(
            line(machine.connectionClosed(1, .inOrder, now: at(4)))
                == "publish connecting lost 1 of 3, publish waitingForNetwork, publish connecting, connect 3"
        )
    }

    @Test mutating func anAttemptThatSucceedsTooLateIsAborted() {
        _ = machine.closeRequested(now: at(1))
        #expect(line(machine.connected(1, now: at(2))) == "abort 1 closedByUser")
        #expect(line(machine.connectionClosed(1, .inOrder, now: at(3))) == "finish")
        #expect(line(machine.connectionClosed(1, .inOrder, now: at(3))) == "")
    }

    @Test mutating func thePeersEarlyEndIsNoLongerEarlyOnTheNextConnection() {
        _ = machine.inputEnded(1, now: at(0))
        _ = machine.connectFailed(1, .refused, now: at(0))
        _ = machine.timerFired(now: at(1))
        #expect(line(machine.connected(2, now: at(1))) == "→ ready connected (2), use 2")
    }

    /// A peer that accepts and sends nothing uses up the attempts; one that has lived for long does not.
    @Test(arguments: [0.0, 9, 10]) mutating func aDeadPeersConnectionHasStoodUntilItsLastByte(lastByte: Double) {
        _ = machine.connected(1, now: at(0))
        let error = ConnectionError(code: .heartbeatTimeout, message: "silent")
        let report = ClosureReport(failure: error, lastInboundAt: at(lastByte))
        let actions = line(machine.connectionClosed(1, report, now: at(60)))
        #expect(actions.hasPrefix(lastByte < 10 ? "→ backingOff" : "→ connecting"))
    }

    @Test mutating func timeDoesNotGoBack() {
        _ = machine.connected(1, now: at(10))
        _ = machine.inputEnded(1, now: at(3))
        #expect(machine.closeDeadline == at(15))
        #expect(line(machine.timerFired(now: at(14.9))).hasPrefix("→ connecting"))
        #expect(line(machine.timerFired(now: at(15))) == "abort 1 connectionFailed closedLocally")
        #expect(line(machine.timerFired(now: at(25))) == "", "once")
    }

    @Test func aCloseTimeoutIsAtLeastAMillisecond() throws {
        var configuration = ClientMachine.Configuration()
        configuration.closeTimeout = .zero
        var machine = ClientMachine(configuration, seed: 1, hasNetwork: true)
        _ = try machine.start(now: at(0))
        _ = machine.connected(1, now: at(0))
        _ = machine.inputEnded(1, now: at(0))
        #expect(machine.closeDeadline == at(0.001))
        #expect(machine.sleepWatch == nil)
    }

    // MARK: Closing

    @Test mutating func onlyTheUsersSecondCloseCuts() {
        _ = machine.connected(1, now: at(0))
        #expect(line(machine.closeRequested(now: at(1))) == "→ draining closedByUser, close 1")
        #expect(line(machine.closeRequested(now: at(1))) == "")
        #expect(line(machine.closedByUser(now: at(2))) == "", "it joins")
        #expect(line(machine.closedByUser(now: at(3))) == "→ closed closedByUser held, abort 1 closedByUser")
        #expect(line(machine.closedByUser(now: at(3))) == "")
    }

    @Test mutating func aConnectionIsCutOnce() {
        _ = machine.connected(1, now: at(0))
        _ = machine.inputEnded(1, now: at(0))
        #expect(line(machine.cutRequested(now: at(1))) == "→ closed closedByUser held, abort 1 closedByUser")
        #expect(line(machine.cancelled(now: at(2))) == "")
        #expect(line(machine.cutRequested(now: at(2))) == "")
    }

    @Test func whyAnInputEnds() throws {
        for situation in ClientMachineMatrixTests.Situation.allCases {
            let (machine, _) = try ClientMachineMatrixTests().machine(in: situation)
            let isOurs = machine.state == .draining || machine.state == .closed
            #expect(machine.reasonOfInputEnd.code == (isOurs ? .closedLocally : .closedByPeer), "\(situation)")
        }
    }

    // MARK: Sends

    @Test mutating func sendsGoOutInOrderAndThenDirectly() {
        for _ in 0..<3 { _ = offer(.wait()) }
        #expect(machine.directPath == nil)
        #expect(line(machine.connected(1, now: at(1))).hasSuffix("offer m1 to 1"))
        for number: SendQueue.ID in 1...2 {
            #expect(machine.directPath == nil)
            let actions = machine.handOverEnded(number, on: 1, isAccepted: true, now: at(1))
            #expect(line(actions) == "m\(number) sent by 1, offer m\(number + 1) to 1")
        }
        #expect(line(machine.handOverEnded(3, on: 1, isAccepted: true, now: at(1))) == "m3 sent by 1")
        #expect(machine.directPath == 1)
        #expect(line(machine.handOverEnded(3, on: 1, isAccepted: true, now: at(1))) == "")
    }

    @Test mutating func lateMessagesAreNotOffered() {
        _ = offer(.drop(after: .seconds(1)))
        _ = offer(.wait(timeout: .seconds(5)))
        _ = offer(.wait(timeout: .seconds(3)))
        #expect(line(machine.connected(1, now: at(1))).hasSuffix("m1 dropped, offer m2 to 1"))
        #expect(line(machine.handOverEnded(2, on: 1, isAccepted: true, now: at(3))) == "m2 sent by 1, m3 sendTimedOut")
    }

    /// A failed connection is offered nothing more. The next one continues with the messages that it did not accept.
    @Test mutating func refusedMessagesGoOverTheNextConnection() {
        _ = offer(.wait())
        _ = machine.connected(1, now: at(0))
        #expect(line(machine.handOverEnded(1, on: 1, isAccepted: false, now: at(0))) == "")
        #expect(machine.directPath == nil && machine.queuedCount == 1)
        _ = machine.connectionClosed(1, .reset, now: at(0))
        _ = machine.timerFired(now: at(1))
        #expect(line(machine.connected(2, now: at(1))).hasSuffix("offer m1 to 2"))
        #expect(line(machine.handOverEnded(1, on: 1, isAccepted: true, now: at(1))) == "", "it comes late")
    }

    @Test mutating func theTimeInAConnectionsLineCounts() {
        _ = machine.offered(byteCount: 1, policy: .wait(timeout: .seconds(5)), since: at(0), now: at(3))
        _ = machine.offered(byteCount: 1, policy: .drop(after: .seconds(2)), since: at(0), now: at(3))
        #expect(line(machine.timerFired(now: at(3))) == "m2 dropped")
        #expect(line(machine.timerFired(now: at(4.9))) == "")
        #expect(line(machine.timerFired(now: at(5))) == "m1 sendTimedOut")
    }

    @Test mutating func failuresSayWhy() {
        #expect(machine.error(for: .notConnected).message.contains("SendPolicy.wait"))
        _ = machine.closeRequested(now: at(1))
        #expect(machine.error(for: .closedLocally).message == ConnectionError.clientClosed.message)
    }

    private mutating func offer(_ policy: SendPolicy) -> SendQueue.OfferAction {
        machine.offered(byteCount: 1, policy: policy, since: at(0), now: at(0))
    }
}

/// A peer that shuts down says when to come back.
@Suite struct ClientMachinePauseTests {
    private var machine = ClientMachine()

    init() throws {
        _ = try machine.start(now: at(0))
        _ = machine.connected(1, now: at(0))
    }

    /// The next attempt is made after at least 0.1 s and at most 60 s. The attempt before does not count.
    @Test(arguments: [(0.0, 0.1), (0.5, 0.5), (30, 30), (60, 60), (100_000, 60), (-5, 0.1)])
    mutating func theNextAttemptIsAfterThePause(pause: Double, delay: Double) {
        machine.peerLeaving(pause: .nanoseconds(Int64(pause * 1e9)), now: at(0))
        let actions = machine.connectionClosed(1, .inOrder, now: at(0))
        #expect(line(actions) == "→ backingOff closedByPeer in \(delay) seconds lost 1 of 3")
        #expect(machine.nextDeadline == at(delay))
        #expect(line(machine.timerFired(now: at(delay))) == "→ connecting retryDue (1), connect 2")
    }

    /// The delay grows with each of them, so that such a peer is not tried in a busy loop. The budget is still full.
    @Test mutating func aPeerThatSaysGoodbyeToEveryConnectionIsTriedForEver() {
        var delays: [Double] = []
        var now = at(0)
        for id in 1...12 as ClosedRange<UInt64> {
            if id > 1 { _ = machine.connected(id, now: now) }
            machine.peerLeaving(pause: .zero, now: now)
            _ = machine.connectionClosed(id, .inOrder, now: now)
            let due = machine.nextDeadline ?? now
            delays.append((due - now) / .seconds(1))
            now = due
            #expect(line(machine.timerFired(now: now)) == "→ connecting retryDue (1), connect \(id + 1)")
        }
        #expect(delays == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30, 30])
    }

    /// The next attempt after a stable connection is made at once, and after the shortest delay if that attempt gets a
    /// goodbye.
    @Test mutating func aStableConnectionShortensTheDelaysAfterGoodbyes() {
        machine.peerLeaving(pause: .zero, now: at(0))
        _ = machine.connectionClosed(1, .inOrder, now: at(0))
        _ = machine.timerFired(now: at(0.1))
        _ = machine.connected(2, now: at(0.1))
        machine.peerLeaving(pause: .zero, now: at(11))
        #expect(line(machine.connectionClosed(2, .inOrder, now: at(11))).hasSuffix("connect 3"))
        _ = machine.connected(3, now: at(11))
        machine.peerLeaving(pause: .zero, now: at(12))
        _ = machine.connectionClosed(3, .inOrder, now: at(12))
        #expect(machine.nextDeadline == at(12.1))
    }

    /// Failures between goodbyes use up the budget.
    @Test mutating func failuresCountAsEver() {
        for id in 1...4 as ClosedRange<UInt64> {
            _ = machine.connected(id, now: at(Double(id) * 10))
            machine.peerLeaving(pause: .zero, now: at(Double(id) * 10))
            _ = machine.connectionClosed(id, .inOrder, now: at(Double(id) * 10))
            _ = machine.timerFired(now: machine.nextDeadline ?? at(0))
        }
        var now = at(100)
        for id in 5...8 as ClosedRange<UInt64> {
            _ = machine.connectFailed(id, .refused, now: now)
            now = machine.nextDeadline ?? now
            _ = machine.timerFired(now: now)
        }
        #expect(machine.state == .gaveUp)
    }

    /// This also holds for an attempt that would otherwise be made at once.
    @Test(arguments: [10.0, 30]) mutating func aStableConnectionIsFollowedByThePause(end: Double) {
        machine.peerLeaving(pause: .seconds(20), now: at(0))
        let actions = line(machine.connectionClosed(1, .inOrder, now: at(end)))
        #expect(
            actions
                == (end < 20
                    ? "→ backingOff closedByPeer in 10.0 seconds lost 1 of 3"
                    : "→ connecting closedByPeer (1) lost 1 of 3, connect 2")
        )
    }

    @Test(arguments: ["reconnect", "network", "reconnect later", "network later", "network returns"])
    mutating func thePauseIsCutShort(by what: String) {
        machine.peerLeaving(pause: .seconds(50), now: at(0))
        switch what {
        case "reconnect":
            _ = machine.reconnectRequested(now: at(1))
            _ = machine.connectionClosed(1, .inOrder, now: at(1))
            #expect(machine.linkID == 2)
            _ = machine.connectFailed(2, .refused, now: at(1))
            #expect(machine.nextDeadline == at(2), "it does not come back")
        case "network":
            _ = machine.networkUp(now: at(1))
            _ = machine.connectionClosed(1, .inOrder, now: at(1))
            #expect(machine.nextDeadline == at(1.1))
        default:
            _ = machine.connectionClosed(1, .inOrder, now: at(1))
            #expect(machine.nextDeadline == at(50))
            switch what {
            case "reconnect later": _ = machine.reconnectRequested(now: at(2))
            case "network later": _ = machine.networkUp(now: at(2))
            default:
                _ = machine.networkLost(now: at(2))
                _ = machine.networkUp(now: at(3))
            }
            #expect(machine.linkID == 2)
        }
    }

    /// The goodbye may be handled after the end of the connection.
    @Test mutating func aPauseThatComesLateCounts() {
        _ = machine.connectionClosed(1, .inOrder, now: at(0))
        machine.peerLeaving(pause: .seconds(20), now: at(0.5))
        #expect(machine.nextDeadline == at(20.5))
        machine.peerLeaving(pause: .seconds(1), now: at(0.5))
        #expect(machine.nextDeadline == at(20.5))
        #expect(line(machine.timerFired(now: at(1))) == "")
        #expect(line(machine.timerFired(now: at(20.5))).hasSuffix("connect 2"))
    }

    /// The pause is only for the server that asked. After the next attempt, the usual delay applies.
    @Test mutating func aPauseCountsOnce() {
        machine.peerLeaving(pause: .seconds(20), now: at(0))
        _ = machine.connectionClosed(1, .inOrder, now: at(0))
        _ = machine.timerFired(now: at(20))
        _ = machine.connectFailed(2, .refused, now: at(20))
        #expect(machine.nextDeadline == at(21))
    }

    @Test mutating func aClosedClientNeedsNoPause() {
        _ = machine.closeRequested(now: at(0))
        machine.peerLeaving(pause: .seconds(20), now: at(0))
        #expect(machine.nextDeadline == nil)
        #expect(line(machine.connectionClosed(1, .inOrder, now: at(1))).hasSuffix("finish"))
    }
}
