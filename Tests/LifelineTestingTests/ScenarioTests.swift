import LifelineScenarios
import LifelineTesting
import Testing

/// Random stories, which are checked after every step. `scripts/soak --scenarios` runs more.
@Suite struct ScenarioTests {
    /// In portions, which run in parallel.
    @Test(arguments: stride(from: 0, to: 400, by: 20).map { UInt64($0) })
    func everythingHoldsAfterEveryStep(first: UInt64) async {
        for seed in first..<first + 20 {
            if let failure = await Scenario(seed: seed, isTracing: false).run().failure {
                Issue.record("\(Scenario.failureMessage(seed, failure))")
            }
        }
    }

    /// The stories have to reach the cases that they check.
    @Test func scenariosReachEveryStepReasonAndOutcome() async {
        var seen: Set<String> = []
        for seed in 0..<400 as Range<UInt64> { seen.formUnion(await Scenario(seed: seed, isTracing: true).run().seen) }
        let documented: [ConnectionState: [ConnectionState]] = [
            .idle: [.connecting, .waitingForNetwork, .closed],
            .waitingForNetwork: [.connecting, .closed],
            .connecting: [.ready, .waitingForNetwork, .backingOff, .gaveUp, .closed],
            .ready: [.waitingForNetwork, .connecting, .backingOff, .gaveUp, .draining, .closed],
            .backingOff: [.connecting, .waitingForNetwork, .closed],
            .draining: [.closed],
            .gaveUp: [.connecting, .waitingForNetwork, .closed],
        ]
        let steps = documented.flatMap { from, to in to.map { "\(from) → \($0)" } }
        let reasons = [
            "started", "networkUp", "networkLost", "connected", "connectFailed", "retryDue", "attemptsUsedUp",
            "closedByPeer", "connectionFailed", "heartbeatTimeout", "protocolViolation", "tlsRejected",
            "reconnectRequested", "closedByUser", "drained", "cancelled",
        ]
        let outcomes = [
            "accepted", "dropped", "cancelled", "failed(notConnected)", "failed(sendTimedOut)",
            "failed(sendQueueFull)", "failed(closedLocally)",
        ]
        let events = [
            "waited for another connection", "probe", "undelivered", "delivered and not acknowledged",
            "client gives up for heartbeatTimeout", "client gives up for idleTimeout",
            "client gives up for writeTimeout",
            "client gives up for tooManyUnansweredBytes", "server gives up for heartbeatTimeout",
            "server gives up for idleTimeout", "server gives up for tooManyUnansweredBytes",
            "server gives up for writeTimeout",
        ]
        let missing = Set(steps + reasons + outcomes + events).subtracting(seen)
        #expect(missing.isEmpty)
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func oneSeedGivesOneTrace(seed: UInt64) async {
        let trace = await Scenario(seed: seed, isTracing: true).run().trace
        #expect(trace.count > 20)
        #expect(await Scenario(seed: seed, isTracing: true).run().trace == trace)
        #expect(await Scenario(seed: seed + 1, isTracing: true).run().trace != trace)
    }

    /// Hashing, and with it the order of sets and dictionaries, differs from process to process.
    @Test func oneSeedGivesOneTraceInEveryProcess() async throws {
        let other = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
            for line in await Scenario(seed: 7, isTracing: true).run().trace { print(line) }
        }
        let text = String(decoding: try #require(other).standardOutputContent, as: UTF8.self)
        let lines = await Scenario(seed: 7, isTracing: true).run().trace
        #expect(lines.count > 20)
        // The process may print more lines before and after.
        #expect(text.contains(lines.joined(separator: "\n") + "\n"))
    }

    @Test func tracingChangesNothing() async {
        let traced = await Scenario(seed: 11, isTracing: true).run()
        let untraced = await Scenario(seed: 11, isTracing: false).run()
        #expect(untraced.trace.isEmpty)
        #expect(traced.eventCount == untraced.eventCount)
    }
}
