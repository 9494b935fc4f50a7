import LifelineCore
import Testing

@testable import Lifeline

/// The budget of all sessions of a server.
@Suite struct SessionBudgetTests {
    @Test func sessionsTakeSlicesUpToTheLimit() {
        var budget = SessionBudget(limit: SessionAllowance(byteCount: 100_000, handlerCount: 10))
        var (first, second) = (SessionAllowance.none, SessionAllowance.none)
        budget.take(upTo: 100, for: &first)
        #expect(first.byteCount == 4_096 && budget.held.byteCount == 4_096)
        // Bytes that it already holds cost nothing.
        budget.take(upTo: 4_096, for: &first)
        #expect(first.byteCount == 4_096)
        // It gets as much again as it keeps, at most 64 KiB, so that it needs the shared budget less and less often.
        budget.take(upTo: 10_000, for: &first)
        #expect(first.byteCount == 14_096)
        budget.take(upTo: 80_000, for: &first)
        #expect(first.byteCount == 80_000)
        // It gets the rest if that is enough, and otherwise nothing.
        budget.take(upTo: 19_000, for: &second)
        #expect(second.byteCount == 19_000)
        budget.take(upTo: 20_001, for: &second)
        #expect(second.byteCount == 19_000)
        budget.take(upTo: 20_000, for: &second)
        #expect(second.byteCount == 20_000 && budget.held.byteCount == 100_000)
    }

    @Test func handlersAreTakenOneByOneOrMoreWhereThereAreMany() {
        var budget = SessionBudget(limit: SessionAllowance(byteCount: 0, handlerCount: 10))
        var (first, second) = (SessionAllowance.none, SessionAllowance.none)
        budget.takeHandlers(upTo: 1, for: &first)
        #expect(first.handlerCount == 1)
        budget.takeHandlers(upTo: 2, for: &first)
        #expect(first.handlerCount == 2)
        budget.takeHandlers(upTo: 6, for: &first)
        #expect(first.handlerCount == 6)
        budget.takeHandlers(upTo: 7, for: &first)
        #expect(first.handlerCount == 9, "half of seven at once")
        budget.takeHandlers(upTo: 2, for: &second)
        #expect(second.handlerCount == 0)
        budget.takeHandlers(upTo: 1, for: &second)
        #expect(second.handlerCount == 1 && budget.held.handlerCount == 10)
    }

    @Test func unneededBytesAreGivenBack() {
        var budget = SessionBudget(limit: SessionAllowance(byteCount: 1 << 20, handlerCount: 100))
        var session = SessionAllowance.none
        budget.take(upTo: 200_000, for: &session)
        budget.takeHandlers(upTo: 20, for: &session)
        #expect(!SessionBudget.isExcessive(session, for: 150_000, handlerCount: 20))
        #expect(SessionBudget.isExcessive(session, for: 1_000, handlerCount: 20))
        #expect(SessionBudget.isExcessive(session, for: 150_000, handlerCount: 0))
        budget.giveBack(&session, for: 1_000, handlerCount: 1, isOver: false)
        #expect(session.byteCount == 1_000 + 4_096 && session.handlerCount == 1)
        #expect(!SessionBudget.isExcessive(session, for: 1_000, handlerCount: 1))
        budget.giveBack(&session, for: 1_000, handlerCount: 1, isOver: true)
        #expect(session.byteCount == 1_000 && budget.held.byteCount == 1_000)
        budget.giveBack(&session, for: 0, handlerCount: 0, isOver: true)
        #expect(session.byteCount == 0 && budget.held == .none)
        // It holds less than it keeps, because the received messages exceeded its share.
        budget.giveBack(&session, for: 500, handlerCount: 3, isOver: true)
        #expect(session.byteCount == 0 && session.handlerCount == 0 && budget.held == .none)
    }

    /// Otherwise it would give back memory that it soon needs again.
    @Test func aSessionMayHoldTwoSlicesMoreThanItNeeds() {
        var session = SessionAllowance(byteCount: 30_000, handlerCount: 0)
        #expect(!SessionBudget.isExcessive(session, for: 10_000, handlerCount: 0))
        session.byteCount += 1
        #expect(SessionBudget.isExcessive(session, for: 10_000, handlerCount: 0))
    }

    @Test func onlyWhoLacksBytesIsToStayAway() {
        var budget = SessionBudget(limit: SessionAllowance(byteCount: 100, handlerCount: 0))
        var session = SessionAllowance.none
        budget.take(SessionNeed(byteCount: 100, handlerCount: 1), pause: .seconds(1), for: &session)
        #expect(session == SessionAllowance(byteCount: 100, handlerCount: 0))
        budget.take(SessionNeed(byteCount: 101, handlerCount: 0), pause: .seconds(1), for: &session)
        #expect(session.byteCount == 100 && session.pause == .seconds(1))
    }

    /// In any order of events, the shares of sessions add up, and never exceed the limit.
    @Test func nothingIsLostOrHeldTwice() {
        var random = SplitMix64(seed: 4)
        func below(_ bound: Int) -> Int { Int(random.next() % UInt64(bound)) }
        var budget = SessionBudget(limit: SessionAllowance(byteCount: 500_000, handlerCount: 50))
        var sessions = [SessionAllowance](repeating: .none, count: 8)
        for _ in 0..<20_000 {
            let index = below(sessions.count)
            let (byteCount, handlerCount) = (below(200_000), below(20))
            switch below(3) {
            case 0: budget.take(upTo: byteCount, for: &sessions[index])
            case 1: budget.takeHandlers(upTo: handlerCount, for: &sessions[index])
            default:
                let isOver = below(2) == 0
                budget.giveBack(&sessions[index], for: byteCount, handlerCount: handlerCount, isOver: isOver)
            }
            #expect(budget.held.byteCount == sessions.reduce(0) { $0 + $1.byteCount })
            #expect(budget.held.handlerCount == sessions.reduce(0) { $0 + $1.handlerCount })
            #expect(budget.held.byteCount <= 500_000 && budget.held.handlerCount <= 50)
        }
    }
}
