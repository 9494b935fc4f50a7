import LifelineCore
import LifelineFleet
import Testing

/// What is asked for a session that is at another node, and what comes of it.
@Suite final class SessionSearchTests {
    private var search = SessionSearch(now: SessionSearchTests.at(0))

    private static func at(_ milliseconds: Int) -> MonotonicTime {
        MonotonicTime(nanoseconds: 0) + .milliseconds(milliseconds)
    }

    private func took(_ take: FleetTake, at time: Int = 0) -> SessionSearch.Step {
        search.took(take, now: Self.at(time))
    }

    private func told(_ isHeard: Bool, at time: Int = 0) -> SessionSearch.Step {
        search.told(isHeard: isHeard, now: Self.at(time))
    }

    private func waited(_ answer: SessionSearch.Answer?, at time: Int = 0) -> SessionSearch.Step {
        search.waited(answer, now: Self.at(time))
    }

    private func failed(at time: Int) -> SessionSearch.Step { search.failed(now: Self.at(time)) }

    @Test func whatNobodyHasBeginsAnew() {
        #expect(took(.unknown) == .end(.nothing))
        #expect(took(.stale) == .end(.stale))
    }

    @Test func aStateIsConfirmedBeforeItIsUsed() {
        #expect(took(.state([1])) == .confirm)
        #expect(search.confirmed(.confirmed) == .end(.taken))
    }

    @Test func aStateThatAnotherNodeHasAskedForSinceIsItsOwn() {
        #expect(took(.state([1])) == .confirm)
        #expect(search.confirmed(.stale) == .end(.stale))
    }

    /// Another one may have it.
    @Test func aStateThatTheEngineHasLostIsLost() {
        #expect(took(.state([1])) == .confirm)
        #expect(search.confirmed(.unknown) == .end(.nothing))
    }

    @Test func aStateThatThisNodeCannotReadStaysInTheEngine() {
        #expect(search.took(.state([1]), isReadable: false, now: Self.at(0)) == .end(.nothing))
    }

    @Test func theNodeThatHasItIsAskedAndThenTheEngineAgain() {
        #expect(took(.owned(by: "a")) == .ask(node: "a"))
        #expect(told(true, at: 10) == .wait(until: Self.at(260)))
        #expect(waited(.parked, at: 20) == .take)
        #expect(took(.state([]), at: 20) == .confirm)
    }

    @Test func anAnswerThatIsLostCostsAQuarterOfASecond() {
        #expect(took(.owned(by: "a")) == .ask(node: "a"))
        #expect(told(true) == .wait(until: Self.at(250)))
        #expect(waited(nil, at: 250) == .take)
        #expect(took(.owned(by: "a"), at: 250) == .ask(node: "a"))
    }

    @Test func aNodeThatDoesNotListenForHalfASecondIsDead() {
        #expect(took(.owned(by: "a")) == .ask(node: "a"))
        #expect(told(false, at: 0) == .wait(until: Self.at(100)))
        #expect(waited(nil, at: 100) == .take)
        #expect(took(.owned(by: "a"), at: 100) == .ask(node: "a"))
        // It has connected to the engine again, and is lost again.
        #expect(told(true, at: 400) == .wait(until: Self.at(650)))
        #expect(told(false, at: 750) == .wait(until: Self.at(850)))
        #expect(told(false, at: 1_249) == .wait(until: Self.at(1_349)))
        #expect(told(false, at: 1_250) == .end(.nothing))
    }

    @Test func theSilenceOfOneNodeIsNotThatOfTheNext() {
        #expect(took(.owned(by: "a")) == .ask(node: "a"))
        #expect(told(false, at: 0) == .wait(until: Self.at(100)))
        #expect(took(.owned(by: "b"), at: 1_500) == .ask(node: "b"))
        #expect(told(false, at: 1_500) == .wait(until: Self.at(1_600)))
    }

    @Test func whatTheNodeThatHasItDoesNotHaveIsLost() {
        #expect(took(.owned(by: "a")) == .ask(node: "a"))
        #expect(waited(.unknown) == .take)
        #expect(took(.owned(by: "a")) == .end(.nothing))
    }

    @Test func whatHasGoneOnMeanwhileIsSoughtThere() {
        #expect(took(.owned(by: "a")) == .ask(node: "a"))
        #expect(waited(.unknown) == .take)
        #expect(took(.owned(by: "b")) == .ask(node: "b"))
    }

    @Test func aNodeMaySayThatItCannot() {
        #expect(took(.owned(by: "a")) == .ask(node: "a"))
        #expect(waited(.busy) == .end(.notNow))
        #expect(waited(.stale) == .end(.stale))
    }

    @Test func aNodeThatSaysNothingIsNotWaitedForForEver() {
        #expect(took(.owned(by: "a"), at: 4_900) == .ask(node: "a"))
        #expect(told(true, at: 4_900) == .wait(until: Self.at(5_000)))
        #expect(waited(nil, at: 5_000) == .take)
        #expect(took(.owned(by: "a"), at: 5_000) == .end(.notNow))
    }

    @Test func anEngineThatIsAwayIsAskedForFiveSeconds() {
        #expect(failed(at: 4_999) == .wait(until: Self.at(5_099)))
        #expect(waited(nil, at: 5_000) == .take)
        #expect(failed(at: 5_000) == .end(.nothing))
    }

    /// It may be this node's, so that no other session may begin in its place.
    @Test func aStateThatCannotBeConfirmedIsNotUsed() {
        #expect(took(.state([1])) == .confirm)
        #expect(failed(at: 100) == .wait(until: Self.at(200)))
        #expect(waited(nil, at: 200) == .confirm)
        #expect(failed(at: 5_000) == .end(.notNow))
    }
}
