/// The durable messages of peers, from their arrival until the store has them as processed. The peer is told only then,
/// because it forgets them with that.
package struct DurableInbound: Sendable {
    /// A message, identified by its sender and number.
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

    /// How to treat a received message.
    package enum Arrival: Sendable {
        /// Deliver it.
        case new
        /// The store has it as processed: tell the peer.
        case processed
        /// It arrived in an earlier session, too, and is not yet processed and stored. The peer is told once it is.
        case underWay
        /// The sender has more messages under way, or leaves more numbers out, than it may.
        case tooMany
    }

    /// The numbers that the store has as processed, by sender.
    private var processed: [SessionStoreID: ReceivedNumbers] = [:]
    /// The place where a message arrived last.
    package struct Last: Sendable {
        package let place: Place
        package let method: UInt32
        package let cost: Int
    }

    /// The limit for a sender's messages under way and its missing numbers together. It is twice the number that
    /// Lifeline itself has under way (`Outbox.openCount`), because some numbers belong to no message.
    package static var limit: Int { 2 * Outbox.openCount }

    /// The messages that are not stored as processed.
    private var places: [Mark: Last] = [:]
    /// The messages that were delivered and are not processed.
    private var marks: [Place: Mark] = [:]
    /// The messages that are processed, and not yet written to the store.
    private var unstored: [Mark] = []
    private var storing: [Mark] = []
    /// The places in `marks` whose handlers have marked the message in the store.
    private var marked: Set<Place> = []
    /// The answered calls that handlers have marked, and whose replies no group has.
    private var markedCalls: Set<Mark> = []
    /// The calls whose replies are in the group that is being stored.
    private var answering: [Mark] = []
    /// Numbers whose marks are to be removed from the store, as `processed` has them.
    private var unmarked: [SessionStoreID: [UInt64]] = [:]
    private var unmarkedCount = 0
    private var unmarking: [SessionStoreID: [UInt64]] = [:]
    /// The number of removable marks that is worth a write.
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

    /// Removes and returns the calls that handlers of an earlier process have marked, with their replies, to store them
    /// as messages.
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
    /// Whether there is something to write to the store.
    ///
    /// - Parameter isOver: whether the session is over: then another session has the numbers, unless some are missing
    ///   there.
    package func hasUnstored(isOver: Bool) -> Bool {
        !unstored.isEmpty || !isOver && unmarkedCount >= Self.unmarkedLimit
    }
    /// Whether everything that is processed is stored, except calls whose replies are not.
    package var isStored: Bool { unstored.isEmpty && storing.isEmpty }

    /// Notes that no more messages of a sender up to a number will come.
    package mutating func raiseFloor(of sender: SessionStoreID, to number: UInt64) {
        processed[sender, default: ReceivedNumbers()].raiseFloor(to: number)
    }

    /// Notes a received message.
    package mutating func received(_ mark: Mark, _ last: Last) -> Arrival {
        let numbers = processed[mark.sender] ?? ReceivedNumbers()
        if numbers.contains(mark.number) { return .processed }
        if places.updateValue(last, forKey: mark) != nil { return .underWay }
        // Each message under way may leave a gap.
        if numbers.gapCount + places.count > Self.limit { return .tooMany }
        marks[last.place] = mark
        return .new
    }

    /// Returns the delivered message at a place; nil if it is not durable.
    package func message(at place: Place) -> Mark? { marks[place] }

    /// Notes that the handler of a message has marked it in the store.
    package mutating func marked(_ place: Place) {
        if marks[place] != nil { marked.insert(place) }
    }

    /// The next step for a message that was processed.
    package enum Finish: Sendable {
        /// It is not durable: tell the peer.
        case notDurable
        /// Write it to the store. Has the cost of its last arrival.
        case store(cost: Int)
        /// The store has it: tell the peer.
        case stored(Last)
    }

    /// Notes that the message at a place was processed.
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

    /// Notes that the call at a place is answered: it is processed once its reply is stored. Returns nil if the call is
    /// not durable.
    package mutating func answered(_ place: Place) -> Mark? {
        guard let mark = marks.removeValue(forKey: place) else { return nil }
        if marked.remove(place) != nil { markedCalls.insert(mark) }
        return mark
    }

    /// Removes the entries that the store does not have yet, and adds them to the changes.
    ///
    /// - Parameter calls: the calls whose replies are in the group that is stored with the changes.
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

    /// Notes that the changes are stored. Returns the places where the messages arrived last.
    package mutating func stored() -> [Last] {
        defer { (storing, answering, unmarking) = ([], [], [:]) }
        markedCalls.subtract(answering)
        return (storing + answering).compactMap { mark in
            processed[mark.sender, default: ReceivedNumbers()].insert(mark.number)
            return places.removeValue(forKey: mark)
        }
    }

    /// Notes that the changes could not be stored. They are tried again, unless they are given up.
    ///
    /// - Parameter isOver: whether the session is over: then another session removes marks.
    package mutating func storingFailed(isGivenUp: Bool, isOver: Bool) {
        unstored = isGivenUp ? [] : storing + unstored
        if !isOver { unmarked.merge(unmarking) { $1 + $0 } }
        unmarkedCount = unmarked.values.reduce(0) { $0 + $1.count }
        (storing, answering, unmarking) = ([], [], [:])
    }
}

extension DurableInbound.Last {
    /// The place of a message that arrived in a session of an earlier process.
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
                "The store's record of processed messages cannot be read. Begin with a new store; messages "
                + "may be processed a second time then."
        )
    }

    package static var damagedMessages: StoreError {
        StoreError(
            code: .damaged,
            message: "Messages in the store cannot be read. Begin with a new store; unsent messages are lost."
        )
    }
}
