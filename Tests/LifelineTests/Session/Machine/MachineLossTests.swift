import LifelineCore
import Testing

@testable import Lifeline

/// A client's session that is lost while messages and requests wait for another connection: the next one gets them.
@Suite struct MachineLossTests {
    private let now = MonotonicTime.ms(0)

    private func opened() -> MachineMatrixEnd {
        let client = MachineMatrixEnd(.client)
        client.open()
        return client
    }

    /// The server shuts down: nothing is begun over this connection.
    private func leave(_ client: MachineMatrixEnd) {
        client.receive(HostileFrame.goodbye(2), now: now)
        #expect(client.takeLine() == "leaving for 0.0 seconds")
    }

    private func lose(_ client: MachineMatrixEnd) -> String {
        client.receive(HostileFrame.goodbye(6), now: now)
        return client.takeLine()
    }

    @Test func aRequestThatWaitsOutlivesItsSession() {
        let client = opened()
        client.request(1, now: now)
        _ = client.settle(now: now)
        leave(client)
        client.request(2, now: now)
        #expect(lose(client) == "sessionLost accused, fail r1 sessionLost, accused violation")
        client.machine.disconnected(1, now: now, into: &client.actions)
        client.connect(now: now)
        client.forget(now: now)
        client.welcome(.test(2), isResumed: false, now: now)
        #expect(client.takeLine() == "opened 2" && client.settle(now: now) == "[o1 method 1 m, o2 request 2 2]")
    }

    @Test func keysAndTimesToLiveOfMessagesThatWaitOutliveTheirSession() {
        let client = opened()
        leave(client)
        #expect(client.push(1, .expiring(after: .milliseconds(5)), now: now) == "waits #1")
        #expect(client.push(2, .replaceable(key: "k"), now: now) == "waits #2")
        #expect(lose(client) == "sessionLost accused, accused violation")
        #expect(client.push(3, .replaceable(key: "k"), now: now) == "waits #3; #2 replaced")
        #expect(client.machine.nextDeadline == .ms(5))
        client.machine.timerFired(now: .ms(5), into: &client.actions)
        #expect(client.takeLine() == "#1 expired, accepted #3")
    }

    /// While a request waits, it has its caller's deadline, and no other.
    @Test func theDeadlineOfARequestThatIsCancelledIsForgotten() {
        let client = opened()
        leave(client)
        client.request(1, deadline: .ms(5), now: now)
        #expect(lose(client) == "sessionLost accused, accused violation")
        #expect(client.machine.nextDeadline == .ms(5))
        #expect(client.machine.cancelRequest(client.calls[0], now: now, into: &client.actions))
        #expect(client.machine.nextDeadline == nil)
    }
}
