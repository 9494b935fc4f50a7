package import LifelineCore

/// One node's copy of a group: its latest messages, as far as history keeps them, and the members at this node. It
/// decides which messages go to whom, and what has to be read from the engine.
///
/// Members are **live** or **behind**. All live ones get new messages together, in a turn. One that cannot take a message
/// at once falls behind: it is served by itself, message by message, from the copy, and is live again when it has caught
/// up. Nothing waits for it, and nothing is kept for it alone. Where the copy does not reach back to what it needs, its
/// next message says that others before it are lost.
package struct GroupMachine<Member: Identifiable & Sendable, Content: Sendable>: Sendable where Member.ID: Sendable {
    package typealias MemberID = Member.ID

    /// What the machine has to know of a message.
    package struct Decoded: Sendable {
        package let content: Content
        /// Of messages with one key, members that are behind get only the newest; nil: it stands for itself.
        package let key: String?

        package init(_ content: Content, key: String? = nil) { (self.content, self.key) = (content, key) }
    }

    /// A message of the group.
    package struct Message: Sendable {
        package let offset: UInt64
        package let content: Content
        /// When it was pushed, by this node's clock.
        package let time: MonotonicTime
        /// Whether messages before it are missing in the copy.
        package fileprivate(set) var followsGap = false
        fileprivate let key: String?
        fileprivate let byteCount: Int
    }

    /// A live member.
    package struct Live: Sendable {
        package let member: Member
        /// Messages up to this offset are not for it.
        fileprivate var skipThrough: UInt64
        /// It leaves behind the message of this offset.
        fileprivate var lastOffset = UInt64.max

        package func wants(_ message: Message) -> Bool { message.offset > skipThrough && message.offset <= lastOffset }
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
        var lastOffset = UInt64.max
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

    /// The result of a serving.
    package enum Served: Sendable {
        case sent
        /// It could not be sent: the member is told with its next message.
        case lost
        /// It is not meant for members that are behind.
        case passedOver
    }

    /// Where a member is that is none any more.
    package struct Left: Sendable, Equatable {
        /// Behind which message it would get the next one.
        package var position: GroupPosition
        /// Whether messages before that one are lost to it, and it was not told.
        package var followsGap: Bool
        /// Whether the turn is still with it.
        fileprivate var isInTurn: Bool
    }

    /// What the driver is to do.
    package struct Work: Sendable {
        /// Offer these to all, and tell `turnEnded`.
        package var turn: Turn?
        /// Serve these until `next` has nothing for them.
        package var served: [MemberID] = []
        /// Read what comes behind this offset, and tell `read` or `readFailed`.
        package var readAfter: UInt64?
        /// These are no members any more.
        package var gone: [MemberID] = []

        var isEmpty: Bool { turn == nil && served.isEmpty && readAfter == nil && gone.isEmpty }
    }

    /// So many messages at most, or bytes, wait for their turn. More are read from the engine later.
    package static var backlogLimit: (count: Int, byteCount: Int) { (1_024, 4 << 20) }
    /// What a message takes in memory beside its bytes, about.
    private static var overhead: Int { 64 }

    private let history: GroupHistory
    /// How much the copy may take while a member is behind, where history keeps less.
    private let slowByteLimit: Int
    private let decode: @Sendable ([UInt8]) -> Decoded?
    private var epoch: UInt64
    /// Offsets ascend by one, but for a gap in front of those that say so.
    private var messages = FIFO<Message>()
    private var byteCount = 0
    /// The offset of the newest message in the copy with each key.
    private var newestByKey: [String: UInt64] = [:]
    /// The offset in front of the first message of the copy.
    private var offsetBeforeCopy: UInt64
    /// The offset of the last message of the copy.
    private var newest: UInt64
    /// How many bytes those have whose turn has not come.
    private var backlogByteCount = 0
    /// Turns have begun with all messages up to this offset.
    private var lastOffsetInTurns: UInt64
    /// Whether the engine may have messages that the copy has not.
    private var wantsRead = false
    /// The position behind which the engine is being asked; nil: it is not asked.
    private var reading: GroupPosition?
    /// The offset of the first message of the turn that is under way; nil: none is.
    private var turnStart: UInt64?
    /// Whether messages are missing in front of the next one.
    private var nextFollowsGap = false
    private var standings: [MemberID: Standing] = [:]
    private var live: [Live] = []
    /// Members that are behind and have no serve task: something is there for them.
    private var due: Set<MemberID> = []
    /// The same of those that wait for the next message.
    private var waiting: Set<MemberID> = []
    /// The same of those that wait for the end of the turn, which may still send to them.
    private var dueAfterTurn: Set<MemberID> = []
    /// Live ones to which messages are lost, and that may be in the turn.
    private var missedInTurn: Set<MemberID> = []
    /// Live ones that leave.
    private var leaving: Set<MemberID> = []
    private var gone: [MemberID] = []
    /// The places of members that are gone, until the driver takes them.
    private var left: [MemberID: Left] = [:]

    /// - Parameters:
    ///   - page: all that the engine has of the group.
    ///   - slowByteLimit: how much the copy may take while a member is behind, where history keeps less.
    ///   - decode: nil for what is no message.
    package init(
        _ page: GroupPage,
        keeping history: GroupHistory,
        slowByteLimit: Int,
        now: MonotonicTime,
        decode: @escaping @Sendable ([UInt8]) -> Decoded?
    ) {
        (self.history, self.slowByteLimit, self.decode) = (history, slowByteLimit, decode)
        epoch = page.newest.epoch
        offsetBeforeCopy = page.messages.first.map { max($0.offset, 1) - 1 } ?? page.newest.offset
        (newest, lastOffsetInTurns) = (offsetBeforeCopy, offsetBeforeCopy)
        take(page, now: now)
        lastOffsetInTurns = newest
        backlogByteCount = 0
        // Nobody is here who could miss something.
        nextFollowsGap = false
    }

    /// Behind the last message of the copy.
    package var position: GroupPosition { GroupPosition(epoch: epoch, offset: newest) }

    /// How many members there are, with those that leave and have not got all.
    package var memberCount: Int { standings.count }

    /// Whether those who push are to wait, as turns take longer than they do.
    package var hasBacklog: Bool {
        newest - lastOffsetInTurns >= UInt64(Self.backlogLimit.count)
            || backlogByteCount >= Self.backlogLimit.byteCount
    }

    // MARK: Members

    /// Adds a member, which is none yet.
    ///
    /// - Parameter isReturning: whether it was one until now, at another node, so that nothing is recovered history to it.
    package mutating func join(
        _ member: Member,
        from start: GroupStart,
        isReturning: Bool = false,
        now: MonotonicTime
    ) -> GroupJoin {
        precondition(standings[member.id] == nil, "a member joins twice")
        forgetOld(now: now)
        switch start {
        case .now:
            add(member, Behind(cursor: newest))
            return GroupJoin(position: position, isRecovered: true)
        case .earliest:
            add(member, Behind(cursor: offsetBeforeCopy, recoveredThrough: newest))
            return GroupJoin(position: GroupPosition(epoch: epoch, offset: offsetBeforeCopy), isRecovered: true)
        case .after(let position) where covers(position):
            add(member, Behind(cursor: position.offset, recoveredThrough: isReturning ? 0 : newest))
            return GroupJoin(position: position, isRecovered: true)
        case .after:
            add(member, Behind(cursor: newest, followsGap: true))
            return GroupJoin(position: position, isRecovered: false)
        }
    }

    /// Whether the copy has all that comes behind a position.
    package func covers(_ position: GroupPosition) -> Bool {
        position.epoch == epoch && position.offset >= offsetBeforeCopy && position.offset <= newest
    }

    /// Behind which message a member gets the next one; nil where it is none.
    package func position(of id: MemberID) -> GroupPosition? {
        switch standings[id] {
        case .live(let index)?:
            GroupPosition(
                epoch: epoch,
                offset: max(live[index].skipThrough, turnStart.map { $0 - 1 } ?? lastOffsetInTurns)
            )
        case .behind(_, let behind)?: GroupPosition(epoch: epoch, offset: behind.cursor)
        case nil: nil
        }
    }

    private mutating func add(_ member: Member, _ behind: Behind) {
        if behind.cursor >= newest, !behind.followsGap, turnStart == nil {
            addLive(member, after: behind.cursor)
        } else {
            standings[member.id] = .behind(member, behind)
            // The turn may be with it yet, of a time before it had left.
            if turnStart == nil { due.insert(member.id) } else { dueAfterTurn.insert(member.id) }
        }
    }

    private mutating func addLive(_ member: Member, after offset: UInt64) {
        standings[member.id] = .live(live.count)
        live.append(Live(member: member, skipThrough: offset))
    }

    /// A member leaves once it has got the messages that are there.
    package mutating func leave(_ id: MemberID) {
        switch standings[id] {
        case .live(let index)?:
            live[index].lastOffset = min(live[index].lastOffset, newest)
            leaving.insert(id)
            removeThoseThatHaveAll()
        case .behind(let member, var behind)?:
            behind.lastOffset = min(behind.lastOffset, newest)
            standings[id] = .behind(member, behind)
            // Nothing is there for those who wait for the next message.
            if waiting.contains(id) || behind.cursor >= behind.lastOffset { remove(id) }
        case nil:
            break
        }
    }

    /// Messages are lost to a member: it is told with its next one, or where a turn is under way, with one of the next.
    package mutating func missed(_ id: MemberID) {
        switch standings[id] {
        case .live(let index)?:
            guard turnStart == nil else {
                missedInTurn.insert(id)
                return
            }
            let present = live[index]
            removeLive(at: index)
            leaving.remove(id)
            let cursor = max(present.skipThrough, lastOffsetInTurns)
            standings[id] = .behind(
                present.member,
                Behind(cursor: cursor, followsGap: true, lastOffset: present.lastOffset)
            )
            due.insert(id)
        case .behind(let member, var behind)?:
            behind.followsGap = true
            standings[id] = .behind(member, behind)
        case nil:
            break
        }
    }

    /// A member is gone.
    package mutating func remove(_ id: MemberID) {
        guard let standing = standings.removeValue(forKey: id) else { return }
        switch standing {
        case .live(let index):
            let offset = max(live[index].skipThrough, turnStart.map { $0 - 1 } ?? lastOffsetInTurns)
            left[id] = Left(
                position: GroupPosition(epoch: epoch, offset: offset),
                followsGap: missedInTurn.contains(id),
                isInTurn: turnStart != nil
            )
        case .behind(_, let behind):
            left[id] = Left(
                position: GroupPosition(epoch: epoch, offset: behind.cursor),
                followsGap: behind.followsGap,
                isInTurn: false
            )
        }
        due.remove(id)
        waiting.remove(id)
        dueAfterTurn.remove(id)
        leaving.remove(id)
        missedInTurn.remove(id)
        gone.append(id)
        if case .live(let index) = standing { removeLive(at: index) }
    }

    /// Takes where a member is that is gone, once nothing is sent to it any more.
    package mutating func takeLeft(_ id: MemberID) -> Left? { left.removeValue(forKey: id) }

    private mutating func removeLive(at index: Int) {
        live.swapAt(index, live.count - 1)
        live.removeLast()
        if index < live.count { standings[live[index].member.id] = .live(index) }
    }

    private mutating func removeThoseThatHaveAll() {
        guard turnStart == nil, !leaving.isEmpty else { return }
        for id in leaving {
            guard case .live(let index)? = standings[id], live[index].lastOffset <= lastOffsetInTurns else { continue }
            remove(id)
        }
    }

    // MARK: News of the engine

    /// The engine has told of a message. It may tell late, twice, and in any order.
    package mutating func received(_ bytes: [UInt8], at position: GroupPosition, now: MonotonicTime) {
        if position.epoch == epoch, position.offset == newest + 1, !hasBacklog {
            append(bytes, at: position.offset, time: now, now: now)
        } else {
            noted(position)
        }
    }

    /// A message of this position is said to be there. The engine is asked where that says something new: of another
    /// epoch, too, which may be older news, or that of a stranger.
    package mutating func noted(_ position: GroupPosition) {
        if position.epoch != epoch || position.offset > newest { wantsRead = true }
    }

    /// The engine has answered with what it has behind the offset that was asked for.
    package mutating func read(_ page: GroupPage, now: MonotonicTime) {
        guard let asked = reading else { return }
        reading = nil
        read(page, after: asked.offset, in: asked.epoch, now: now)
    }

    /// The same of an answer that was asked for by the way.
    ///
    /// - Parameter askedEpoch: that of the copy when the engine was asked.
    package mutating func read(
        _ page: GroupPage,
        after offset: UInt64,
        in askedEpoch: UInt64,
        now: MonotonicTime
    ) {
        // Another answer may have come first, and be newer.
        guard askedEpoch == epoch else {
            wantsRead = true
            return
        }
        if page.newest.epoch == epoch { return take(page, now: now) }
        begin(page.newest.epoch)
        // Behind an offset of the old epoch, some of the new one are left out.
        if offset == 0 { take(page, now: now) } else { wantsRead = true }
    }

    package mutating func readFailed() { reading = nil }

    /// The history was lost. Whatever members do not have of it is lost to them.
    private mutating func begin(_ epoch: UInt64) {
        self.epoch = epoch
        clear(through: 0)
        nextFollowsGap = true
        for (id, standing) in standings {
            guard case .behind(let member, var behind) = standing else { continue }
            (behind.cursor, behind.followsGap, behind.recoveredThrough) = (0, true, 0)
            standings[id] = .behind(member, behind)
            if behind.lastOffset < .max { remove(id) }
        }
        for index in live.indices { live[index].skipThrough = 0 }
        for id in left.keys {
            left[id]?.position = GroupPosition(epoch: epoch, offset: 0)
            left[id]?.followsGap = true
        }
        for id in leaving { remove(id) }
    }

    private mutating func clear(through offset: UInt64) {
        _ = messages.removeAll()
        newestByKey = [:]
        (byteCount, backlogByteCount) = (0, 0)
        (offsetBeforeCopy, newest, lastOffsetInTurns) = (offset, offset, offset)
        turnStart = turnStart.map { _ in offset + 1 }
    }

    private mutating func take(_ page: GroupPage, now: MonotonicTime) {
        for message in page.messages where message.offset > newest {
            if message.offset > newest + 1 { skip(through: message.offset - 1) }
            append(message.bytes, at: message.offset, time: now - message.age, now: now)
        }
        // What is too old was there, and is gone.
        if page.newest.offset > newest { skip(through: page.newest.offset) }
    }

    /// Messages up to an offset are lost.
    private mutating func skip(through offset: UInt64) {
        if lastOffsetInTurns < newest {
            // Those before it have their turn yet: they go on in front of the gap.
            newest = offset
        } else {
            clear(through: offset)
        }
        nextFollowsGap = true
    }

    private mutating func append(_ bytes: [UInt8], at offset: UInt64, time: MonotonicTime, now: MonotonicTime) {
        // What is no message is lost to all.
        guard let decoded = decode(bytes) else { return skip(through: offset) }
        messages.append(
            Message(
                offset: offset,
                content: decoded.content,
                time: time,
                followsGap: nextFollowsGap,
                key: decoded.key,
                byteCount: bytes.count
            )
        )
        nextFollowsGap = false
        newest = offset
        byteCount += bytes.count
        backlogByteCount += bytes.count
        if let key = decoded.key { newestByKey[key] = offset }
        due.formUnion(waiting)
        waiting = []
        forgetOld(now: now)
    }

    /// Forgets what history does not keep. Messages whose turn has not come stay, and for a while those that members
    /// need who are behind.
    private mutating func forgetOld(now: MonotonicTime) {
        let limit = live.count < standings.count ? slowByteLimit : 0
        while let first = messages.first, first.offset < turnStart ?? lastOffsetInTurns + 1,
            messages.count > history.maximumCount || byteCount > history.maximumByteCount
                || now - first.time > history.maximumAge,
            byteCount + messages.count * Self.overhead > limit
        {
            messages.removeFirst()
            byteCount -= first.byteCount
            if let key = first.key, newestByKey[key] == first.offset { newestByKey[key] = nil }
            offsetBeforeCopy = messages.first.map { $0.offset - 1 } ?? newest
        }
    }

    // MARK: Work

    /// Takes what there is to do; nil when there is nothing.
    package mutating func takeWork(now: MonotonicTime) -> Work? {
        var work = Work()
        if lastOffsetInTurns < newest, turnStart == nil {
            let new = messages(after: lastOffsetInTurns)
            if !new.isEmpty, !live.isEmpty {
                work.turn = Turn(epoch: epoch, messages: new, members: live)
                turnStart = lastOffsetInTurns + 1
            }
            lastOffsetInTurns = newest
            backlogByteCount = 0
            forgetOld(now: now)
            removeThoseThatHaveAll()
        }
        (work.served, due) = (Array(due), [])
        (work.gone, gone) = (gone, [])
        if wantsRead, reading == nil, !hasBacklog {
            wantsRead = false
            reading = position
            work.readAfter = newest
        }
        return work.isEmpty ? nil : work
    }

    /// Everybody was offered the messages of a turn.
    ///
    /// - Parameter blocked: who could not take one at once, and its offset.
    package mutating func turnEnded(_ turn: Turn, blocked: [(id: MemberID, offset: UInt64)]) {
        turnStart = nil
        due.formUnion(dueAfterTurn)
        dueAfterTurn = []
        leftInTurn(turn, blocked)
        for (id, offset) in blocked {
            guard case .live(let index)? = standings[id] else { continue }
            let present = live[index]
            removeLive(at: index)
            leaving.remove(id)
            // What it lacks of an old epoch is lost to it.
            let isPresent = turn.epoch == epoch
            standings[id] = .behind(
                present.member,
                Behind(
                    cursor: isPresent ? offset - 1 : 0,
                    followsGap: !isPresent,
                    lastOffset: present.lastOffset
                )
            )
            due.insert(id)
        }
        let missed = missedInTurn
        missedInTurn = []
        for id in missed { self.missed(id) }
        removeThoseThatHaveAll()
    }

    /// Those who have left since a turn began have got its messages, up to the one that they could not take.
    private mutating func leftInTurn(_ turn: Turn, _ blocked: [(id: MemberID, offset: UInt64)]) {
        guard !left.isEmpty, let last = turn.messages.last else { return }
        let ends = Dictionary(blocked.map { ($0.id, $0.offset - 1) }, uniquingKeysWith: min)
        for (id, place) in left where place.isInTurn {
            left[id]?.isInTurn = false
            guard place.position.epoch == turn.epoch else { continue }
            left[id]?.position = GroupPosition(
                epoch: turn.epoch,
                offset: max(place.position.offset, ends[id] ?? last.offset)
            )
        }
    }

    /// The next message for a member that is served; nil: it is live again, waits for the next message, or has left.
    package mutating func next(for id: MemberID, now: MonotonicTime) -> (Member, Serving)? {
        guard case .behind(let member, var behind)? = standings[id] else { return nil }
        forgetOld(now: now)
        if behind.cursor < offsetBeforeCopy { (behind.cursor, behind.followsGap) = (offsetBeforeCopy, true) }
        while let message = messages(after: behind.cursor, limit: 1).first, message.offset <= behind.lastOffset {
            behind.followsGap = behind.followsGap || message.followsGap
            if let key = message.key, let newer = newestByKey[key], newer > message.offset,
                newer <= behind.lastOffset
            {
                behind.cursor = message.offset
                continue
            }
            standings[id] = .behind(member, behind)
            let serving = Serving(
                epoch: epoch,
                message: message,
                isRecovered: message.offset <= behind.recoveredThrough,
                followsGap: behind.followsGap
            )
            return (member, serving)
        }
        standings[id] = .behind(member, behind)
        if behind.lastOffset < .max {
            remove(id)
        } else if behind.followsGap {
            waiting.insert(id)
        } else {
            addLive(member, after: max(behind.cursor, newest))
        }
        return nil
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
        guard case .behind(let member, var behind)? = standings[id], serving.epoch == epoch else {
            return leftServed(id, serving, result)
        }
        behind.cursor = max(behind.cursor, serving.message.offset)
        switch result {
        case .sent: behind.followsGap = false
        case .lost: behind.followsGap = true
        case .passedOver: break
        }
        standings[id] = .behind(member, behind)
    }

    /// One that has left was served before that.
    private mutating func leftServed(_ id: MemberID, _ serving: Serving, _ result: Served) {
        guard var place = left[id], place.position.epoch == serving.epoch else { return }
        place.position = GroupPosition(epoch: epoch, offset: max(place.position.offset, serving.message.offset))
        switch result {
        case .sent: place.followsGap = false
        case .lost: place.followsGap = true
        case .passedOver: break
        }
        left[id] = place
    }
}
