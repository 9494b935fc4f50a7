import LifelineCore
import LifelineFleet
import Testing

/// A member that records its messages.
struct TestMember: Identifiable, Sendable, Equatable {
    let id: Int
}

typealias TestMachine = GroupMachine<TestMember, [UInt8]>

@Suite final class GroupMachineTests {
    private var machine = machine(keeping: .init())

    private static let noMessage: [UInt8] = [1, 2, 3]

    /// Messages of two bytes have a key.
    private static func machine(keeping history: GroupHistory, slowByteLimit: Int = 0) -> TestMachine {
        let page = GroupPage(newest: .init(epoch: 1, offset: 0), messages: [])
        return TestMachine(page, keeping: history, slowByteLimit: slowByteLimit, now: at(0)) { bytes in
            bytes == noMessage ? nil : .init(bytes, key: bytes.count > 1 ? "key" : nil)
        }
    }

    private static func at(_ seconds: Int) -> MonotonicTime { MonotonicTime(nanoseconds: 0) + .seconds(seconds) }

    /// Adds messages with the offsets as contents.
    private func receive(_ offsets: ClosedRange<UInt64>, epoch: UInt64 = 1, at seconds: Int = 0) {
        for offset in offsets {
            machine.received(
                [UInt8(truncatingIfNeeded: offset)],
                at: .init(epoch: epoch, offset: offset),
                now: Self.at(seconds)
            )
        }
    }

    /// Serves a member until it has everything. Returns the offsets, with "r" for recovered ones and "g" for gaps.
    private func serve(_ id: Int, at seconds: Int = 0) -> [String] {
        var served: [String] = []
        while let (member, serving) = machine.next(for: id, now: Self.at(seconds)) {
            #expect(member.id == id)
            served.append("\(serving.message.offset)\(serving.isRecovered ? "r" : "")\(serving.followsGap ? "g" : "")")
            machine.served(id, serving, .sent)
        }
        return served
    }

    private func takeWork(at seconds: Int = 0) -> TestMachine.Work? { machine.takeWork(now: Self.at(seconds)) }

    private func join(_ id: Int, from start: GroupStart, at seconds: Int = 0) -> GroupJoin {
        machine.join(TestMember(id: id), from: start, now: Self.at(seconds))
    }

    private func next(_ id: Int) -> (TestMember, TestMachine.Serving)? { machine.next(for: id, now: Self.at(0)) }

    /// The messages that a member gets in a turn.
    private static func offsets(_ turn: TestMachine.Turn, of id: Int) -> [UInt64] {
        turn.members.filter { $0.member.id == id }.flatMap { turn.messages.filter($0.wants).map(\.offset) }
    }

    private func takeLeft(_ id: Int) -> TestMachine.Left? { machine.takeLeft(id) }

    private func takeTurn() -> TestMachine.Turn? { takeWork()?.turn }

    @Test func liveMembersGetMessagesTogether() throws {
        receive(1...2)
        for id in 1...2 { _ = join(id, from: .now) }
        receive(3...5)
        let turn = try #require(takeTurn())
        #expect(turn.messages.map(\.offset) == [1, 2, 3, 4, 5])
        #expect(turn.members.map(\.member.id) == [1, 2])
        #expect(turn.members.map { Self.offsets(turn, of: $0.member.id) } == [[3, 4, 5], [3, 4, 5]])
    }

    @Test func aTurnIsTakenOnceAndAnotherOneWhenItHasEnded() throws {
        _ = join(1, from: .now)
        receive(1...1)
        let turn = try #require(takeTurn())
        receive(2...2)
        #expect(takeTurn() == nil)
        machine.turnEnded(turn, blocked: [])
        #expect(takeTurn()?.messages.map(\.offset) == [2])
        #expect(takeWork() == nil)
    }

    @Test func aMemberThatCannotTakeAMessageIsServedByItself() throws {
        for id in 1...3 { _ = join(id, from: .now) }
        receive(1...3)
        let turn = try #require(takeTurn())
        machine.turnEnded(turn, blocked: [(1, 2)])
        receive(4...4)
        let work = try #require(takeWork())
        #expect(work.served == [1])
        #expect(work.turn?.members.map(\.member.id).sorted() == [2, 3])
        #expect(serve(1) == ["2", "3", "4"])
        // It is live again.
        machine.turnEnded(try #require(work.turn), blocked: [])
        receive(5...5)
        let next = try #require(takeTurn())
        #expect(next.members.map(\.member.id).sorted() == [1, 2, 3])
        #expect(Self.offsets(next, of: 1) == [5])
    }

    @Test func oneThatCatchesUpBeforeATurnBeginsGetsNoMessageTwice() throws {
        _ = join(1, from: .now)
        receive(1...1)
        machine.turnEnded(try #require(takeTurn()), blocked: [(1, 1)])
        #expect(takeWork()?.served == [1])
        receive(2...2)
        #expect(serve(1) == ["1", "2"])
        let turn = try #require(takeTurn())
        #expect(turn.messages.map(\.offset) == [2])
        #expect(Self.offsets(turn, of: 1) == [])
    }

    @Test func joiningBehindAPositionRecoversWhatCameAfterIt() {
        receive(1...5)
        let join = join(1, from: .after(.init(epoch: 1, offset: 3)))
        #expect(join == GroupJoin(position: .init(epoch: 1, offset: 3), isRecovered: true))
        #expect(takeWork()?.served == [1])
        #expect(serve(1) == ["4r", "5r"])
    }

    @Test func joiningFromTheEarliestMessageGetsAll() {
        receive(1...3)
        let join = join(1, from: .earliest)
        #expect(join == GroupJoin(position: .init(epoch: 1, offset: 0), isRecovered: true))
        _ = takeWork()
        receive(4...4)
        #expect(serve(1) == ["1r", "2r", "3r", "4"])
    }

    @Test(arguments: [GroupPosition(epoch: 1, offset: 1), GroupPosition(epoch: 7, offset: 4)])
    func whereTheHistoryDoesNotReachTheNextMessageSaysSo(_ position: GroupPosition) throws {
        var history = GroupHistory()
        history.maximumCount = 2
        machine = Self.machine(keeping: history)
        receive(1...5)
        _ = takeTurn()
        let join = join(1, from: .after(position))
        #expect(join == GroupJoin(position: .init(epoch: 1, offset: 5), isRecovered: false))
        #expect(takeWork()?.served == [1])
        #expect(serve(1) == [])
        #expect(takeWork() == nil)
        receive(6...7)
        #expect(takeWork()?.served == [1])
        #expect(serve(1) == ["6g", "7"])
    }

    /// A member that joins there reads all earlier messages, and then finds it.
    @Test func aPositionThatThisNodeHasNotSeenYetIsFoundAtTheEngine() throws {
        receive(1...2)
        let (known, ahead) = (GroupPosition(epoch: 1, offset: 1), GroupPosition(epoch: 1, offset: 4))
        #expect(machine.covers(known))
        #expect(!machine.covers(ahead))
        let page = GroupPage(
            newest: .init(epoch: 1, offset: 5),
            messages: (1...5).map { GroupPage.Message(offset: $0, age: .zero, bytes: [0]) }
        )
        machine.read(page, after: 0, in: 1, now: Self.at(0))
        #expect(machine.covers(ahead))
        #expect(join(1, from: .after(ahead)).isRecovered)
        _ = takeWork()
        #expect(serve(1) == ["5r"])
        // A message that does not exist goes to no member.
        #expect(!join(2, from: .after(.init(epoch: 1, offset: .max))).isRecovered)
    }

    @Test func aMemberHasAPosition() throws {
        receive(1...2)
        _ = takeTurn()
        _ = join(1, from: .now)
        _ = join(2, from: .earliest)
        #expect(machine.position(of: 1)?.offset == 2)
        #expect(machine.position(of: 2)?.offset == 0)
        #expect(machine.position(of: 3) == nil)
        receive(3...3)
        let turn = try #require(takeTurn())
        // It may not get it yet.
        #expect(machine.position(of: 1)?.offset == 2)
        machine.turnEnded(turn, blocked: [])
        #expect(machine.position(of: 1)?.offset == 3)
    }

    @Test func messagesThatTheNodeWasNotToldOfAreRead() throws {
        _ = join(1, from: .now)
        receive(1...1)
        receive(3...3)
        let work = try #require(takeWork())
        #expect(work.turn?.messages.map(\.offset) == [1])
        #expect(work.readAfter == 1)
        // It arrives meanwhile.
        receive(2...2)
        let page = GroupPage(
            newest: .init(epoch: 1, offset: 3),
            messages: (2...3).map { GroupPage.Message(offset: $0, age: .zero, bytes: [0]) }
        )
        machine.read(page, now: Self.at(0))
        machine.turnEnded(try #require(work.turn), blocked: [])
        let next = try #require(takeWork())
        #expect(next.turn?.messages.map(\.offset) == [2, 3])
        #expect(next.turn?.messages.contains { $0.followsGap } == false)
        #expect(next.readAfter == nil)
    }

    @Test func messagesThatTheHistoryHasNoMoreAreToldAsAGap() throws {
        _ = join(1, from: .now)
        receive(1...1)
        machine.turnEnded(try #require(takeTurn()), blocked: [])
        machine.noted(.init(epoch: 1, offset: 9))
        #expect(takeWork()?.readAfter == 1)
        let page = GroupPage(
            newest: .init(epoch: 1, offset: 9),
            messages: [GroupPage.Message(offset: 9, age: .zero, bytes: [0])]
        )
        machine.read(page, now: Self.at(0))
        let turn = try #require(takeTurn())
        #expect(turn.messages.map(\.offset) == [9])
        #expect(turn.messages.map(\.followsGap) == [true])
    }

    @Test func messagesThatAreTooOldToBeReadAreToldAsAGap() throws {
        _ = join(1, from: .now)
        machine.noted(.init(epoch: 1, offset: 9))
        #expect(takeWork()?.readAfter == 0)
        machine.read(GroupPage(newest: .init(epoch: 1, offset: 9), messages: []), now: Self.at(0))
        #expect(takeWork() == nil)
        receive(10...11)
        let turn = try #require(takeTurn())
        #expect(turn.messages.map(\.offset) == [10, 11])
        #expect(turn.messages.map(\.followsGap) == [true, false])
    }

    @Test func aReadingThatFailsIsTriedAgainWithTheNextNews() {
        machine.noted(.init(epoch: 1, offset: 2))
        #expect(takeWork()?.readAfter == 0)
        #expect(takeWork() == nil)
        machine.readFailed()
        #expect(takeWork() == nil)
        machine.noted(.init(epoch: 1, offset: 2))
        #expect(takeWork()?.readAfter == 0)
    }

    /// An announcement for an unknown group.
    @Test(arguments: [
        GroupPosition(epoch: 1, offset: 100), GroupPosition(epoch: .max, offset: .max), .init(epoch: 0, offset: 0),
    ])
    func aMissingAnnouncedMessageIsReadOnce(_ position: GroupPosition) {
        receive(1...1)
        _ = takeTurn()
        machine.received([], at: position, now: Self.at(0))
        #expect(takeWork()?.readAfter == 1)
        machine.read(GroupPage(newest: .init(epoch: 1, offset: 1), messages: []), now: Self.at(0))
        #expect(takeWork() == nil)
        receive(2...2)
        #expect(machine.position == GroupPosition(epoch: 1, offset: 2))
    }

    /// Epochs need not ascend: a clock may have been set back.
    @Test(arguments: [0, 2]) func aLostHistoryIsToldToAll(_ epoch: UInt64) throws {
        _ = join(1, from: .now)
        receive(1...3)
        let turn = try #require(takeTurn())
        _ = join(2, from: .earliest)
        receive(1...1, epoch: epoch)
        #expect(takeWork()?.readAfter == 3)
        let page = GroupPage(newest: .init(epoch: epoch, offset: 1), messages: [])
        machine.read(page, now: Self.at(0))
        #expect(machine.position == GroupPosition(epoch: epoch, offset: 0))
        // An answer from before is dropped.
        machine.read(GroupPage(newest: .init(epoch: 1, offset: 9), messages: []), after: 3, in: 1, now: Self.at(0))
        #expect(machine.position == GroupPosition(epoch: epoch, offset: 0))
        #expect(takeWork()?.readAfter == 0)
        let message = GroupPage.Message(offset: 1, age: .zero, bytes: [1])
        machine.read(GroupPage(newest: .init(epoch: epoch, offset: 1), messages: [message]), now: Self.at(0))
        // The turn of the old epoch ends meanwhile.
        machine.turnEnded(turn, blocked: [(1, 2)])
        #expect(takeWork()?.served.sorted() == [1, 2])
        #expect(serve(1) == ["1g"])
        #expect(serve(2) == ["1g"])
    }

    @Test func malformedMessagesAreReportedAsAGap() throws {
        _ = join(1, from: .now)
        machine.received([1], at: .init(epoch: 1, offset: 1), now: Self.at(0))
        machine.received(Self.noMessage, at: .init(epoch: 1, offset: 2), now: Self.at(0))
        machine.received([3], at: .init(epoch: 1, offset: 3), now: Self.at(0))
        let turn = try #require(takeTurn())
        #expect(turn.messages.map(\.offset) == [1, 3])
        #expect(turn.messages.map(\.followsGap) == [false, true])
    }

    @Test func ofMessagesWithAKeyThoseThatAreBehindGetTheNewest() throws {
        _ = join(1, from: .now)
        for (offset, bytes) in [(1, [1, 1]), (2, [2]), (3, [3, 3]), (4, [4])] as [(UInt64, [UInt8])] {
            machine.received(bytes, at: .init(epoch: 1, offset: offset), now: Self.at(0))
        }
        machine.turnEnded(try #require(takeTurn()), blocked: [(1, 1)])
        _ = takeWork()
        #expect(serve(1) == ["2", "3", "4"])
    }

    @Test func messagesAreForgottenWhenTheyAreOld() {
        receive(1...1, at: 0)
        receive(2...2, at: 200)
        _ = takeWork(at: 200)
        #expect(join(1, from: .earliest, at: 301).position.offset == 1)
        #expect(join(2, from: .earliest, at: 501).position.offset == 2)
    }

    @Test func messagesWaitForTheirTurnHoweverManyThereAre() throws {
        var history = GroupHistory()
        history.maximumCount = 1
        machine = Self.machine(keeping: history)
        _ = join(1, from: .now)
        receive(1...10)
        let turn = try #require(takeTurn())
        #expect(turn.messages.count == 10)
        machine.turnEnded(turn, blocked: [(1, 3)])
        _ = takeWork()
        #expect(serve(1) == ["10g"])
    }

    @Test func messagesAreKeptForAMemberThatIsBehind() throws {
        var history = GroupHistory()
        history.maximumCount = 1
        machine = Self.machine(keeping: history, slowByteLimit: 5 * 65)
        _ = join(1, from: .now)
        receive(1...10)
        machine.turnEnded(try #require(takeTurn()), blocked: [(1, 3)])
        _ = takeWork()
        receive(11...11)
        _ = takeTurn()
        #expect(serve(1) == ["7g", "8", "9", "10", "11"])
        // No member is behind any more.
        receive(12...12)
        _ = takeTurn()
        #expect(join(2, from: .earliest).position.offset == 11)
    }

    @Test func aBacklogIsBounded() throws {
        _ = join(1, from: .now)
        receive(1...1)
        let turn = try #require(takeTurn())
        let limit = UInt64(TestMachine.backlogLimit.count)
        receive(2...limit)
        #expect(!machine.hasBacklog)
        receive(limit + 1...limit + 10)
        #expect(machine.hasBacklog)
        #expect(machine.position.offset == limit + 1)
        #expect(takeWork() == nil)
        machine.turnEnded(turn, blocked: [])
        let work = try #require(takeWork())
        #expect(work.turn?.messages.count == Int(limit))
        #expect(work.readAfter == limit + 1)
        #expect(!machine.hasBacklog)
    }

    @Test func oneThatIsGoneGetsNothing() throws {
        for id in 1...3 { _ = join(id, from: .now) }
        machine.remove(1)
        machine.remove(1)
        #expect(takeWork()?.gone.count == 1)
        receive(1...1)
        let turn = try #require(takeTurn())
        #expect(turn.members.map(\.member.id).sorted() == [2, 3])
        // One member leaves in the middle of a turn.
        machine.remove(2)
        machine.turnEnded(turn, blocked: [(2, 1)])
        #expect(takeWork()?.gone.count == 1)
        #expect(next(2) == nil)
        #expect(machine.memberCount == 1)
    }

    @Test func oneThatIsGoneHasAPlace() throws {
        for id in 1...4 { _ = join(id, from: .now) }
        receive(1...3)
        let turn = try #require(takeTurn())
        // One member has got the whole turn, one could not take the second message, one misses some before the next.
        machine.missed(3)
        for id in 1...3 { machine.remove(id) }
        machine.turnEnded(turn, blocked: [(2, 2)])
        #expect(try #require(takeWork()).gone.sorted() == [1, 2, 3])
        #expect(takeLeft(1)?.position == GroupPosition(epoch: 1, offset: 3))
        #expect(takeLeft(2)?.position == GroupPosition(epoch: 1, offset: 1))
        #expect(takeLeft(3)?.followsGap == true)
        #expect(takeLeft(1) == nil)
        // And one was removed while it was served.
        receive(4...4)
        let next = try #require(takeTurn())
        machine.turnEnded(next, blocked: [(4, 4)])
        #expect(takeWork()?.served == [4])
        let (_, serving) = try #require(self.next(4))
        machine.remove(4)
        machine.served(4, serving, .sent)
        #expect(takeLeft(4)?.position == GroupPosition(epoch: 1, offset: 4))
    }

    /// It was a member until now, so no message counts as history for it.
    @Test func oneThatReturnsRecoversNothing() throws {
        receive(1...3)
        let position = GroupPosition(epoch: 1, offset: 1)
        let join = machine.join(TestMember(id: 1), from: .after(position), isReturning: true, now: Self.at(0))
        #expect(join == GroupJoin(position: position, isRecovered: true))
        #expect(takeWork()?.served == [1])
        let (_, serving) = try #require(next(1))
        #expect(serving.message.offset == 2)
        #expect(!serving.isRecovered && !serving.followsGap)
    }

    @Test func oneThatLeavesGetsWhatIsThere() throws {
        for id in 1...4 { _ = join(id, from: .now) }
        machine.leave(4)
        #expect(takeWork()?.gone.count == 1)
        receive(1...1)
        let turn = try #require(takeTurn())
        receive(2...2)
        machine.leave(1)
        machine.leave(2)
        receive(3...3)
        machine.turnEnded(turn, blocked: [(2, 1)])
        let work = try #require(takeWork())
        #expect(work.served == [2])
        #expect(Self.offsets(try #require(work.turn), of: 1) == [2])
        #expect(Self.offsets(try #require(work.turn), of: 3) == [2, 3])
        #expect(serve(2) == ["1", "2"])
        machine.turnEnded(try #require(work.turn), blocked: [])
        #expect(takeWork()?.gone.sorted() == [1, 2])
        #expect(machine.memberCount == 1)
    }

    @Test func aMemberThatHasMissedSomethingIsTold() throws {
        for id in 1...3 { _ = join(id, from: .now) }
        machine.missed(1)
        #expect(takeWork()?.served == [1])
        #expect(serve(1) == [])
        receive(1...1)
        let work = try #require(takeWork())
        #expect(work.served == [1])
        #expect(serve(1) == ["1g"])
        // In the middle of a turn, which continues.
        machine.missed(2)
        machine.turnEnded(try #require(work.turn), blocked: [])
        #expect(takeWork()?.served == [2])
        #expect(serve(2) == [])
        receive(2...2)
        #expect(takeWork()?.served == [2])
        #expect(serve(2) == ["2g"])
        #expect(serve(1) == [])
    }

    @Test func oneThatLeavesWaitsForNoNextMessage() {
        receive(1...1)
        _ = takeWork()
        _ = join(1, from: .after(.init(epoch: 9, offset: 9)))
        _ = takeWork()
        #expect(serve(1) == [])
        machine.leave(1)
        #expect(takeWork()?.gone == [1])
    }

    @Test func oneThatJoinsAgainInATurnIsServedBehindIt() throws {
        _ = join(1, from: .now)
        receive(1...2)
        let turn = try #require(takeTurn())
        machine.remove(1)
        _ = join(1, from: .now)
        receive(3...3)
        #expect(takeWork()?.served == [])
        machine.turnEnded(turn, blocked: [(1, 1)])
        #expect(takeWork()?.served == [1])
        #expect(serve(1) == ["3"])
    }

    @Test func unsentMessagesAreReportedWithTheNextOne() throws {
        receive(1...3)
        _ = join(1, from: .earliest)
        _ = takeWork()
        let (_, first) = try #require(next(1))
        machine.served(1, first, .lost)
        let (_, second) = try #require(next(1))
        #expect(second.message.offset == 2)
        #expect(second.followsGap)
        machine.served(1, second, .passedOver)
        #expect(serve(1) == ["3rg"])
    }
}
