package import LifelineCore

/// One node's copy of a group: its latest messages, as far as the history keeps them, and the members at this node. It
/// decides which messages go to which members, and what to read from the engine.
///
/// Members are **live** or **behind**. All live members get new messages together, in a turn. A member that cannot take
/// a message at once falls behind: it is served separately, message by message, from the copy, and is live again when
/// it has caught up. No other member waits for it, and no messages are kept only for it. If the copy does not reach
/// back far enough, the member's next message reports that earlier ones are lost.
package struct GroupMachine<Member: Identifiable & Sendable, Content: Sendable>: Sendable where Member.ID: Sendable {
    package typealias MemberID = Member.ID

    /// The facts about a message that the machine needs.
    package struct Decoded: Sendable {
        package let content: Content
        /// Members that are behind get only the newest message with a key; nil for none.
        package let key: String?

        package init(_ content: Content, key: String? = nil) { (self.content, self.key) = (content, key) }
    }

    /// A message of the group.
    package struct Message: Sendable {
        package let offset: UInt64
        package let content: Content
        /// The time of the push, by this node's clock.
        package let time: MonotonicTime
        /// Whether messages before it are missing in the copy.
        package fileprivate(set) var followsGap = false
        fileprivate let key: String?
        fileprivate let byteCount: Int
    }

    /// A live member.
    package struct Live: Sendable {
        package let member: Member
        /// Messages up to this offset are not for this member.
        fileprivate var skipThrough: UInt64
        /// The member leaves after the message with this offset.
        fileprivate var lastOffset = UInt64.max

        package func wants(_ message: Message) -> Bool { message.offset > skipThrough && message.offset <= lastOffset }
    }

    /// A member that is served separately.
    private struct Behind: Sendable {
        /// The offset of the last message that it has got, or will never get.
        var cursor: UInt64
        /// Whether it has missed messages since it got the last one.
        var followsGap = false
        /// Messages up to this offset are older than its join.
        var recoveredThrough: UInt64 = 0
        /// The member leaves after the message with this offset.
        var lastOffset = UInt64.max
    }

    private enum Standing: Sendable {
        /// The member is at this index of `live`.
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
        /// The message could not be sent. The member's next message reports it.
        case lost
        /// The message is not meant for members that are behind.
        case passedOver
    }

    /// The position of a member that has left.
    package struct Left: Sendable, Equatable {
        /// The position after which it would get the next message.
        package var position: GroupPosition
        /// Whether it has missed messages before that position without a report.
        package var followsGap: Bool
        /// Whether a turn may still send to it.
        fileprivate var isInTurn: Bool
    }

    /// The work for the driver.
    package struct Work: Sendable {
        /// Offer these to all live members, and call `turnEnded`.
        package var turn: Turn?
        /// Serve these members until `next` has nothing for them.
        package var served: [MemberID] = []
        /// Read the messages after this offset, and call `read` or `readFailed`.
        package var readAfter: UInt64?
        /// The members that have left.
        package var gone: [MemberID] = []

        var isEmpty: Bool { turn == nil && served.isEmpty && readAfter == nil && gone.isEmpty }
    }

    /// The most messages, and bytes, that wait for their turn. Further ones are read from the engine later.
    package static var backlogLimit: (count: Int, byteCount: Int) { (1_024, 4 << 20) }
    /// The approximate memory of a message besides its bytes.
    private static var overhead: Int { 64 }

    private let history: GroupHistory
    /// The size that the copy may have while a member is behind, if the history keeps less.
    private let slowByteLimit: Int
    private let decode: @Sendable ([UInt8]) -> Decoded?
    private var epoch: UInt64
    /// Offsets ascend by one, except for gaps before messages with `followsGap`.
    private var messages = FIFO<Message>()
    private var byteCount = 0
    /// The offset of the newest message in the copy with each key.
    private var newestByKey: [String: UInt64] = [:]
    /// The offset before the first message of the copy.
    private var offsetBeforeCopy: UInt64
    /// The offset of the last message of the copy.
    private var newest: UInt64
    /// The number of bytes of messages that wait for their turn.
    private var backlogByteCount = 0
    /// Turns have begun with all messages up to this offset.
    private var lastOffsetInTurns: UInt64
    /// Whether the engine may have messages that are not in the copy.
    private var wantsRead = false
    /// The position after which the engine is being read; nil when it is not.
    private var reading: GroupPosition?
    /// The offset of the first message of the present turn, if any.
    private var turnStart: UInt64?
    /// Whether messages are missing before the next one.
    private var nextFollowsGap = false
    private var standings: [MemberID: Standing] = [:]
    private var live: [Live] = []
    /// The members that are behind, have no serving task, and have messages waiting.
    private var due: Set<MemberID> = []
    /// The members that are behind, have no serving task, and wait for the next message.
    private var waiting: Set<MemberID> = []
    /// The members that are behind, have no serving task, and wait for the end of the turn, which may still send to
    /// them.
    private var dueAfterTurn: Set<MemberID> = []
    /// The live members that have missed messages and may be in the turn.
    private var missedInTurn: Set<MemberID> = []
    /// The live members that are leaving.
    private var leaving: Set<MemberID> = []
    private var gone: [MemberID] = []
    /// The positions of members that have left, until the driver takes them.
    private var left: [MemberID: Left] = [:]

    /// - Parameters:
    ///   - page: the engine's whole history of the group.
    ///   - slowByteLimit: the size that the copy may have while a member is behind, if the history keeps less.
    ///   - decode: returns nil for malformed messages.
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
        // There are no members yet that could miss messages.
        nextFollowsGap = false
    }

    /// The position after the last message of the copy.
    package var position: GroupPosition { GroupPosition(epoch: epoch, offset: newest) }

    /// The number of members, including leaving ones that have not got all messages.
    package var memberCount: Int { standings.count }

    /// Whether senders should wait, because turns are slower than pushes.
    package var hasBacklog: Bool {
        newest - lastOffsetInTurns >= UInt64(Self.backlogLimit.count)
            || backlogByteCount >= Self.backlogLimit.byteCount
    }

    // MARK: Members

    /// Adds a new member.
    ///
    /// - Parameter isReturning: whether it was a member at another node until now, so that no message counts as
    ///   recovered history.
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

    /// Returns whether the copy has all messages after a position.
    package func covers(_ position: GroupPosition) -> Bool {
        position.epoch == epoch && position.offset >= offsetBeforeCopy && position.offset <= newest
    }

    /// Returns the position after which a member gets the next message; nil if it is not a member.
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
            // A turn from before it left may still send to it.
            if turnStart == nil { due.insert(member.id) } else { dueAfterTurn.insert(member.id) }
        }
    }

    private mutating func addLive(_ member: Member, after offset: UInt64) {
        standings[member.id] = .live(live.count)
        live.append(Live(member: member, skipThrough: offset))
    }

    /// Lets a member leave once it has got the present messages.
    package mutating func leave(_ id: MemberID) {
        switch standings[id] {
        case .live(let index)?:
            live[index].lastOffset = min(live[index].lastOffset, newest)
            leaving.insert(id)
            removeThoseThatHaveAll()
        case .behind(let member, var behind)?:
            behind.lastOffset = min(behind.lastOffset, newest)
            standings[id] = .behind(member, behind)
            // There are no messages for members that wait for the next one.
            if waiting.contains(id) || behind.cursor >= behind.lastOffset { remove(id) }
        case nil:
            break
        }
    }

    /// Notes that a member has missed messages. Its next message, or during a turn one of the next, reports it.
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

    /// Removes a member that is gone.
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

    /// Removes and returns the position of a member that has left, once nothing more is sent to it.
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

    /// Receives a message from the engine. Messages may come late, twice, and in any order.
    package mutating func received(_ bytes: [UInt8], at position: GroupPosition, now: MonotonicTime) {
        if position.epoch == epoch, position.offset == newest + 1, !hasBacklog {
            append(bytes, at: position.offset, time: now, now: now)
        } else {
            noted(position)
        }
    }

    /// Notes that a message with this position is said to exist. The engine is read if the position is new. That
    /// includes another epoch, which may be old news, or wrong.
    package mutating func noted(_ position: GroupPosition) {
        if position.epoch != epoch || position.offset > newest { wantsRead = true }
    }

    /// Receives the engine's messages after the requested offset.
    package mutating func read(_ page: GroupPage, now: MonotonicTime) {
        guard let asked = reading else { return }
        reading = nil
        read(page, after: asked.offset, in: asked.epoch, now: now)
    }

    /// Receives an answer to another request.
    ///
    /// - Parameter askedEpoch: the epoch of the copy at the time of the request.
    package mutating func read(
        _ page: GroupPage,
        after offset: UInt64,
        in askedEpoch: UInt64,
        now: MonotonicTime
    ) {
        // Another, newer answer may have come first.
        guard askedEpoch == epoch else {
            wantsRead = true
            return
        }
        if page.newest.epoch == epoch { return take(page, now: now) }
        begin(page.newest.epoch)
        // An answer after an offset of the old epoch lacks messages of the new one.
        if offset == 0 { take(page, now: now) } else { wantsRead = true }
    }

    package mutating func readFailed() { reading = nil }

    /// Begins a new epoch, because the history was lost. Members lose the messages that they have not got.
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
        // Messages that are too old were there, and are gone.
        if page.newest.offset > newest { skip(through: page.newest.offset) }
    }

    /// Skips messages up to an offset, which are lost.
    private mutating func skip(through offset: UInt64) {
        if lastOffsetInTurns < newest {
            // Messages before the gap still get their turn.
            newest = offset
        } else {
            clear(through: offset)
        }
        nextFollowsGap = true
    }

    private mutating func append(_ bytes: [UInt8], at offset: UInt64, time: MonotonicTime, now: MonotonicTime) {
        // A malformed message is lost for all members.
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

    /// Forgets messages that the history does not keep. Messages that wait for their turn stay, and for a while those
    /// that members need that are behind.
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

    /// Returns the work to do; nil when there is none.
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

    /// Notes that the messages of a turn were offered to all live members.
    ///
    /// - Parameter blocked: the members that could not take a message at once, and its offset.
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
            // Missing messages of an old epoch are lost.
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

    /// Members that have left since the turn began have got its messages, up to the one that they could not take.
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

    /// Returns the next message for a member that is served; nil when it is live again, waits for the next message, or
    /// has left.
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

    /// Returns the messages of the copy after an offset.
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

    /// Notes that a member was served.
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

    /// Notes that a member that has left was served before.
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
