import FaultSupport
import LifelineCore
import Testing

/// The accounts that are computed from the events of programs.
@Suite struct ReckoningTests {
    @Test(arguments: [(1, 1), (50, 50), (99, 99), (100, 100)]) func percentilesOfAHundred(percent: Int, rank: Int) {
        let durations = Durations((1...100).shuffled().map { .milliseconds($0) })
        #expect(durations.percentile(percent) == .milliseconds(rank))
    }

    @Test func percentilesOfAFew() {
        let durations = Durations([.seconds(3), .seconds(1), .seconds(2)])
        #expect(durations.percentile(50) == .seconds(2))
        #expect(durations.percentile(99) == .seconds(3))
        #expect(Durations([.seconds(7)]).percentile(1) == .seconds(7))
    }

    @Test func messagesAreCounted() {
        let count = MessageCount(
            client: [.messages(.sent, 1...10), .refused(11, "why"), .messages(.sent, 12...20), .lost(3)],
            peer: [.messages(.received, 1...4), .messages(.received, 4...15), .messages(.received, 19...20)]
        )
        #expect((count.sent, count.lost, count.reported, count.doubled) == (19, 3, 3, 1))
    }

    @Test func lateReportsAreThoseOfLateEnds() {
        let ends = [(5, 2), (10, 3), (15, 4)].flatMap { time, count -> [FaultEvent] in
            let step = FaultEvent.transition(
                from: "ready",
                to: "backingOff",
                reason: "heartbeatTimeout",
                at: MonotonicTime(nanoseconds: Int64(time))
            )
            return [step, .lost(count)]
        }
        let count = MessageCount(client: ends, peer: [])
        #expect(count.reported == 9)
        #expect(count.reported(since: MonotonicTime(nanoseconds: 10)) == 7)
        #expect(count.reported(since: MonotonicTime(nanoseconds: 16)) == 0)
    }

    @Test func stepsOfALostNetwork() {
        let lost = ("ready", "waitingForNetwork", "networkLost")
        let back = ("waitingForNetwork", "connecting", "networkUp")
        let ready = ("connecting", "ready", "connected")
        #expect(violation(of: .network, "networkLost", [lost, back, ready]) == nil)
        #expect(violation(of: .network, "networkLost", []) != nil)
        #expect(violation(of: .network, "networkLost", [back, ready]) != nil)
        #expect(violation(of: .network, "networkLost", [lost, back]) != nil)
        #expect(violation(of: .network, "networkLost", [lost, ready]) != nil)
        #expect(violation(of: .peer, "closedByPeer", [lost, back, ready]) != nil)
    }

    @Test func stepsWhileThePeerIsAway() {
        let lost = ("ready", "backingOff", "closedByPeer")
        let again = ("backingOff", "connecting", "retryDue")
        let refused = ("connecting", "backingOff", "connectFailed")
        let ready = ("connecting", "ready", "connected")
        #expect(violation(of: .peer, "closedByPeer", [lost, again, refused, again, ready]) == nil)
        #expect(violation(of: .peer, "heartbeatTimeout", [lost, again, ready]) != nil)
        #expect(violation(of: .silentPeer, "closedByPeer", [lost, again, refused, again, ready]) != nil)
        #expect(violation(of: .silentPeer, "closedByPeer", [lost, again, ready, lost, again, ready]) == nil)
        #expect(violation(of: .peer, "closedByPeer", [lost, again, ready, lost, again, ready]) != nil)
    }

    private func violation(
        of cause: Reaction.Cause,
        _ reason: String,
        _ steps: [(from: String, to: String, reason: String)]
    ) -> String? {
        Reaction(reason, cause).violation(
            in: steps.map { .transition(from: $0.from, to: $0.to, reason: $0.reason) }
        )
    }
}
