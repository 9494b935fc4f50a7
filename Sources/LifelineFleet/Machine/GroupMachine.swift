package import LifelineCore

/// One node's copy of a group: its latest messages, as far as history keeps them, and the members at this node. It
/// decides which messages go to whom, and what has to be read from the engine.
///
/// Members are **live** or **behind**. All live ones get new messages together, in a turn. One that cannot take a message
/// at once falls behind: it is served by itself, message by message, from the copy, and is live again when it has caught
/// up. Nothing waits for it, and nothing is kept for it alone. Where the copy does not reach back to what it needs, its
/// next message says that others before it are lost.
package struct GroupMachine<Member: Identifiable & Sendable>: Sendable where Member.ID: Sendable {
    package typealias MemberID = Member.ID

    /// A message of the group.
    package struct Message: Sendable {
        package let offset: UInt64
        package let bytes: [UInt8]
        /// When it was pushed, by this node's clock.
        package let time: MonotonicTime
        /// Whether messages in front of it are missing in the copy.
        package fileprivate(set) var followsGap = false
    }

    /// A live member.
    package struct Live: Sendable {
        package let member: Member
        /// Messages up to this offset are not for it.
        fileprivate var skipThrough: UInt64
        /// Messages behind this offset are not for it: it leaves.
        fileprivate var through = UInt64.max

        package func wants(_ message: Message) -> Bool { message.offset > skipThrough && message.offset <= through }
    }

    /// A member that is served by itself.
    private struct Behind: Sendable {
        /// The offset of the last message that it has, or will never have.
        var cursor: UInt64
        /// Whether messages were lost to it since it got the last one.
        var followsGap = false
        /// Messages up to this offset were there before it joined.
        var recoveredThrough: UInt64 = 0
        /// It leaves behind the message of this offset.
        var through = UInt64.max
    }

    private enum Standing: Sendable {
        /// At this index of `live`.
        case live(Int)
        case behind(Member, Behind)
    }

    /// Messages that all live members get.
    package struct Turn: Sendable {
        package let epoch: UInt64
        package let messages: [Message]
        package let members: [Live]
    }

    /// A message for a member that is behind.
    package struct Serving: Sendable {
        package let epoch: UInt64
        package let message: Message
        package let isRecovered: Bool
        package let followsGap: Bool
    }

    /// What has become of that.
    package enum Served: Sendable {
        case sent
        /// It could not be sent: the member is told with its next message.
        case lost
        /// It is not meant for members that are behind.
        case passedOver
    }

    /// What the driver is to do.
    package struct Work: Sendable {
        /// Offer these to all, and tell `turnEnded`.
        package var turn: Turn?
        /// Serve these until `next` has nothing for them.
        package var served: [MemberID] = []
        /// Read what comes behind this offset, and tell `read` or `readFailed`.
        package var readAfter: UInt64?
        /// So many members have gone.
        package var goneCount = 0

        var isEmpty: Bool { turn == nil && served.isEmpty && readAfter == nil && goneCount == 0 }
    }

    /// So many messages at most, or bytes, wait for their turn. More are read from the engine later.
    package static var backlogLimit: (count: Int, byteCount: Int) { (1_024, 4 << 20) }

    /// What a message takes in memory beside its bytes, about.
    private static var overhead: Int { 64 }

    private let history: GroupHistory
    /// How much the copy takes beyond history while a member is behind.
    private let slowByteLimit: Int
    private var epoch: UInt64
    /// Contiguous, but for a gap in front of those that say so.
    private var messages = FIFO<Message>()
    private var byteCount = 0
    /// The offset in front of the first message of the copy.
    private var start: UInt64
    /// The offset of the last message of the copy.
    private var newest: UInt64
    /// How many bytes those have whose turn has not come.
    private var backlogByteCount = 0
    /// Turns have begun with all messages up to this offset.
    private var begun: UInt64
    /// The newest offset that is known of.
    private var known: UInt64
    /// The position of the newest message that was known of when the reading began that is under way; nil: none is.
    private var reading: GroupPosition?
    /// The first message of the turn that is under way; nil: none is.
    private var turnStart: UInt64?
    /// Whether messages are missing in front of the next one.
    private var nextFollowsGap = false
    private var standings: [MemberID: Standing] = [:]
    private var live: [Live] = []
    /// Those behind whom nobody serves: they wait for the next message.
    private var idle: Set<MemberID> = []
    /// The same of those that wait for the end of the turn: they may be in it.
    private var idleInTurn: Set<MemberID> = []
    /// Live ones that leave.
    private var leaving: Set<MemberID> = []
    private var goneCount = 0

    /// - Parameters:
    ///   - page: all that the engine has of the group.
    ///   - slowByteLimit: so many bytes are kept beyond history while a member is behind.
    package init(_ page: GroupPage, keeping history: GroupHistory, slowByteLimit: Int, now: MonotonicTime) {
        (self.history, self.slowByteLimit) = (history, slowByteLimit)
        epoch = page.newest.epoch
        start = page.messages.first.map { $0.offset - 1 } ?? page.newest.offset
        (newest, known, begun) = (start, start, start)
        read(page, now: now)
        begun = newest
        backlogByteCount = 0
    }

    /// Behind the last message of the copy.
    package var position: GroupPosition { GroupPosition(epoch: epoch, offset: newest) }

    /// How many members there are, with those that leave and have not got all.
    package var memberCount: Int { standings.count }

    package func contains(_ id: MemberID) -> Bool { through(id) == .max }

    /// The last offset that is for a member; nil: it is none.
    private func through(_ id: MemberID) -> UInt64? {
        switch standings[id] {
        case .live(let index)?: live[index].through
        case .behind(_, let behind)?: behind.through
        case nil: nil
        }
    }

    /// Whether those who push are to wait, as turns take longer than they do.
    package var hasBacklog: Bool {
        newest - begun >= UInt64(Self.backlogLimit.count) || backlogByteCount >= Self.backlogLimit.byteCount
    }

    // MARK: Members

    /// Adds a member. One that is there stays where it is.
    package mutating func join(_ member: Member, from start: GroupStart, now: MonotonicTime) -> GroupJoin {
        forgetOld(now: now)
        if contains(member.id) { return GroupJoin(position: position, isRecovered: true) }
        // It was about to leave.
        remove(member.id)
        switch start {
        case .now:
            add(member, Behind(cursor: newest))
        case .earliest:
            add(member, Behind(cursor: self.start, recoveredThrough: newest))
            return GroupJoin(position: GroupPosition(epoch: epoch, offset: self.start), isRecovered: true)
        case .after(let position) where position.epoch == epoch && position.offset >= self.start:
            // Another node may have told it of messages that this one does not have yet.
            known = max(known, position.offset)
            add(member, Behind(cursor: position.offset, recoveredThrough: newest))
            return GroupJoin(position: position, isRecovered: true)
        case .after:
            add(member, Behind(cursor: newest, followsGap: true))
            return GroupJoin(position: position, isRecovered: false)
        }
        return GroupJoin(position: position, isRecovered: true)
    }

    private mutating func add(_ member: Member, _ behind: Behind) {
        if behind.cursor >= newest, !behind.followsGap, turnStart == nil {
            addLive(member, after: behind.cursor)
        } else {
            standings[member.id] = .behind(member, behind)
            setIdle(member.id)
        }
    }

    private mutating func addLive(_ member: Member, after offset: UInt64) {
        standings[member.id] = .live(live.count)
        live.append(Live(member: member, skipThrough: offset))
    }

    /// A member waits for somebody to serve it. The turn that is under way may be with it yet, though it has left since.
    private mutating func setIdle(_ id: MemberID) {
        if turnStart == nil { idle.insert(id) } else { idleInTurn.insert(id) }
    }

    /// A member leaves once it has got the messages that are there.
    package mutating func leave(_ id: MemberID) {
        switch standings[id] {
        case .live(let index)?:
            live[index].through = min(live[index].through, newest)
            leaving.insert(id)
            removeThoseThatHaveAll()
        case .behind(let member, var behind)?:
            behind.through = min(behind.through, newest)
            standings[id] = .behind(member, behind)
            // Who waits for the next message waits for none.
            if behind.cursor >= behind.through { remove(id) }
        case nil:
            break
        }
    }

    /// A member is gone.
    package mutating func remove(_ id: MemberID) {
        idle.remove(id)
        idleInTurn.remove(id)
        leaving.remove(id)
        guard let standing = standings.removeValue(forKey: id) else { return }
        goneCount += 1
        if case .live(let index) = standing { removeLive(at: index) }
    }

    private mutating func removeThoseThatHaveAll() {
        guard turnStart == nil else { return }
        for id in leaving where through(id) ?? 0 <= begun { remove(id) }
    }

    private mutating func removeLive(at index: Int) {
        live.swapAt(index, live.count - 1)
        live.removeLast()
        if index < live.count { standings[live[index].member.id] = .live(index) }
    }

    // MARK: News of the engine

    /// The engine has told of a message. It may tell late, twice, and in any order.
    package mutating func received(_ bytes: [UInt8], at position: GroupPosition, now: MonotonicTime) {
        guard noted(position), position.offset == newest + 1, !hasBacklog else { return }
        append(Message(offset: position.offset, bytes: bytes, time: now), now: now)
    }

    /// A message of this position is there. Returns whether it is new.
    @discardableResult
    package mutating func noted(_ position: GroupPosition) -> Bool {
        guard position.epoch >= epoch else { return false }
        if position.epoch > epoch { begin(position.epoch) }
        known = max(known, position.offset)
        return position.offset > newest
    }

    /// The history was lost. Whatever members do not have of it is lost to them.
    private mutating func begin(_ epoch: UInt64) {
        self.epoch = epoch
        clear(through: 0)
        (known, nextFollowsGap) = (0, true)
        for (id, standing) in standings {
            guard case .behind(let member, var behind) = standing else { continue }
            (behind.cursor, behind.followsGap, behind.recoveredThrough) = (0, true, 0)
            standings[id] = .behind(member, behind)
            if behind.through < .max { remove(id) }
        }
        for index in live.indices { live[index].skipThrough = 0 }
        for id in leaving { remove(id) }
    }

    private mutating func clear(through offset: UInt64) {
        _ = messages.removeAll()
        (byteCount, backlogByteCount) = (0, 0)
        (start, newest, begun) = (offset, offset, offset)
        turnStart = turnStart.map { _ in offset + 1 }
    }

    /// The engine has answered with what it has behind the offset that was asked for.
    package mutating func read(_ page: GroupPage, now: MonotonicTime) {
        let before = reading ?? position
        reading = nil
        // Offsets of another epoch than was asked for mean something else.
        guard page.newest.epoch == epoch, before.epoch == epoch else {
            noted(page.newest)
            return
        }
        for message in page.messages where message.offset > newest {
            if message.offset > newest + 1 { skip(through: message.offset - 1) }
            append(Message(offset: message.offset, bytes: message.bytes, time: now - message.age), now: now)
        }
        // What is too old was there, and is gone.
        if page.newest.offset > newest { skip(through: page.newest.offset) }
        // What was said to be there before and is not will never be.
        if known <= before.offset { known = newest }
    }

    package mutating func readFailed() { reading = nil }

    /// Messages up to an offset are lost.
    private mutating func skip(through offset: UInt64) {
        if begun < newest {
            // Those before it have their turn yet: they go on in front of the gap.
            newest = offset
        } else {
            clear(through: offset)
        }
        nextFollowsGap = true
    }

    private mutating func append(_ message: Message, now: MonotonicTime) {
        var message = message
        message.followsGap = nextFollowsGap
        nextFollowsGap = false
        messages.append(message)
        newest = message.offset
        known = max(known, newest)
        byteCount += message.bytes.count
        backlogByteCount += message.bytes.count
        forgetOld(now: now)
    }

    /// Forgets what history does not keep. Messages whose turn has not come stay, and for a while those that members
    /// need who are behind.
    private mutating func forgetOld(now: MonotonicTime) {
        let limit = live.count < standings.count ? slowByteLimit : 0
        while let first = messages.first, first.offset < turnStart ?? begun + 1,
            messages.count > history.maximumCount || byteCount > history.maximumByteCount
                || now - first.time > history.maximumAge,
            byteCount + messages.count * Self.overhead > limit
        {
            byteCount -= messages.removeFirst().bytes.count
            start = messages.first.map { $0.offset - 1 } ?? newest
        }
    }

    // MARK: Work

    /// Takes what there is to do; nil when there is nothing.
    package mutating func takeWork(now: MonotonicTime) -> Work? {
        var work = Work()
        if begun < newest, turnStart == nil {
            let due = messages(after: begun)
            if !due.isEmpty, !live.isEmpty {
                work.turn = Turn(epoch: epoch, messages: due, members: live)
                turnStart = begun + 1
            }
            begun = newest
            backlogByteCount = 0
            forgetOld(now: now)
            removeThoseThatHaveAll()
        }
        for id in idle {
            guard case .behind(_, let behind)? = standings[id] else { continue }
            if behind.cursor < newest || !behind.followsGap { work.served.append(id) }
        }
        for id in work.served { idle.remove(id) }
        if known > newest, reading == nil, !hasBacklog {
            reading = GroupPosition(epoch: epoch, offset: known)
            work.readAfter = newest
        }
        (work.goneCount, goneCount) = (goneCount, 0)
        return work.isEmpty ? nil : work
    }

    /// Everybody was offered the messages of a turn.
    ///
    /// - Parameter blocked: who could not take one at once, and its offset.
    package mutating func turnEnded(_ turn: Turn, blocked: [(id: MemberID, offset: UInt64)]) {
        turnStart = nil
        idle.formUnion(idleInTurn)
        idleInTurn = []
        for (id, offset) in blocked {
            guard case .live(let index)? = standings[id] else { continue }
            let present = live[index]
            removeLive(at: index)
            leaving.remove(id)
            // What it lacks of an old epoch is lost to it.
            let isPresent = turn.epoch == epoch
            let behind = Behind(cursor: isPresent ? offset - 1 : 0, followsGap: !isPresent, through: present.through)
            standings[id] = .behind(present.member, behind)
            idle.insert(id)
        }
        removeThoseThatHaveAll()
    }

    /// The next message for a member that is served; nil: it is live again, waits for the next message, or has left.
    package mutating func next(for id: MemberID, now: MonotonicTime) -> (Member, Serving)? {
        guard case .behind(let member, var behind)? = standings[id] else { return nil }
        forgetOld(now: now)
        if behind.cursor < start { (behind.cursor, behind.followsGap) = (start, true) }
        defer { if case .behind? = standings[id] { standings[id] = .behind(member, behind) } }
        guard behind.cursor < behind.through else {
            remove(id)
            return nil
        }
        guard let message = messages(after: behind.cursor, limit: 1).first, message.offset <= behind.through else {
            if behind.through < .max {
                remove(id)
            } else if behind.followsGap {
                setIdle(id)
            } else {
                addLive(member, after: behind.cursor)
            }
            return nil
        }
        let serving = Serving(
            epoch: epoch,
            message: message,
            isRecovered: message.offset <= behind.recoveredThrough,
            followsGap: behind.followsGap || message.followsGap
        )
        return (member, serving)
    }

    /// The messages of the copy behind an offset.
    private func messages(after offset: UInt64, limit: Int = .max) -> [Message] {
        var numbers = messages.numbers
        // Offsets ascend, with gaps: a binary search.
        while let middle = numbers.isEmpty ? nil : numbers.lowerBound + UInt64(numbers.count / 2) {
            numbers =
                messages[middle].offset > offset
                ? numbers.lowerBound..<middle : middle + 1..<numbers.upperBound
        }
        return (numbers.lowerBound..<messages.nextNumber).prefix(limit).map { messages[$0] }
    }

    /// A member was served.
    package mutating func served(_ id: MemberID, _ serving: Serving, _ result: Served) {
        guard case .behind(let member, var behind)? = standings[id], serving.epoch == epoch else { return }
        behind.cursor = max(behind.cursor, serving.message.offset)
        switch result {
        case .sent: behind.followsGap = false
        case .lost: behind.followsGap = true
        case .passedOver: behind.followsGap = serving.followsGap
        }
        standings[id] = .behind(member, behind)
    }
}
