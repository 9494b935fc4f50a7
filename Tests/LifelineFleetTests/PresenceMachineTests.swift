import LifelineCore
import LifelineFleet
import Testing

private let start = MonotonicTime(nanoseconds: 1_000_000_000)

private func at(_ milliseconds: Int) -> MonotonicTime { start + .milliseconds(milliseconds) }

private let (ada, bob, eve) = (GroupMember("ada"), GroupMember("bob"), GroupMember("eve"))

extension PresenceMachine {
    fileprivate init(maximumChangeCount: Int = 1_000) {
        var options = Options()
        options.maximumChangeCount = maximumChangeCount
        self.init(node: "here", firstVersion: 100, options: options, now: start)
    }

    /// A watching machine, which knows that the node "there" has some members in version 10.
    fileprivate static func watching(_ members: [GroupMember]) -> PresenceMachine {
        var machine = PresenceMachine()
        machine.addWatcher()
        _ = machine.takeWork(now: start)
        machine.watchBegan(now: start)
        _ = machine.takeWork(now: start)
        machine.compared(["there": 10], live: ["there"], now: start)
        _ = machine.takeWork(now: start)
        machine.read(PresencePage(version: 10, members: members), of: "there", now: start)
        _ = machine.takeWork(now: start)
        return machine
    }

    fileprivate var names: [String]? { present?.map(\.name).sorted() }

    fileprivate mutating func events(_ now: MonotonicTime) -> [PresenceEvent] { takeWork(now: now)?.events ?? [] }

    fileprivate mutating func news(
        _ version: UInt64,
        after base: UInt64?,
        present: [GroupMember] = [],
        absent: [String] = [],
        of node: String = "there",
        now: MonotonicTime
    ) {
        received(
            PresenceChange(node: node, version: version, base: base, present: present, absent: absent),
            now: now
        )
    }
}

struct PresenceMachineTests {
    // MARK: Telling

    @Test func membersAreToldInBatches() throws {
        var machine = PresenceMachine()
        machine.set(ada, of: "1", now: start)
        let first = try #require(machine.takeWork(now: start)?.update)
        #expect(first == PresenceChange(node: "here", version: 101, base: nil, present: [ada], absent: []))
        machine.set(bob, of: "2", now: at(10))
        // The engine has not answered.
        #expect(machine.takeWork(now: at(200)) == nil)
        machine.updated(to: 101, now: at(20))
        machine.set(nil, of: "1", now: at(30))
        #expect(machine.takeWork(now: at(99)) == nil)
        #expect(machine.nextDeadline == at(100))
        let second = try #require(machine.takeWork(now: at(100))?.update)
        #expect(second == PresenceChange(node: "here", version: 102, base: 101, present: [bob], absent: ["ada"]))
    }

    @Test func aMemberOfSeveralSessionsIsToldOnce() {
        var machine = PresenceMachine()
        machine.set(ada, of: "1", now: start)
        #expect(machine.takeWork(now: start)?.update?.present == [ada])
        machine.updated(to: 101, now: start)
        machine.set(ada, of: "2", now: at(200))
        machine.set(nil, of: "1", now: at(200))
        // The member is back before the next batch.
        machine.set(nil, of: "2", now: at(200))
        machine.set(ada, of: "3", now: at(200))
        #expect(machine.takeWork(now: at(200)) == nil)
        machine.set(nil, of: "3", now: at(300))
        #expect(machine.takeWork(now: at(300))?.update?.absent == ["ada"])
        machine.updated(to: 102, now: at(300))
        #expect(machine.isIdle)
    }

    @Test func aSessionMayBecomeAnotherMember() {
        var machine = PresenceMachine()
        machine.set(ada, of: "1", now: start)
        _ = machine.takeWork(now: start)
        machine.updated(to: 101, now: start)
        machine.set(bob, of: "1", now: at(200))
        let change = machine.takeWork(now: at(200))?.update
        #expect(change?.present == [bob])
        #expect(change?.absent == ["ada"])
    }

    @Test func anEngineThatHasAnotherVersionIsToldAll() {
        var machine = PresenceMachine()
        machine.set(ada, of: "1", now: start)
        _ = machine.takeWork(now: start)
        // An earlier process of the node, whose clock was ahead.
        machine.updated(to: 5_000, now: at(10))
        let change = machine.takeWork(now: at(110))?.update
        #expect(change == PresenceChange(node: "here", version: 5_001, base: nil, present: [ada], absent: []))
        machine.updated(to: .max, now: at(110))
        // No version is greater, and nothing breaks.
        #expect(machine.takeWork(now: at(300))?.update?.version == 1 << 53 - 1)
    }

    @Test func anEngineThatFailsIsToldAllLater() {
        var machine = PresenceMachine()
        machine.set(ada, of: "1", now: start)
        _ = machine.takeWork(now: start)
        machine.updated(to: 101, now: start)
        machine.set(bob, of: "2", now: at(100))
        #expect(machine.takeWork(now: at(100))?.update?.base == 101)
        machine.updateFailed(now: at(150))
        machine.set(nil, of: "2", now: at(160))
        #expect(machine.nextDeadline == at(1_150))
        #expect(machine.takeWork(now: at(1_149)) == nil)
        let change = machine.takeWork(now: at(1_150))?.update
        #expect(change == PresenceChange(node: "here", version: 103, base: nil, present: [ada], absent: []))
    }

    @Test func anEngineThatHasForgottenTheMembersIsToldAll() {
        var machine = PresenceMachine()
        machine.set(ada, of: "1", now: start)
        _ = machine.takeWork(now: start)
        machine.updated(to: 101, now: start)
        machine.compare(now: at(5_000))
        #expect(machine.takeWork(now: at(5_000))?.compares == true)
        machine.compared(["here": 101], live: [], now: at(5_010))
        #expect(machine.takeWork(now: at(5_010)) == nil)
        machine.compare(now: at(10_000))
        _ = machine.takeWork(now: at(10_000))
        machine.compared([:], live: [], now: at(10_010))
        let change = machine.takeWork(now: at(10_010))?.update
        #expect(change == PresenceChange(node: "here", version: 102, base: nil, present: [ada], absent: []))
    }

    /// An earlier process of this node was killed, and this one has no members.
    @Test func theMembersOfAnEarlierProcessAreTakenBack() {
        var machine = PresenceMachine()
        machine.addWatcher()
        _ = machine.takeWork(now: start)
        machine.watchBegan(now: start)
        _ = machine.takeWork(now: start)
        machine.compared(["here": 50], live: [], now: start)
        let change = machine.takeWork(now: start)?.update
        #expect(change == PresenceChange(node: "here", version: 101, base: nil, present: [], absent: []))
    }

    /// The answer was on its way when the engine was updated.
    @Test func aComparisonThatIsOlderThanAnUpdateSaysNothingOfIt() {
        var machine = PresenceMachine()
        machine.set(ada, of: "1", now: start)
        _ = machine.takeWork(now: start)
        machine.updated(to: 101, now: start)
        machine.compare(now: at(200))
        machine.set(bob, of: "2", now: at(200))
        #expect(machine.takeWork(now: at(200))?.update?.version == 102)
        machine.updated(to: 102, now: at(210))
        machine.compared(["here": 101], live: [], now: at(220))
        #expect(machine.takeWork(now: at(1_000)) == nil)
    }

    @Test func oneChangeHasSoManyMembersAtMost() {
        var machine = PresenceMachine(maximumChangeCount: 2)
        for (index, member) in [ada, bob, eve].enumerated() { machine.set(member, of: "\(index)", now: start) }
        #expect(machine.takeWork(now: start)?.update?.present == [ada, bob])
        machine.updated(to: 101, now: at(1))
        // The rest follows at once.
        let rest = machine.takeWork(now: at(1))?.update
        #expect(rest?.base == 101)
        #expect(rest?.present == [eve])
    }

    // MARK: Watching

    @Test func aWatcherIsToldWhenAllNodesAreRead() {
        var machine = PresenceMachine()
        machine.set(ada, of: "1", now: start)
        machine.addWatcher()
        #expect(machine.takeWork(now: start)?.beginsWatch == true)
        machine.watchBegan(now: start)
        #expect(machine.takeWork(now: start)?.compares == true)
        machine.compared(["here": 101, "b": 7, "c": 8, "dead": 9], live: ["b", "c"], now: start)
        #expect(machine.takeWork(now: start)?.reads == ["b", "c"])
        machine.read(PresencePage(version: 7, members: [ada, bob]), of: "b", now: start)
        #expect(machine.present == nil)
        machine.read(PresencePage(version: 8, members: [eve]), of: "c", now: start)
        #expect(machine.takeWork(now: start)?.isReady == true)
        #expect(machine.names == ["ada", "bob", "eve"])
        machine.removeWatcher()
        #expect(machine.takeWork(now: start)?.endsWatch == true)
        #expect(machine.present == nil)
    }

    @Test func aSubscriptionThatFailsBeforeItIsReadyIsTriedAgain() {
        var machine = PresenceMachine()
        machine.addWatcher()
        _ = machine.takeWork(now: start)
        machine.watchFailed(now: start)
        #expect(machine.takeWork(now: at(999)) == nil)
        #expect(machine.takeWork(now: at(1_000))?.beginsWatch == true)
        machine.watchBegan(now: at(1_000))
        _ = machine.takeWork(now: at(1_000))
        machine.comparisonFailed(now: at(1_000))
        #expect(machine.takeWork(now: at(2_000))?.compares == true)
        machine.compared(["there": 1], live: ["there"], now: at(2_000))
        #expect(machine.takeWork(now: at(2_000))?.reads == ["there"])
        machine.readFailed(of: "there", now: at(2_000))
        #expect(machine.present == nil)
        #expect(machine.takeWork(now: at(3_000))?.compares == true)
        machine.compared([:], live: [], now: at(3_000))
        #expect(machine.names == [])
    }

    @Test func newsIsTakenInOrder() {
        var machine = PresenceMachine.watching([ada])
        machine.news(11, after: 10, present: [bob], now: start)
        #expect(machine.events(start) == [.joined(bob)])
        // The update arrives twice, and too late.
        machine.news(11, after: 10, present: [bob], now: start)
        machine.news(9, after: 8, present: [eve], absent: ["bob"], now: start)
        #expect(machine.takeWork(now: start) == nil)
        // An update is missing.
        machine.news(13, after: 12, present: [eve], now: start)
        #expect(machine.takeWork(now: start)?.reads == ["there"])
        machine.read(PresencePage(version: 13, members: [bob, eve]), of: "there", now: start)
        #expect(machine.events(start) == [.joined(eve)])
        #expect(machine.events(at(3_000)) == [.left(ada)])
        // The node has announced all members.
        machine.news(14, after: nil, now: start)
        #expect(machine.takeWork(now: start)?.reads == ["there"])
    }

    @Test func anAnswerThatIsOlderThanNewsIsAskedForAgain() {
        var machine = PresenceMachine.watching([ada])
        machine.news(12, after: 11, present: [eve], now: start)
        #expect(machine.takeWork(now: start)?.reads == ["there"])
        machine.news(13, after: 12, present: [bob], now: start)
        machine.read(PresencePage(version: 12, members: [ada, eve]), of: "there", now: start)
        let work = machine.takeWork(now: start)
        #expect(work?.events == [.joined(eve)])
        #expect(work?.reads == ["there"])
        // An update that arrives meanwhile follows the old answer.
        machine.news(13, after: 12, present: [bob], now: start)
        machine.read(PresencePage(version: 12, members: [ada, eve]), of: "there", now: start)
        #expect(machine.names == ["ada", "bob", "eve"])
        #expect(machine.takeWork(now: start)?.reads == ["there"])
    }

    @Test func aNewNodeIsReadWhereItIsAlive() {
        var machine = PresenceMachine.watching([])
        machine.news(1, after: nil, of: "new", now: at(200))
        machine.news(2, after: 1, of: "dead", now: at(200))
        #expect(machine.takeWork(now: at(200))?.compares == true)
        machine.compared(["there": 10, "new": 1, "dead": 2], live: ["there", "new"], now: at(200))
        #expect(machine.takeWork(now: at(200))?.reads == ["new"])
    }

    @Test func aMemberThatIsBackInTimeHasNotLeft() {
        var machine = PresenceMachine.watching([ada, bob])
        machine.news(11, after: 10, absent: ["ada", "bob"], now: start)
        // The member is at another node.
        machine.set(ada, of: "1", now: at(2_999))
        #expect(machine.events(at(2_999)) == [])
        #expect(machine.names == ["ada", "bob"])
        #expect(machine.nextDeadline == at(3_000))
        #expect(machine.events(at(3_000)) == [.left(bob)])
        machine.set(nil, of: "1", now: at(4_000))
        machine.news(12, after: 11, present: [bob], now: at(4_000))
        #expect(machine.events(at(4_000)) == [.joined(bob)])
        #expect(machine.events(at(6_999)) == [])
        #expect(machine.events(at(7_000)) == [.left(ada)])
    }

    @Test func aMemberOfTwoNodesIsPresentOnce() {
        var machine = PresenceMachine.watching([ada])
        machine.set(GroupMember("ada", attributes: ["a": "b"]), of: "1", now: start)
        #expect(machine.events(start) == [])
        #expect(machine.present == [GroupMember("ada", attributes: ["a": "b"])])
        machine.set(nil, of: "1", now: at(100))
        #expect(machine.present == [ada])
        #expect(machine.events(at(10_000)) == [])
    }

    @Test func theMembersOfADeadNodeLeave() {
        var machine = PresenceMachine.watching([ada])
        machine.compare(now: at(5_000))
        #expect(machine.takeWork(now: at(5_000))?.compares == true)
        machine.compared(["there": 10], live: [], now: at(5_000))
        // The node is asked once more before its members leave.
        #expect(machine.nextDeadline == at(6_800))
        #expect(machine.takeWork(now: at(6_800))?.compares == true)
        machine.compared(["there": 10], live: [], now: at(6_800))
        #expect(machine.events(at(7_999)) == [])
        #expect(machine.events(at(8_000)) == [.left(ada)])
    }

    @Test func aNodeThatIsBackInTimeHasItsMembers() {
        var machine = PresenceMachine.watching([ada])
        machine.compare(now: at(5_000))
        _ = machine.takeWork(now: at(5_000))
        machine.compared([:], live: [], now: at(5_000))
        _ = machine.takeWork(now: at(6_800))
        machine.compared(["there": 10], live: ["there"], now: at(6_800))
        #expect(machine.takeWork(now: at(6_800))?.reads == ["there"])
        machine.read(PresencePage(version: 10, members: [ada]), of: "there", now: at(6_900))
        #expect(machine.events(at(20_000)) == [])
        #expect(machine.names == ["ada"])
    }

    @Test func aNodeThatWasHeardOfSinceIsComparedAgain() {
        var machine = PresenceMachine.watching([ada])
        machine.compare(now: at(5_000))
        _ = machine.takeWork(now: at(5_000))
        machine.news(11, after: 10, present: [bob], now: at(5_010))
        // The answer is older.
        machine.compared([:], live: [], now: at(5_020))
        #expect(machine.names == ["ada", "bob"])
        #expect(machine.takeWork(now: at(5_100))?.compares == true)
    }

    // MARK: Feeds

    @Test func aSlowReaderIsToldAgainWhoIsThere() {
        var feed = PresenceFeed(limit: 2)
        #expect(feed.next(nil) == nil)
        #expect(feed.next([ada]) == .present([ada]))
        feed.add([.joined(bob), .joined(eve)])
        #expect(feed.next([ada, bob, eve]) == .joined(bob))
        feed.add([.left(ada), .left(bob)])
        #expect(feed.next([eve]) == .present([eve]))
        #expect(feed.next([eve]) == nil)
        feed.add([.joined(ada)])
        #expect(feed.next([ada, eve]) == .joined(ada))
    }
}
