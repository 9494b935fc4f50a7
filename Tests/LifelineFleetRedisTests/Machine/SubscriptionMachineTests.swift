import LifelineCore
import Testing

@testable import LifelineFleetRedis

@Suite struct SubscriptionMachineTests {
    /// Subscribed to "a".
    private func subscribed() -> SubscriptionMachineEnd {
        var end = SubscriptionMachineEnd()
        end.subscribe("a")
        end.connect()
        end.confirm("subscribe", "a")
        _ = end.takeNotes()
        return end
    }

    @Test func connectsForTheFirstChannelAndReturnsWhenItIsInForce() {
        var end = SubscriptionMachineEnd()
        end.subscribe("b", "a")
        end.connect()
        #expect(
            end.takeNotes() == ["connect 1", "write CLIENT SETNAME lifeline, PING", "write SUBSCRIBE a b"]
        )
        end.confirm("subscribe", "a")
        end.hear("1", on: "a")
        #expect(end.takeNotes() == ["a says 1"])
        end.confirm("subscribe", "b")
        #expect(end.takeNotes() == ["connected", "1: null"])
    }

    @Test func asksForMoreAndForFewerChannels() {
        var end = subscribed()
        end.subscribe("b", turns: false)
        end.unsubscribe("a")
        #expect(end.takeNotes() == ["write SUBSCRIBE b, UNSUBSCRIBE a"])
        end.confirm("subscribe", "b")
        #expect(end.takeNotes() == ["2: null"])
        end.hear("the last", on: "a")
        end.confirm("unsubscribe", "a")
        #expect(end.takeNotes() == ["a says the last", "3: null"])
    }

    @Test func returnsAtOnceWhereThereIsNothingToAsk() {
        var end = subscribed()
        end.subscribe()
        #expect(end.takeNotes() == ["2: null"])
        end.lose()
        _ = end.takeNotes()
        let id = end.unsubscribe("a")
        #expect(id == nil, "without a connection there is no subscription")
        end.advanceToDeadline()
        end.connect()
        #expect(end.takeNotes().last == "connected after a gap")
    }

    @Test func subscribesAgainAfterAGap() {
        var end = subscribed()
        end.subscribe("b")
        end.confirm("subscribe", "b")
        end.subscribe("c")
        end.unsubscribe("a")
        _ = end.takeNotes()
        end.lose()
        #expect(
            end.takeNotes() == ["disconnect", "disconnected: connectionFailed", "4: null"],
            "the call for c waits, and a is gone"
        )
        end.advanceToDeadline()
        end.connect()
        #expect(end.takeNotes() == ["connect 2", "write CLIENT SETNAME lifeline, PING", "write SUBSCRIBE b c"])
        end.confirm("subscribe", "b")
        #expect(end.takeNotes() == [], "messages of c may still be missed")
        end.confirm("subscribe", "c")
        #expect(end.takeNotes() == ["connected after a gap", "3: null"])
    }

    @Test func tellsOneGapOfSeveralLosses() {
        var end = subscribed()
        end.lose()
        end.advanceToDeadline()
        end.connect()
        end.lose()
        end.advanceToDeadline()
        end.lose()
        end.advanceToDeadline()
        end.connect()
        end.confirm("subscribe", "a")
        let events = end.takeNotes().filter { $0.contains("onnected") }
        #expect(events == ["disconnected: connectionFailed", "connected after a gap"])
    }

    @Test func splitsManyChannels() {
        var end = SubscriptionMachineEnd()
        _ = try? end.machine.role.subscribe((0..<2500).map { "\($0)" }, 1, deadline: end.now + .seconds(1))
        end.turn()
        end.connect()
        let writes = end.takeNotes().last?.split(separator: "SUBSCRIBE").map { $0.split(separator: " ").count }
        #expect(writes == [1, 1000, 1000, 500])
    }

    @Test func endsACallInTimeAndKeepsItsWish() throws {
        var end = SubscriptionMachineEnd()
        end.subscribe("a", timeout: .milliseconds(50))
        let second = end.subscribe("b")
        let id = try #require(second)
        end.lose()
        _ = end.takeNotes()
        end.cancel(id)
        end.advanceToDeadline()
        #expect(end.takeNotes() == ["2: cancelled", "1: timedOut"])
        end.advanceToDeadline()
        end.connect()
        #expect(end.takeNotes().last == "write SUBSCRIBE a b")
    }

    @Test func forgetsChannelsThatAreRefused() {
        var end = subscribed()
        end.subscribe("secret")
        end.subscribe("b")
        _ = end.takeNotes()
        end.receive("-NOPERM this user has no permissions to access one of the channels")
        end.confirm("subscribe", "b")
        #expect(end.takeNotes() == ["2: refused NOPERM", "3: null"])
        end.lose()
        end.advanceToDeadline()
        end.connect()
        #expect(end.takeNotes().last == "write SUBSCRIBE a b")
    }

    @Test func triesAgainWhatIsRefusedForNow() {
        var end = subscribed()
        end.subscribe("b")
        _ = end.takeNotes()
        end.receive("-BUSY Redis is busy running a script.")
        #expect(end.takeNotes() == ["disconnect", "disconnected: refused"])
        end.advanceToDeadline()
        end.connect()
        #expect(end.takeNotes().last == "write SUBSCRIBE a b")
    }

    @Test func failsCallsWhenItIsNotLetIn() {
        var end = SubscriptionMachineEnd()
        end.subscribe("a")
        end.opened()
        end.receive("-NOAUTH Authentication required.")
        #expect(end.takeNotes().suffix(2) == ["disconnect", "1: notAdmitted NOAUTH"])
    }

    @Test(arguments: [["+PONG"], ["*2\r\n$4\r\npong\r\n$0\r\n"], ["-MISCONF no"]])
    func asksASilentServer(answer: [String]) {
        var end = subscribed()
        end.advanceToDeadline()
        #expect(end.takeNotes() == ["write PING"])
        end.subscribe("b")
        end.receive(answer[0])
        end.confirm("subscribe", "b")
        #expect(end.takeNotes() == ["write SUBSCRIBE b", "2: null"])
    }

    @Test func doesNotTakeAPausedConnectionForADeadOne() {
        var end = subscribed()
        end.machine.pauseChanged(true, now: end.now)
        #expect(end.machine.nextDeadline == nil)
        end.advance(.seconds(1000))
        #expect(end.takeNotes() == [])
        end.machine.pauseChanged(false, now: end.now)
        #expect(end.machine.nextDeadline == end.now + .seconds(5))
    }

    @Test(arguments: [
        ":1", "$-1", "*0", "*1\r\n:1", "*2\r\n:1\r\n:1", "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n:1", "+OK",
        "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1", "*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0",
        "*2\r\n$4\r\npong\r\n$0\r\n", "*4\r\n$8\r\npmessage\r\n$1\r\na\r\n$1\r\na\r\n$1\r\nb", "-ERR no",
    ])
    func givesUpAServerThatSaysWhatNobodyAsked(wire: String) {
        var end = subscribed()
        end.receive(wire)
        #expect(end.takeNotes() == ["disconnect", "disconnected: protocolViolation"])
    }

    @Test func closesOnce() {
        var end = subscribed()
        end.subscribe("b")
        _ = end.takeNotes()
        end.close()
        #expect(end.takeNotes() == ["disconnect", "disconnected: closed", "2: closed"])
        end.close()
        end.subscribe("c")
        end.unsubscribe("a")
        end.turn()
        #expect(end.takeNotes() == ["3: closed", "4: closed"])
        #expect(end.machine.nextDeadline == nil)
    }
}
