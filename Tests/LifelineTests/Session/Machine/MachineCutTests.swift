import Lifeline
import LifelineCore
import Testing

/// A script with all kinds of calls and messages, over a connection that is cut after each of its bytes.
struct MachineCutTests {
    /// Plays the script with a cut after a number of bytes in one direction. Returns the failure, and how many bytes
    /// were sent over the first connection.
    private func play(cutBehind byteCount: Int, toServer: Bool) -> (failure: String?, byteCount: Int) {
        var options = SessionOptions()
        options.inboundCredit = 64 << 10
        let pair = MachinePair(options)
        var sentCount = 0
        var hasCut = false
        func move() {
            for end in pair.ends {
                while pair.offer(end) {}
                pair.offered(end)
            }
            let count = toServer ? pair.toServer.count : pair.toClient.count
            // Bytes that are left over from an earlier call were counted then.
            guard !hasCut else { return pair.deliver() }
            sentCount += count
            if sentCount > byteCount {
                let lost = sentCount - byteCount
                if toServer { pair.toServer.removeLast(lost) } else { pair.toClient.removeLast(lost) }
                pair.deliver()
                pair.cut()
                hasCut = true
            } else {
                pair.deliver()
            }
        }
        pair.connect()
        for round in 0..<6 {
            let now = pair.now
            for end in pair.ends {
                end.push("t.P/0", size: 3, .reliable, isObserved: round % 2 == 0, now: now)
                end.push("t.P/1", size: 3, .replaceable(key: "a"), isObserved: false, now: now)
                end.push("t.P/1", size: 9, .replaceable(key: "a"), isObserved: false, now: now)
                if round == 1 {
                    end.push("t.P/0", size: 1, .expiring(after: .milliseconds(1)), isObserved: true, now: now)
                }
                if round == 2 { end.push("t.P/0", size: 1, .atMostOnce, isObserved: true, now: now) }
                let kinds = ["unary", "server", "client", "both"]
                if round < 4 { end.ask(kinds[round], parts: 2, size: 3, timeout: .seconds(60), now: now) }
            }
            move()
            if !pair.isConnected { pair.connect() }
            for end in pair.ends {
                for request in end.calls.keys.sorted() { end.goOnAsking(request, size: 3, now: now) }
                if round > 0, !end.work.isEmpty { end.goOnAnswering(0, size: 3, now: now) }
                if !end.unread.isEmpty { end.read(0, now: now) }
                if round == 4, let request = end.calls.keys.min() {
                    if end.machine.cancelRequest(request, now: now, into: &end.actions) { end.calls[request] = nil }
                }
                end.run(now: now)
            }
            pair.pass(.milliseconds(10))
            move()
            if !pair.isConnected { pair.connect() }
        }
        let count = sentCount
        pair.finish()
        return (pair.failure ?? pair.check(), count)
    }

    @Test(arguments: [true, false])
    func nothingIsLostBehindAnyByte(toServer: Bool) {
        let whole = play(cutBehind: .max, toServer: toServer)
        #expect(whole.failure == nil)
        #expect(whole.byteCount > 500)
        for byteCount in 0..<whole.byteCount {
            if let failure = play(cutBehind: byteCount, toServer: toServer).failure {
                Issue.record("cut behind \(byteCount) bytes: \(failure)")
            }
        }
    }
}
