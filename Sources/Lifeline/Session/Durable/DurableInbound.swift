/// The durable messages of peers, from when they come until the store knows that they were processed. Only then the
/// peer is told, as it forgets them with that.
package struct DurableInbound: Sendable {
    /// A message, by who has sent it.
    package struct Mark: Hashable, Sendable {
        package let sender: SessionStoreID
        package let number: UInt64

        /// The number alone: a session has few senders.
        package func hash(into hasher: inout Hasher) { hasher.combine(number) }
    }

    /// A place in the ordinary lane of one of the sessions.
    package struct Place: Hashable, Sendable {
        package let session: UInt64
        package let place: UInt64
    }

    /// How to treat a message that has come.
    package enum Arrival: Sendable {
        /// Hand it out.
        case new
        /// It was processed, as the store knows: tell the peer.
        case processed
        /// It came in an earlier session, too, and is not processed yet, or not stored. The peer is told when it is.
        case underWay
        /// The sender has more messages under way, or leaves more numbers out, than it may.
        case tooMany
    }

    /// The numbers that the store has as processed, by sender.
    private var processed: [SessionStoreID: ReceivedNumbers] = [:]
    /// Where a message came last.
    package struct Last: Sendable {
        package let place: Place
        package let method: UInt32
        package let cost: Int
    }

    /// A sender may have so many messages under way, and leave out so many numbers, together. Twice what Lifeline's own
    /// have under way (`Outbox.openCount`), as some numbers are given to none.
    package static var limit: Int { 2 * Outbox.openCount }

    /// Those that are not stored as processed.
    private var places: [Mark: Last] = [:]
    /// Those that were handed out and are not processed.
    private var marks: [Place: Mark] = [:]
    /// Those that are processed, and that the store is to be told of.
    private var unstored: [Mark] = []
    private var storing: [Mark] = []
    /// Those of `marks` whose handlers have marked them in the store themselves.
    private var marked: Set<Place> = []
    /// The same of calls that are answered, and whose replies no group has.
    private var markedCalls: Set<Mark> = []
    /// The calls whose replies are in the group that is being stored.
    private var answering: [Mark] = []
    /// Numbers whose marks are to be removed from the store, as `processed` has them.
    private var unmarked: [SessionStoreID: [UInt64]] = [:]
    private var unmarkedCount = 0
    private var unmarking: [SessionStoreID: [UInt64]] = [:]
    /// When so many marks can be removed, that is worth a write.
    private static var unmarkedLimit: Int { 1_024 }

    /// Calls that handlers of an earlier process have marked, with their replies.
    private var markedReplies: [(call: Mark, reply: [UInt8])] = []

    /// - Throws: `damaged`.
    package init(_ content: SessionStoreContent) throws(StoreError) {
        for (sender, bytes) in content.processed {
            guard let numbers = ReceivedNumbers(bytes: bytes) else { throw .damagedNumbers }
            processed[sender] = numbers
        }
        for (sender, marks) in content.marked {
            for stored in marks {
                let mark = Mark(sender: sender, number: stored.number)
                guard let reply = stored.reply else {
                    insertMarked(mark)
                    continue
                }
                markedReplies.append((mark, reply))
                markedCalls.insert(mark)
                places[mark] = .ofEarlierProcess
            }
        }
    }

    /// Takes the calls that handlers of an earlier process have marked, with their replies, to be stored as messages.
    mutating func takeMarkedReplies() -> [(call: Mark, reply: [UInt8])] {
        defer { markedReplies = [] }
        return markedReplies
    }

    private mutating func insertMarked(_ mark: Mark) {
        processed[mark.sender, default: ReceivedNumbers()].insert(mark.number)
        unmarked[mark.sender, default: []].append(mark.number)
        unmarkedCount += 1
    }

    package var hasUnfinished: Bool { !marks.isEmpty }
    /// Whether the store is to be told something.
    ///
    /// - Parameter isOver: whether the session is: then another one has the numbers, unless some are missing there.
    package func hasUnstored(isOver: Bool) -> Bool {
        !unstored.isEmpty || !isOver && unmarkedCount >= Self.unmarkedLimit
    }
    /// Whether everything that is processed is stored, but calls whose replies are not.
    package var isStored: Bool { unstored.isEmpty && storing.isEmpty }

    /// No message of a sender's up to a number comes any more.
    package mutating func raiseFloor(of sender: SessionStoreID, to number: UInt64) {
        processed[sender, default: ReceivedNumbers()].raiseFloor(to: number)
    }

    /// A message has come.
    package mutating func received(_ mark: Mark, _ last: Last) -> Arrival {
        let numbers = processed[mark.sender] ?? ReceivedNumbers()
        if numbers.contains(mark.number) { return .processed }
        if places.updateValue(last, forKey: mark) != nil { return .underWay }
        // Each of those under way may leave a gap.
        if numbers.gapCount + places.count > Self.limit { return .tooMany }
        marks[last.place] = mark
        return .new
    }

    /// The message of a place that was handed out; nil where it is not durable.
    package func message(at place: Place) -> Mark? { marks[place] }

    /// The handler of a message has marked it in the store.
    package mutating func marked(_ place: Place) {
        if marks[place] != nil { marked.insert(place) }
    }

    /// How to go on with a message that was processed.
    package enum Finish: Sendable {
        /// It is not durable: tell the peer.
        case notDurable
        /// The store is to be told; what it cost when it came last.
        case store(cost: Int)
        /// The store knows: tell the peer.
        case stored(Last)
    }

    /// The message of a place was processed.
    package mutating func finished(_ place: Place) -> Finish {
        guard let mark = marks.removeValue(forKey: place) else { return .notDurable }
        guard marked.remove(place) != nil else {
            unstored.append(mark)
            return .store(cost: places[mark]?.cost ?? 0)
        }
        insertMarked(mark)
        guard let last = places.removeValue(forKey: mark) else { return .notDurable }
        return .stored(last)
    }

    /// The call of a place is answered: it is processed once its reply is stored. Nil where the store does not know it.
    package mutating func answered(_ place: Place) -> Mark? {
        guard let mark = marks.removeValue(forKey: place) else { return nil }
        if marked.remove(place) != nil { markedCalls.insert(mark) }
        return mark
    }

    /// Takes what the store does not know yet.
    ///
    /// - Parameter calls: those whose replies are in the group that is stored with it.
    package mutating func takeUnstored(answering calls: [Mark], into changes: inout SessionStoreChanges) {
        (storing, unstored, answering) = (unstored, [], calls)
        (unmarking, unmarked, unmarkedCount) = (unmarked, [:], 0)
        changes.unmarked = unmarking
        for call in calls where markedCalls.contains(call) {
            changes.unmarked[call.sender, default: []].append(call.number)
        }
        var changed: [SessionStoreID: ReceivedNumbers] = [:]
        for sender in unmarking.keys { changed[sender] = processed[sender] }
        for mark in storing + answering {
            changed[mark.sender, default: processed[mark.sender] ?? ReceivedNumbers()].insert(mark.number)
        }
        changes.processed = changed.mapValues(\.bytes)
    }

    /// The store knows it. Returns where the messages came last.
    package mutating func stored() -> [Last] {
        defer { (storing, answering, unmarking) = ([], [], [:]) }
        markedCalls.subtract(answering)
        return (storing + answering).compactMap { mark in
            processed[mark.sender, default: ReceivedNumbers()].insert(mark.number)
            return places.removeValue(forKey: mark)
        }
    }

    /// The store could not be told. It is tried again, unless nobody waits for that.
    ///
    /// - Parameter isOver: whether the session is: then another one removes marks.
    package mutating func storingFailed(isGivenUp: Bool, isOver: Bool) {
        unstored = isGivenUp ? [] : storing + unstored
        if !isOver { unmarked.merge(unmarking) { $1 + $0 } }
        unmarkedCount = unmarked.values.reduce(0) { $0 + $1.count }
        (storing, answering, unmarking) = ([], [], [:])
    }
}

extension DurableInbound.Last {
    /// It came in a session of an earlier process.
    fileprivate static let ofEarlierProcess = DurableInbound.Last(
        place: DurableInbound.Place(session: .max, place: 0),
        method: 0,
        cost: 0
    )
}

extension StoreError {
    fileprivate static var damagedNumbers: StoreError {
        StoreError(
            code: .damaged,
            message:
                "What the store says of messages that were processed cannot be read. Begin with a new one; messages "
                + "may be processed a second time then."
        )
    }

    package static var damagedMessages: StoreError {
        StoreError(
            code: .damaged,
            message: "Messages in the store cannot be read. Begin with a new one; what was not sent is lost."
        )
    }
}
