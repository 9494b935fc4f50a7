import Lifeline
import LifelineCore
import LifelineFleet
import Testing

/// The search for a session that is at another node, and its results.
@Suite final class SessionSearchTests {
    private var search = SessionSearch(now: SessionSearchTests.at(0))
    private var silentNodes = SilentNodes(lifetime: .seconds(10))

    private static func at(_ milliseconds: Int) -> MonotonicTime {
        MonotonicTime(nanoseconds: 0) + .milliseconds(milliseconds)
    }

    private static let terms = SessionTerms(
        window: SessionWindow(frameCount: 1, byteCount: 1),
        credit: 1,
        maximumRequestCount: 1,
        maximumFrameLength: 1
    )
    /// A state with which this node can continue.
    private let snapshot = SessionSnapshot(
        peerTerms: terms,
        ownTerms: terms,
        ordinary: LaneSnapshot(next: 0, sentEnd: 0, frames: []),
        urgent: LaneSnapshot(next: 0, sentEnd: 0, frames: []),
        waiting: [],
        methods: [],
        peerMethods: [],
        received: 7,
        urgentReceived: 0,
        peerReceived: 0
    )

    private func took(_ take: FleetTake, at time: Int = 0) -> SessionSearch.Step {
        var found: SessionSnapshot?
        if case .state = take { found = snapshot }
        return search.took(take, found, now: Self.at(time))
    }

    private func told(_ isHeard: Bool, at time: Int = 0) -> SessionSearch.Step {
        search.told(isHeard: isHeard, &silentNodes, now: Self.at(time))
    }

    /// Begins another search, which finds a node that has the session.
    private func searchAgain(at time: Int, owner: String = "a") {
        search = SessionSearch(now: Self.at(time))
        #expect(took(.owned(by: owner), at: time) == .ask(node: owner))
    }

    private func waited(_ answer: SessionHandOver?, at time: Int = 0) -> SessionSearch.Step {
        search.waited(answer, now: Self.at(time))
    }

    private func failed(at time: Int) -> SessionSearch.Step { search.failed(now: Self.at(time)) }

    @Test func anUnknownSessionBeginsAnew() {
        #expect(took(.unknown) == .end(.nothing))
        #expect(took(.stale) == .end(.stale))
    }

    @Test func aStateIsConfirmedBeforeItIsUsed() {
        #expect(took(.state([1])) == .confirm)
        #expect(search.confirmed(.confirmed) == .end(.snapshot(snapshot)))
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
        #expect(search.took(.state([1]), nil, now: Self.at(0)) == .end(.nothing))
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
        // The node has connected to the engine again, and is lost again.
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

    /// A server that was killed had many sessions.
    @Test func aNodeThatIsDeadIsNotWaitedForAgain() {
        searchAgain(at: 0)
        _ = told(false, at: 0)
        #expect(told(false, at: 500) == .end(.nothing))
        searchAgain(at: 600)
        #expect(told(false, at: 600) == .end(.nothing))
        searchAgain(at: 600, owner: "b")
        #expect(told(false, at: 600) == .wait(until: Self.at(700)), "that is another one")
    }

    /// All searches that were under way when it was killed end at once.
    @Test func theEndOfOneSearchIsThatOfTheOthers() {
        searchAgain(at: 0)
        _ = told(false, at: 0)
        var other = SessionSearch(now: Self.at(450))
        #expect(other.took(.owned(by: "a"), now: Self.at(450)) == .ask(node: "a"))
        #expect(other.told(isHeard: false, &silentNodes, now: Self.at(450)) == .wait(until: Self.at(550)))
        #expect(told(false, at: 500) == .end(.nothing))
        #expect(other.waited(nil, now: Self.at(550)) == .take)
        #expect(other.took(.owned(by: "a"), now: Self.at(550)) == .ask(node: "a"))
        #expect(other.told(isHeard: false, &silentNodes, now: Self.at(550)) == .end(.nothing))
    }

    @Test(arguments: ["it listens", "it asks", "its lease has ended", "the engine was lost"])
    func aDeadNodeMayComeBack(_ what: String) {
        searchAgain(at: 0)
        _ = told(false, at: 0)
        #expect(told(false, at: 500) == .end(.nothing))
        switch what {
        case "it listens":
            searchAgain(at: 600)
            #expect(told(true, at: 600) == .wait(until: Self.at(850)))
        case "it asks": silentNodes.heard("a")
        case "the engine was lost": silentNodes.engineWasLost()
        default:
            searchAgain(at: 10_499)
            #expect(told(false, at: 10_499) == .end(.nothing))
        }
        searchAgain(at: 10_500)
        #expect(told(false, at: 10_500) == .wait(until: Self.at(10_600)))
    }

    @Test func notMoreThanSomeDeadNodesAreRemembered() {
        for number in 0...SilentNodes.maximumCount { silentNodes.foundSilent("\(number)", now: Self.at(number)) }
        let now = Self.at(SilentNodes.maximumCount)
        #expect(!silentNodes.contains("0", now: now))
        #expect((1...SilentNodes.maximumCount).allSatisfy { silentNodes.contains("\($0)", now: now) })
    }

    /// The nodes come back to an engine one after the other.
    @Test func anEngineThatFailsSaysNothingOfNodes() {
        searchAgain(at: 0)
        _ = told(false, at: 0)
        #expect(failed(at: 400) == .wait(until: Self.at(500)))
        #expect(told(false, at: 500) == .wait(until: Self.at(600)))
        #expect(told(false, at: 1_000) == .end(.nothing))
    }

    @Test func aSessionThatItsNodeDoesNotHaveIsLost() {
        #expect(took(.owned(by: "a")) == .ask(node: "a"))
        #expect(waited(.unknown) == .take)
        #expect(took(.owned(by: "a")) == .end(.nothing))
    }

    @Test func aSessionThatHasMovedIsSoughtThere() {
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

    /// For the engine, a process that hangs still listens.
    @Test(arguments: [true, false]) func theLeaseOfANodeThatSaysNothingIsLookedAt(isAlive: Bool) {
        for _ in 1...4 {
            #expect(took(.owned(by: "a")) == .ask(node: "a"))
            #expect(told(true) == .wait(until: Self.at(250)))
            #expect(waited(nil) == .take)
        }
        #expect(took(.owned(by: "a")) == .lookAtLease(node: "a"))
        #expect(search.lookedAtLease(isAlive: isAlive) == (isAlive ? .ask(node: "a") : .end(.nothing)))
        if isAlive { #expect(took(.owned(by: "a")) == .ask(node: "a")) }
    }

    @Test func theLeaseOfAnotherNodeIsLookedAtByItself() {
        for node in ["a", "b"] {
            for _ in 1...4 {
                #expect(took(.owned(by: node)) == .ask(node: node))
                #expect(told(true) == .wait(until: Self.at(250)))
            }
        }
        #expect(took(.owned(by: "b")) == .lookAtLease(node: "b"))
    }

    @Test func anEngineThatIsAwayIsAskedForFiveSeconds() {
        #expect(failed(at: 4_999) == .wait(until: Self.at(5_099)))
        #expect(waited(nil, at: 5_000) == .take)
        #expect(failed(at: 5_000) == .end(.nothing))
    }

    /// The session may be at this node, so no other session may begin in its place.
    @Test func aStateThatCannotBeConfirmedIsNotUsed() {
        #expect(took(.state([1])) == .confirm)
        #expect(failed(at: 100) == .wait(until: Self.at(200)))
        #expect(waited(nil, at: 200) == .confirm)
        #expect(failed(at: 5_000) == .end(.notNow))
    }
}
