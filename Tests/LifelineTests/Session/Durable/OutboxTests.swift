import LifelineCore
import Testing

@testable import Lifeline

@Suite struct OutboxTests {
    private let now = MonotonicTime(nanoseconds: 0)

    private func message(_ waiter: UInt64, byteCount: Int = 10, expiringAt second: Int? = nil) -> Outbox.Message {
        Outbox.Message(
            waiter: waiter,
            isObserved: false,
            method: "t.T/\(waiter % 2)",
            fields: [],
            payload: [UInt8](repeating: UInt8(waiter % 256), count: byteCount),
            deadline: second.map { now + .seconds($0) }
        )
    }

    /// An outbox in a class, so that the macros of tests can change it.
    private final class Box {
        var value: Outbox

        init(_ value: Outbox) { self.value = value }

        func takeGroup(_ time: StoreTime = .zero) -> SessionStoreGroup? { value.takeGroup(time) }
        func takeLastGroup() -> SessionStoreGroup? { value.takeGroup(isLast: true, .zero) }
        func withdrawAll() -> [Outbox.Message] { value.withdrawAll() }
        func groupStored() -> [Outbox.Message] { value.groupStored() }
        func groupFailed() -> [Outbox.Message] { value.groupFailed() }
        func takeReady() -> Outbox.Message? { value.takeReady() }
        func withdraw(_ waiter: UInt64) -> Outbox.Message? { value.withdraw(waiter) }
        func takeReading() -> UInt64? { value.takeReading() }
        func read(_ groups: [SessionStoreGroup], _ time: StoreTime = .zero) -> Bool { value.read(groups, time) }
        func takeExpired(_ now: MonotonicTime) -> UInt64? { value.takeExpired(now: now)?.waiter }
        func takeUntoldFloor() -> UInt64? { value.takeUntoldFloor() }
        func takeRemovable() -> [UInt64] { value.takeRemovable() }
    }

    private func outbox(_ content: SessionStoreContent = SessionStoreContent(), byteLimit: Int = .max) -> Box {
        Box(Outbox(content, byteLimit: byteLimit))
    }

    private func reply(_ waiter: UInt64) -> Outbox.Message {
        Outbox.Message(
            waiter: waiter,
            isObserved: false,
            method: "t.T/1",
            fields: [1],
            payload: [2],
            answers: DurableInbound.Mark(sender: SessionStoreID(SessionID(1, 2)), number: waiter)
        )
    }

    /// When its session ends, messages are given up, but replies are not, because their calls are processed.
    @Test func repliesAreLeft() throws {
        let outbox = outbox(byteLimit: 1)
        outbox.value.append(message(1))
        outbox.value.append(reply(2))
        #expect(outbox.value.hasUnstoredReplies)
        #expect(outbox.withdrawAll().map(\.waiter) == [1])
        let group = try #require(outbox.takeGroup())
        #expect(group.count == 1 && outbox.value.answered.map(\.number) == [2])
        #expect(outbox.value.hasUnstoredReplies)
        #expect(outbox.groupStored().map(\.waiter) == [2])
        #expect(!outbox.value.hasUnstoredReplies)
        // The store is full.
        outbox.value.append(reply(3))
        #expect(outbox.takeGroup() == nil)
        #expect(outbox.takeLastGroup() != nil)
        outbox.value.append(reply(4))
        #expect(outbox.groupFailed().map(\.answers?.number) == [3])
        outbox.value.withdrawReplies()
        #expect(!outbox.value.hasUnstoredReplies)
    }

    @Test func aReplyIsReadFromItsMark() {
        let call = DurableInbound.Mark(sender: SessionStoreID(SessionID(1, 2)), number: 2)
        let read = Outbox.Message(reply: reply(2).replyBytes, to: call, waiter: 2)
        #expect(read == reply(2))
        #expect(Outbox.Message(reply: [1], to: call, waiter: 2) == nil)
    }

    @Test func muchThatWaitsIsTold() {
        let outbox = outbox()
        outbox.value.append(message(1, byteCount: Outbox.groupByteCount))
        #expect(outbox.value.isBehind)
        #expect(outbox.withdraw(1) != nil && !outbox.value.isBehind)
    }

    @Test func messagesGoOnWhenTheirGroupIsStored() throws {
        let outbox = outbox()
        for waiter in 1...3 as ClosedRange<UInt64> { outbox.value.append(message(waiter)) }
        #expect(outbox.value.firstReady == nil)
        let group = try #require(outbox.takeGroup())
        #expect(group.first == 1 && group.count == 3)
        #expect(outbox.takeGroup() == nil, "one at a time")
        outbox.value.append(message(4))
        #expect(outbox.groupStored().map(\.waiter) == [1, 2, 3])
        #expect(outbox.takeReady()?.number == 1 && outbox.takeReady()?.number == 2)
        #expect(outbox.takeGroup()?.first == 4)
        #expect(!outbox.value.isEmpty && outbox.value.floor == 0)
    }

    @Test func aGroupIsRemovedWhenAllOfItIsProcessed() throws {
        let outbox = outbox()
        for waiter in 1...2 as ClosedRange<UInt64> { outbox.value.append(message(waiter)) }
        _ = outbox.takeGroup()
        _ = outbox.groupStored()
        while outbox.takeReady() != nil {}
        outbox.value.finished(2, now: now)
        #expect(outbox.value.nextDeadline == nil && outbox.takeRemovable().isEmpty)
        outbox.value.finished(1, now: now)
        #expect(
            outbox.value.nextDeadline == now + Outbox.removalDelay && outbox.value.isEmpty && outbox.value.floor == 2
        )
        #expect(outbox.takeRemovable() == [1] && outbox.value.nextDeadline == nil)
        outbox.value.removalFailed([1], now: now)
        #expect(outbox.takeRemovable() == [1])
    }

    @Test func numbersOfAGroupThatFailedAreNotGivenAgain() {
        let outbox = outbox()
        outbox.value.append(message(1))
        _ = outbox.takeGroup()
        #expect(outbox.groupFailed().map(\.waiter) == [1])
        outbox.value.append(message(2))
        #expect(outbox.takeGroup()?.first == 2 && outbox.groupStored().count == 1)
        #expect(outbox.takeReady()?.number == 2 && outbox.value.floor == 1)
    }

    @Test func aMessageIsWithdrawnUntilItIsStored() {
        let outbox = outbox()
        for waiter in 1...2 as ClosedRange<UInt64> { outbox.value.append(message(waiter)) }
        #expect(outbox.withdraw(1)?.waiter == 1 && outbox.withdraw(1) == nil)
        _ = outbox.takeGroup()
        #expect(outbox.withdraw(2) == nil)
        #expect(outbox.groupStored().map(\.number) == [1])
    }

    @Test func aFullStoreTakesNothing() {
        let outbox = outbox(byteLimit: 10)
        outbox.value.append(message(1))
        #expect(outbox.takeGroup() != nil)
        _ = outbox.groupStored()
        outbox.value.append(message(2))
        #expect(outbox.takeGroup() == nil)
        _ = outbox.takeReady()
        outbox.value.finished(1, now: now)
        #expect(outbox.takeGroup()?.first == 2)
    }

    /// A store in memory that drives an outbox.
    private struct Store {
        var groups: [SessionStoreGroup] = []

        func groups(from number: UInt64) -> [SessionStoreGroup] {
            var byteCount = 0
            return groups.filter { $0.first >= number }.prefix { group in
                defer { byteCount += group.bytes.count }
                return byteCount < Outbox.pageByteCount
            }
        }
    }

    @Test func keptMessagesAreReadInPages() throws {
        // 4 MiB in groups of 64 KiB.
        var store = Store()
        let first = outbox()
        for waiter in 1...64 as ClosedRange<UInt64> {
            first.value.append(message(waiter, byteCount: 64 << 10))
            store.groups.append(try #require(first.takeGroup()))
            _ = first.groupStored()
            // Messages that do not fit into lanes stay in the store.
            #expect(first.value.readyCount <= 9)
        }
        let content = SessionStoreContent(first: 1, next: 65, byteCount: 64 * 64 << 10)
        let outbox = outbox(content)
        #expect(!outbox.value.isEmpty && outbox.value.floor == 0 && outbox.value.firstReady == nil)
        var numbers: [UInt64] = []
        while !outbox.value.isEmpty {
            if let number = outbox.takeReading() {
                #expect(outbox.takeReading() == nil, "one at a time")
                #expect(outbox.read(store.groups(from: number)))
            }
            let message = try #require(outbox.takeReady())
            #expect(message.payload.count == 64 << 10 && message.waiter == 0)
            numbers.append(message.number)
            outbox.value.finished(message.number, now: now)
        }
        #expect(numbers == Array(1...64))
        #expect(outbox.takeRemovable() == numbers)
    }

    /// A sender that waits until a message is processed is notified even if the message was only in the store.
    @Test func waitersAreKeptForStoredMessages() throws {
        let outbox = outbox()
        var group: SessionStoreGroup?
        // More than the outbox keeps for a lane.
        for waiter in 1...3 as ClosedRange<UInt64> {
            outbox.value.append(
                Outbox.Message(
                    waiter: waiter,
                    isObserved: true,
                    method: "t.T/A",
                    fields: [],
                    payload: [UInt8](repeating: 1, count: 400 << 10)
                )
            )
            group = outbox.takeGroup()
            _ = outbox.groupStored()
        }
        #expect(outbox.value.readyCount == 2)
        for number in 1...2 as ClosedRange<UInt64> {
            #expect(outbox.takeReady()?.waiter == number)
            outbox.value.finished(number, now: now)
        }
        #expect(outbox.takeReading() == 3)
        #expect(outbox.read([try #require(group)]))
        let message = try #require(outbox.takeReady())
        #expect(message.waiter == 3 && message.isObserved)
    }

    @Test func damagedGroupsAreNotTaken() throws {
        let whole = outbox()
        whole.value.append(message(1))
        let group = try #require(whole.takeGroup())
        let damaged = [
            SessionStoreGroup(first: 1, count: 2, bytes: group.bytes, added: 0),
            SessionStoreGroup(first: 1, count: 1, bytes: Array(group.bytes.dropLast()), added: 0),
            SessionStoreGroup(first: 1, count: 0, bytes: [], added: 0),
            SessionStoreGroup(first: 1, count: 1, bytes: [0x08, 1] + group.bytes, added: 0),
            // A message without a method name.
            SessionStoreGroup(first: 1, count: 1, bytes: [0x0A, 2, 0x1A, 0], added: 0),
        ]
        for group in damaged {
            let outbox = outbox(SessionStoreContent(first: 1, next: 2))
            #expect(outbox.takeReading() == 1)
            #expect(!outbox.read([group]), "\(group)")
            #expect(outbox.value.firstReady == nil)
            // Other messages continue.
            outbox.value.giveUpReading()
            outbox.value.append(message(2))
            _ = outbox.takeGroup()
            _ = outbox.groupStored()
            #expect(outbox.takeReady()?.number == 2 && outbox.value.floor == 0)
        }
    }

    @Test func messagesExpireBeforeTheyAreStored() {
        let outbox = outbox()
        outbox.value.append(message(1, expiringAt: 2))
        outbox.value.append(message(2, expiringAt: 1))
        outbox.value.append(message(3))
        #expect(outbox.value.nextExpiry == now + .seconds(1))
        #expect(outbox.takeExpired(now) == nil)
        #expect(outbox.takeExpired(now + .seconds(1)) == 2)
        #expect(outbox.withdraw(1) != nil && outbox.value.nextExpiry == nil)
        #expect(outbox.takeGroup()?.count == 1)
    }

    /// The group leaves the store with its last message, and the peer learns that the numbers will not come.
    @Test func storedMessagesExpire() {
        let outbox = outbox()
        for waiter in 1...2 as ClosedRange<UInt64> { outbox.value.append(message(waiter, expiringAt: 1)) }
        _ = outbox.takeGroup()
        _ = outbox.groupStored()
        outbox.value.append(message(3))
        _ = outbox.takeGroup()
        _ = outbox.groupStored()
        #expect(outbox.takeReady()?.number == 1 && outbox.takeUntoldFloor() == nil)
        #expect(outbox.value.nextExpiry == now + .seconds(1))
        #expect(outbox.takeExpired(now + .seconds(1)) == 2)
        #expect(outbox.value.nextExpiry == nil && outbox.takeRemovable().isEmpty)
        // The first message was sent.
        #expect(outbox.takeUntoldFloor() == nil)
        outbox.value.finished(1, now: now)
        #expect(outbox.takeRemovable() == [1])
        #expect(outbox.takeReady()?.number == 3 && outbox.takeUntoldFloor() == 2 && outbox.takeUntoldFloor() == nil)
    }

    /// Messages of an earlier process expire by date, and never later than their full time.
    @Test(arguments: [
        (passed: 0, isExpired: false), (999, false), (1_000, true), (Int64.max, true), (-5_000, false),
    ])
    func aStoredDeadlineIsADate(passed: Int64, isExpired: Bool) throws {
        let earlier = outbox()
        earlier.value.append(message(1, expiringAt: 3))
        let group = try #require(earlier.takeGroup(StoreTime(now: now + .seconds(2), date: 10_000)))
        #expect(group.added == 10_000)
        let outbox = outbox(SessionStoreContent(first: 1, next: 2, byteCount: group.bytes.count))
        #expect(outbox.takeReading() == 1 && outbox.value.mayBeSentBefore(1))
        let date = passed == .max ? .max : 10_000 + passed
        #expect(outbox.read([group], StoreTime(now: now, date: date)))
        let left = Duration.milliseconds(1_000 - min(max(passed, 0), 1_000))
        #expect(outbox.value.nextExpiry == now + left)
        #expect((outbox.takeExpired(now) != nil) == isExpired)
        #expect(outbox.takeRemovable() == (isExpired ? [1] : []) && outbox.value.isEmpty == isExpired)
    }

    /// The clock is set back, within the process and across a restart.
    @Test func theDateOfAStoreDoesNotGoBack() throws {
        let earlier = outbox()
        earlier.value.append(message(1, expiringAt: 3))
        earlier.value.append(message(2))
        let group = try #require(earlier.takeGroup(StoreTime(now: now, date: 10_000)))
        #expect(earlier.value.takeDate(StoreTime(now: now, date: 10_000), isAdding: true) == 10_000)
        _ = earlier.groupStored()
        let later = StoreTime(now: now + .seconds(3), date: 5_000)
        #expect(earlier.value.takeDate(later, isAdding: false) == nil)
        #expect(earlier.takeExpired(later.now) == 1 && earlier.value.isDateDue)
        #expect(earlier.value.takeDate(later, isAdding: false) == 13_000)
        let content = SessionStoreContent(first: 1, next: 3, byteCount: group.bytes.count, date: 13_000)
        let outbox = outbox(content)
        #expect(outbox.takeReading() == 1)
        #expect(outbox.read([group], StoreTime(now: now, date: 1)))
        #expect(outbox.takeExpired(now) != nil && outbox.takeReady()?.number == 2)
    }

    @Test func soManyAreUnderWayAtMost() throws {
        let outbox = outbox()
        var taken: UInt64 = 0
        for waiter in 1...UInt64(Outbox.openCount) + 10 {
            outbox.value.append(message(waiter, byteCount: 0))
            guard waiter % 1_000 == 0 || waiter > Outbox.openCount else { continue }
            _ = outbox.takeGroup()
            _ = outbox.groupStored()
            while let message = outbox.takeReady() { taken = message.number }
        }
        #expect(taken == Outbox.openCount)
        for number in 1...1_000 as ClosedRange<UInt64> { outbox.value.finished(number, now: now) }
        #expect(outbox.takeReady()?.number == taken + 1)
    }
}

extension Outbox {
    /// The number of messages that are ready for a lane.
    fileprivate var readyCount: Int {
        var (copy, count) = (self, 0)
        while copy.takeReady() != nil { count += 1 }
        return count
    }
}

extension StoreTime {
    fileprivate static let zero = StoreTime(now: MonotonicTime(nanoseconds: 0), date: 0)
}
