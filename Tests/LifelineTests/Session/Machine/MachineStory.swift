import LifelineCore

@testable import Lifeline

/// A random story of two ends of a session: calls of all kinds, connections that are cut within frames, and slow
/// readers. At the end it checks that every message arrived once and in order, or is accounted for.
final class MachineStory {
    struct Totals {
        var losses = 0
        var waits = 0
    }

    private var random: SplitMix64
    private let seed: UInt64
    let pair: MachinePair
    private let losesSessions: Bool
    private let movesSessions: Bool
    private(set) var totals = Totals()

    /// - Parameter movesSessions: whether the session moves from server to server. Then only clients make calls.
    init(seed: UInt64, takesShortWay: Bool = true, movesSessions: Bool = false) {
        self.movesSessions = movesSessions
        self.seed = seed
        random = SplitMix64(seed: seed)
        var options = SessionOptions()
        options.inboundCredit = 64 << 10
        if Int.random(in: 0..<3, using: &random) == 0 {
            options.outboundLimit = SessionWindow(frameCount: 64, byteCount: 64 << 10)
            options.inboundWindow = SessionWindow(frameCount: 32, byteCount: 32 << 10)
            options.maximumRunningCount = 8
        }
        losesSessions = Int.random(in: 0..<4, using: &random) == 0
        let finishesRuns = Int.random(in: 0..<2, using: &random) == 0
        pair = MachinePair(options, takesShortWay: takesShortWay, finishesRuns: finishesRuns)
    }

    /// Plays the story. Returns the failure; nil if there is none.
    func play(stepCount: Int = 250) -> String? {
        for _ in 0..<stepCount {
            step()
            if let failure = pair.failure { return "seed \(seed): \(failure)" }
        }
        pair.finish()
        return (pair.failure ?? pair.check()).map { "seed \(seed): \($0)" }
    }

    /// Plays it for two steps. Returns the result.
    fileprivate func goOn() -> [String] {
        for _ in 0..<2 { step() }
        return pair.ends.map { end in
            let machine = end.machine.nextDeadline.map { "\($0)" } ?? "never"
            return "\(machine) \(end.machine.keptSize) \(end.machine.keptByteCount) \(end.machine.waitingCount)"
                + " \(end.machine.requestCount) \(end.machine.runningCount) \(end.machine.nextNumber)"
        } + [pair.toServer, pair.toClient].map { "\($0.count) \($0.hashValue)" } + [pair.failure ?? "no failure"]
    }

    /// Plays a story, and again without the short way of sending. Returns the difference; nil if there is none.
    static func compareWays(seed: UInt64, stepCount: Int = 250) -> (difference: String?, plainCount: Int) {
        let stories = [MachineStory(seed: seed), MachineStory(seed: seed, takesShortWay: false)]
        for count in 0..<stepCount / 2 {
            let states = stories.map { $0.goOn() }
            if states[0] != states[1] { return ("seed \(seed), round \(count): \(states)", 0) }
        }
        let ends = stories[0].pair.ends + stories[0].pair.oldServers
        return (stories[0].pair.failure, ends.reduce(0) { $0 + $1.plainCount })
    }

    private func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

    private var size: Int { [0, 10, 100, 1_000, 9_000][below(5)] }

    private func step() {
        let end = below(2) == 0 ? pair.client : pair.server
        let now = pair.now
        switch below(24) {
        case 0..<5:
            let delivery: SessionDelivery =
                switch below(8) {
                case 0: .atMostOnce
                case 1: .expiring(after: .milliseconds(below(200)))
                case 2, 3: .replaceable(key: ["a", "b"][below(2)])
                default: .reliable
                }
            let method = "t.P/\(below(3))"
            end.push(method, size: size, delivery, isObserved: below(4) == 0, now: now)
        case 5, 6:
            let kind = ["unary", "server", "client", "both"][below(4)]
            let timeout: Duration? = below(3) == 0 ? .milliseconds(1 + below(2_000)) : nil
            (movesSessions ? pair.client : end).ask(kind, parts: below(5), size: size, timeout: timeout, now: now)
        case 7..<10:
            if let request = end.calls.keys.sorted().randomElement(using: &random) {
                end.goOnAsking(request, size: size, now: now)
            }
        case 10..<13:
            if !end.work.isEmpty { end.goOnAnswering(below(end.work.count), size: size, now: now) }
        case 13..<17:
            // Method 2 is seldom read.
            for _ in 0..<below(8) where !end.unread.isEmpty {
                let index = below(end.unread.count)
                if end.unread[index].source == "t.P/2", below(20) != 0 { continue }
                end.read(index, now: now)
            }
        case 17:
            if let request = end.calls.keys.sorted().randomElement(using: &random), below(3) == 0 {
                if end.machine.cancelRequest(request, now: now, into: &end.actions) {
                    end.calls[request] = nil
                    end.endedCallCount += 1
                }
            }
        case 18:
            if pair.isConnected, below(2) == 0 { cut() }
        case 19, 20:
            if !pair.isConnected { pair.connect() }
        case 21 where movesSessions && below(2) == 0:
            _ = pair.moveServer()
        case 21:
            pair.pass(.milliseconds(below(30)))
        default:
            if let id = end.waitingIDs.sorted().randomElement(using: &random), below(10) == 0,
                let number = end.idByNumber.first(where: { $0.value == id })?.key
            {
                if end.machine.withdraw(number, now: now, into: &end.actions) {
                    end.waitingIDs.remove(id)
                    if end.sent[id]?.outcome == nil { end.sent[id]?.outcome = .unsent }
                }
            }
        }
        end.run(now: now)
        if movesSessions { pair.goOnMoving() }
        totals.waits = max(totals.waits, pair.client.machine.waitingCount + pair.server.machine.waitingCount)
        if below(3) != 0 { exchange() }
    }

    private func cut() {
        // The bytes under way are lost from a random byte on.
        pair.toServer.removeLast(below(pair.toServer.count + 1))
        pair.toClient.removeLast(below(pair.toClient.count + 1))
        pair.deliver()
        pair.cut()
        if losesSessions, below(3) == 0 {
            totals.losses += 1
            pair.loseServer()
        }
    }

    private func exchange() {
        guard pair.isConnected else { return }
        for end in pair.ends {
            var rounds = 0
            while pair.offer(end, hasRoom: below(8) != 0, atMost: 1 + below(5_000)), below(3) != 0, rounds < 50 {
                rounds += 1
            }
            pair.offered(end)
        }
        guard below(4) != 0 else { return }
        pair.deliver()
        pair.closeIfAsked()
    }
}
