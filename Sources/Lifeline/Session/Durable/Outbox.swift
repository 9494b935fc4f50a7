internal import LifelineCore

/// The durable messages of one side, from their acceptance until the peer has processed them. They are above the
/// session: a message that a lane loses with its session is handed to the lane of the next one.
///
/// A message waits until a group is written, gets its number with that, and goes to the lane once the store says that
/// the group is safe. What lanes cannot take yet stays in the store alone, and is read again later, in pages: memory
/// follows what is under way, not what is kept. When all messages of a group are processed the group is removed.
package struct Outbox: Sendable {
    /// The most messages that one group has, and about the most bytes: what one write takes in without others waiting
    /// for long.
    package static var groupCount: Int { 4_096 }
    package static var groupByteCount: Int { 1 << 20 }
    /// About how many bytes are read at once, and kept for a lane that cannot take them: twice a lane's credit.
    package static var pageByteCount: Int { 512 << 10 }
    /// So many messages at most lie between the first that is not processed and the last that a lane has. It bounds
    /// what the peer has to remember.
    package static var openCount: Int { 16_384 }
    /// How long a group that was processed may stay in the store when nothing else is written: 1 s.
    package static var removalDelay: Duration { .seconds(1) }

    package struct Message: Sendable, Equatable {
        /// Its number in the store.
        package internal(set) var number: UInt64 = 0
        /// By which its sender knows it; 0: nobody waits for it.
        package fileprivate(set) var waiter: UInt64
        /// Whether its sender is told when it was processed.
        package fileprivate(set) var isObserved: Bool
        package let method: String
        /// Encoded fields of a push beside its message.
        package let fields: [UInt8]
        package let payload: [UInt8]
        /// The durable call that it is the reply to: that is processed when this is stored; nil: it is no reply.
        package let answers: DurableInbound.Mark?
        /// Until when it is worth sending; nil: for ever.
        package let deadline: MonotonicTime?

        package init(
            waiter: UInt64,
            isObserved: Bool,
            method: String,
            fields: [UInt8],
            payload: [UInt8],
            answers: DurableInbound.Mark? = nil,
            deadline: MonotonicTime? = nil
        ) {
            (self.waiter, self.isObserved, self.method) = (waiter, isObserved, method)
            (self.fields, self.payload, self.answers, self.deadline) = (fields, payload, answers, deadline)
        }

        /// The reply to a call, as a store has kept it with the call's mark; nil where that is damaged.
        package init?(reply bytes: [UInt8], to call: DurableInbound.Mark, waiter: UInt64) {
            let group = SessionStoreGroup(first: 0, count: 1, bytes: bytes, added: 0)
            let time = StoreTime(now: MonotonicTime(nanoseconds: 0), date: 0)
            guard let message = Self.messages(of: group, time)?.first else { return nil }
            self.init(
                waiter: waiter,
                isObserved: false,
                method: message.method,
                fields: message.fields,
                payload: message.payload,
                answers: call
            )
        }

        /// The same with other content.
        func with(fields: [UInt8], payload: [UInt8]) -> Message {
            var message = Message(
                waiter: waiter,
                isObserved: isObserved,
                method: method,
                fields: fields,
                payload: payload,
                answers: answers,
                deadline: deadline
            )
            message.number = number
            return message
        }

        /// The same, to be stored after all.
        func waiting(as waiter: UInt64) -> Message {
            var message = self
            (message.waiter, message.number) = (waiter, 0)
            return message
        }

        /// As a store keeps it with the mark of the call that it is the reply to.
        package var replyBytes: [UInt8] {
            var bytes: [UInt8] = []
            append(to: &bytes, millisecondsLeft: 0)
            return bytes
        }

        var byteCount: Int { method.utf8.count + fields.count + payload.count + SessionSize.frameOverhead }
    }

    /// A group of which messages were handed out, or are about to be.
    private struct OpenGroup: Sendable {
        let first: UInt64
        let end: UInt64
        let byteCount: Int
        /// How many of its messages are not processed.
        var leftCount: Int
    }

    /// Those that no group has yet, by their waiters.
    private var waiting = SparseQueue<Message>()
    private var waitingByteCount = 0
    /// How many replies wait, or are being stored, and how many bytes they have.
    private var unstoredReplyCount = 0
    package private(set) var unstoredReplyByteCount = 0
    /// The group that is being written; nil: none is.
    private var writing: (group: SessionStoreGroup, messages: [Message])?
    /// Those that are stored and not handed out, by their numbers.
    private var ready = SparseQueue<Message>()
    private var readyByteCount = 0
    /// When those of `waiting` and of `ready` are not worth sending any more.
    private var waitingDeadlines = DeadlineHeap()
    private var readyDeadlines = DeadlineHeap()
    /// Messages before this number were stored by an earlier process or session, which may have sent them.
    private let earlierEnd: UInt64
    /// The last date that the store knows.
    private let keptDate: Int64
    /// The date less the other clock's time, in milliseconds; nil: nobody has asked for the date yet.
    private var dateOffset: Int64?
    /// Whether the store is to know the date, as messages have expired by it.
    package private(set) var isDateDue = false
    /// The last number that was left out: given to no message, or to one that is not sent.
    private var lastLeftOut: UInt64 = 0
    /// The floor that the peer was told with a message after the last number was left out; 0: none.
    private var toldFloor: UInt64 = 0
    /// The waiters of observed messages that are in the store alone, by the messages' numbers.
    private var observed: [UInt64: UInt64] = [:]
    /// The groups of `ready` and of what was handed out, in order. Those in front that were processed are gone.
    private var open: [OpenGroup] = []
    private var firstOpen = 0
    /// Those that can be removed from the store.
    private var removable: [UInt64] = []
    private var removalDeadline: MonotonicTime?
    /// The number of the next message.
    private var next: UInt64
    /// The number behind the last message in the store, and behind those that could not be stored after it.
    private var storedEnd: UInt64
    /// The next number as the store knows it: where it is opened again, numbers from this one on are given.
    private var keptNext: UInt64
    /// Messages before this number were read from the store, or never left the memory.
    private var readEnd: UInt64
    /// From where on messages are not sent that cannot be read; nil: there are none.
    private var damagedFrom: UInt64?
    /// Up to where groups are being read; nil: none are.
    private var readingEnd: UInt64?
    /// How many bytes the store has.
    private(set) var storedByteCount: Int
    private let byteLimit: Int

    /// - Parameters:
    ///   - content: what the store has.
    ///   - byteLimit: how many bytes the store may have before senders wait.
    package init(_ content: SessionStoreContent, byteLimit: Int) {
        (next, storedEnd, keptNext, readEnd) = (content.next, content.next, content.next, content.first)
        earlierEnd = content.next
        // Far from the edge, whatever the store says.
        keptDate = min(max(content.date, 0), 1 << 53)
        storedByteCount = content.byteCount
        self.byteLimit = max(byteLimit, 1)
    }

    /// Whether every message that was accepted is processed.
    package var isEmpty: Bool { waiting.isEmpty && writing == nil && firstOpen == open.count && readEnd == storedEnd }

    /// The last number in front of which no message comes any more.
    package var floor: UInt64 {
        min(firstOpen < open.count ? open[firstOpen].first : readEnd, keptNext, damagedFrom ?? .max) - 1
    }

    /// The floor, where the peer is to be told of it with the next message, as numbers were left out: else it would
    /// remember each of them until the next opening.
    mutating func takeUntoldFloor() -> UInt64? {
        let floor = floor
        guard toldFloor < lastLeftOut, toldFloor < floor else { return nil }
        toldFloor = floor
        return floor
    }

    private mutating func leaveOut(_ number: UInt64) {
        // A message that was to tell of the floor may be the one that is left out.
        (lastLeftOut, toldFloor) = (max(lastLeftOut, number), 0)
    }

    /// Whether an earlier process or session may have sent a message.
    func mayBeSentBefore(_ number: UInt64) -> Bool { number != 0 && number < earlierEnd }

    /// The time, whose date never goes back, also over a restart: what has expired stays so when the clock is put back.
    private mutating func advanced(to time: StoreTime) -> StoreTime {
        let milliseconds = time.now.nanoseconds / 1_000_000
        let offset = max(dateOffset ?? keptDate - milliseconds, min(time.date, 1 << 53) - milliseconds)
        dateOffset = offset
        return StoreTime(now: time.now, date: milliseconds + offset)
    }

    /// The date for the next change of the store; nil: it needs none.
    mutating func takeDate(_ time: StoreTime, isAdding: Bool) -> Int64? {
        guard isAdding || isDateDue else { return nil }
        isDateDue = false
        return advanced(to: time).date
    }

    /// The store could not be told of the date.
    mutating func dateFailed() { isDateDue = true }

    // MARK: Before the store

    /// Takes a message, which waits to be stored.
    package mutating func append(_ message: Message) {
        waiting.append(message.waiter, message)
        waitingByteCount += message.byteCount
        countReply(message, by: 1)
        if let deadline = message.deadline { waitingDeadlines.insert(deadline, id: message.waiter) }
    }

    private mutating func countReply(_ message: Message, by count: Int) {
        if message.answers == nil { return }
        unstoredReplyCount += count
        unstoredReplyByteCount += count * message.byteCount
    }

    /// Takes a message out of those that wait.
    private mutating func removeWaiting(_ waiter: UInt64) -> Message? {
        guard let message = waiting.remove(waiter) else { return nil }
        waitingByteCount -= message.byteCount
        if message.deadline != nil {
            waitingDeadlines.compact(liveCount: waiting.count) { [waiting] in waiting[$0] != nil }
        }
        return message
    }

    /// Gives up a message. Returns nil where it is being stored, or is.
    package mutating func withdraw(_ waiter: UInt64) -> Message? {
        guard let message = removeWaiting(waiter) else { return nil }
        countReply(message, by: -1)
        return message
    }

    /// Gives up all messages that no group has but replies, in order.
    package mutating func withdrawAll() -> [Message] {
        waiting.numbers.filter { waiting[$0]?.answers == nil }.compactMap { withdraw($0) }
    }

    /// Gives up the replies that no group has: their calls are not processed.
    package mutating func withdrawReplies() {
        for waiter in waiting.numbers where waiting[waiter]?.answers != nil { _ = withdraw(waiter) }
    }

    /// Whether replies wait to be stored, or are being stored.
    package var hasUnstoredReplies: Bool { unstoredReplyCount > 0 }

    /// Whether so much waits to be stored that calls whose replies would wait, too, are better begun later.
    package var isBehind: Bool { waitingByteCount >= Self.groupByteCount }

    /// The next group to be stored; nil: nothing waits, one is being stored, or the store is full.
    ///
    /// - Parameter isLast: whether to leave nothing, however full the store is.
    package mutating func takeGroup(isLast: Bool = false, _ time: StoreTime) -> SessionStoreGroup? {
        guard writing == nil, isLast || storedByteCount < byteLimit else { return nil }
        let time = advanced(to: time)
        var (messages, bytes): ([Message], [UInt8]) = ([], [])
        while messages.count < Self.groupCount, bytes.count < Self.groupByteCount, let waiter = waiting.first?.number,
            var message = removeWaiting(waiter)
        {
            message.number = next + UInt64(messages.count)
            // One whose time to live is over by now ends once it is stored.
            let left = message.deadline?.timeoutMilliseconds(now: time.now) ?? 0
            message.append(to: &bytes, millisecondsLeft: left)
            messages.append(message)
        }
        if messages.isEmpty { return nil }
        let group = SessionStoreGroup(first: next, count: messages.count, bytes: bytes, added: time.date)
        // Where storing fails nobody knows whether it has, and so no other message gets these numbers.
        next += UInt64(messages.count)
        writing = (group, messages)
        return group
    }

    /// Those whose senders are to be told when they are processed, and that no lane has, by their waiters. Nobody is
    /// told after this.
    package mutating func takeObserved() -> [UInt64] {
        defer { observed = [:] }
        return observed.values.sorted() + ready.elements.filter(\.isObserved).map(\.waiter)
    }

    // MARK: In the store

    /// The calls that messages of the group that is being stored are the replies to.
    package var answered: [DurableInbound.Mark] { writing?.messages.compactMap(\.answers) ?? [] }

    /// The group is safe. Returns its messages.
    package mutating func groupStored() -> [Message] {
        guard let (group, messages) = writing.take() else { return [] }
        for message in messages { countReply(message, by: -1) }
        let isNext = readEnd == storedEnd && readyByteCount < Self.pageByteCount
        storedByteCount += group.bytes.count
        (storedEnd, keptNext) = (next, next)
        guard isNext else {
            for message in messages where message.isObserved { observed[message.number] = message.waiter }
            return messages
        }
        readEnd = next
        open(group, messages)
        return messages
    }

    /// The group could not be stored. Returns its messages.
    package mutating func groupFailed() -> [Message] {
        guard let (_, messages) = writing.take() else { return [] }
        for message in messages { countReply(message, by: -1) }
        // The numbers stay free.
        leaveOut(next - 1)
        if readEnd == storedEnd { readEnd = next }
        storedEnd = next
        return messages
    }

    private mutating func open(_ group: SessionStoreGroup, _ messages: [Message]) {
        let end = group.first + UInt64(messages.count)
        open.append(
            OpenGroup(first: group.first, end: end, byteCount: group.bytes.count, leftCount: messages.count)
        )
        for var message in messages {
            if let waiter = observed.removeValue(forKey: message.number) {
                (message.waiter, message.isObserved) = (waiter, true)
            }
            ready.append(message.number, message)
            readyByteCount += message.byteCount
            if let deadline = message.deadline { readyDeadlines.insert(deadline, id: message.number) }
        }
    }

    /// From which number on groups are to be read; nil: none, or they are being read.
    package mutating func takeReading() -> UInt64? {
        guard readingEnd == nil, readEnd < storedEnd, readyByteCount < Self.pageByteCount / 2 else { return nil }
        readingEnd = storedEnd
        return readEnd
    }

    /// Groups were read. Returns false where they are damaged: nothing of them is taken.
    package mutating func read(_ groups: [SessionStoreGroup], _ time: StoreTime) -> Bool {
        guard let readingEnd = readingEnd.take() else { return true }
        let time = advanced(to: time)
        var end = readEnd
        var all: [(SessionStoreGroup, [Message])] = []
        // One that was added meanwhile may be there, and its turn comes later.
        for group in groups where group.first < readingEnd {
            guard let messages = Message.messages(of: group, time), group.first >= end,
                readingEnd - group.first >= UInt64(messages.count)
            else { return false }
            all.append((group, messages))
            end = group.first + UInt64(messages.count)
        }
        for (group, messages) in all { open(group, messages) }
        // Where there is none, the numbers were not stored.
        readEnd = all.isEmpty ? readingEnd : end
        return true
    }

    /// Groups cannot be read. They stay in the store with all that was stored behind them, and are not sent.
    package mutating func giveUpReading() {
        damagedFrom = damagedFrom ?? readEnd
        readEnd = storedEnd
    }

    /// Reading failed, and is to be tried again.
    package mutating func readingFailed() { readingEnd = nil }

    // MARK: Behind the store

    /// The next message for a lane.
    package var firstReady: Message? {
        guard let message = ready.first?.element, message.number - floor <= UInt64(Self.openCount) else { return nil }
        return message
    }

    package mutating func takeReady() -> Message? {
        firstReady.flatMap { removeReady($0.number) }
    }

    private mutating func removeReady(_ number: UInt64) -> Message? {
        guard let message = ready.remove(number) else { return nil }
        readyByteCount -= message.byteCount
        if message.deadline != nil {
            readyDeadlines.compact(liveCount: ready.count) { [ready] in ready[$0] != nil }
        }
        return message
    }

    /// Takes the next message that no lane has and that is not worth sending any more. Its number is 0 where it is not
    /// stored.
    package mutating func takeExpired(now: MonotonicTime) -> Message? {
        while let waiter = waitingDeadlines.takeDue(now: now) {
            if let message = withdraw(waiter) { return message }
        }
        while let number = readyDeadlines.takeDue(now: now) {
            guard let message = removeReady(number) else { continue }
            finished(number, isLeftOut: true, now: now)
            return message
        }
        return nil
    }

    /// A message that was handed out is processed, or is given up.
    ///
    /// - Parameter isLeftOut: whether it is given up: its number does not come any more.
    package mutating func finished(_ number: UInt64, isLeftOut: Bool = false, now: MonotonicTime) {
        if isLeftOut {
            leaveOut(number)
            isDateDue = true
        }
        var (low, high) = (firstOpen, open.count)
        while low < high {
            let middle = (low + high) / 2
            if open[middle].end <= number { low = middle + 1 } else { high = middle }
        }
        precondition(low < open.count && open[low].leftCount > 0, "message \(number) is not under way")
        open[low].leftCount -= 1
        guard open[low].leftCount == 0 else { return }
        removable.append(open[low].first)
        storedByteCount -= open[low].byteCount
        removalDeadline = removalDeadline ?? now + Self.removalDelay
        while firstOpen < open.count, open[firstOpen].leftCount == 0 { firstOpen += 1 }
        if firstOpen > 64, firstOpen > open.count / 2 {
            open.removeFirst(firstOpen)
            firstOpen = 0
        }
    }

    /// When groups are to be removed though nothing else is written; nil: there is nothing to remove.
    package var nextDeadline: MonotonicTime? { removalDeadline }

    /// When `takeExpired` has something.
    package var nextExpiry: MonotonicTime? { .earliest(waitingDeadlines.next, readyDeadlines.next) }

    package func isRemovalDue(now: MonotonicTime) -> Bool { removalDeadline.map { $0 <= now } ?? false }

    /// Groups to be removed with the next change.
    package mutating func takeRemovable() -> [UInt64] {
        defer { (removable, removalDeadline) = ([], nil) }
        return removable
    }

    /// They could not be removed.
    package mutating func removalFailed(_ groups: [UInt64], now: MonotonicTime) {
        guard !groups.isEmpty else { return }
        removable += groups
        removalDeadline = removalDeadline ?? now + Self.removalDelay
    }
}

// A group's bytes: a protobuf message for each, in field 1.
extension Outbox.Message {
    /// - Parameter millisecondsLeft: how long it is worth sending; 0: for ever.
    fileprivate func append(to bytes: inout [UInt8], millisecondsLeft: UInt64) {
        FieldWriter.appendMessage(1, to: &bytes) { message in
            FieldWriter.appendField(1, method, to: &message)
            if !fields.isEmpty { FieldWriter.appendField(2, fields, to: &message) }
            FieldWriter.appendField(3, payload, to: &message)
            FieldWriter.appendField(4, millisecondsLeft, to: &message)
        }
    }

    /// Reads the messages of a group; nil where it is damaged.
    fileprivate static func messages(of group: SessionStoreGroup, _ time: StoreTime) -> [Outbox.Message]? {
        var messages: [Outbox.Message] = []
        let isWhole = group.bytes.withUnsafeBytes { bytes in
            var reader = FieldReader(bytes)
            while let tag = reader.next() {
                guard tag == .delimited(1) else { return false }
                let number = group.first + UInt64(messages.count)
                guard let message = Outbox.Message(parsing: reader.bytesValue(), number, group.added, time) else {
                    return false
                }
                messages.append(message)
            }
            return !reader.hasFailed
        }
        return isWhole && messages.count == group.count && !messages.isEmpty ? messages : nil
    }

    private init?(parsing bytes: UnsafeRawBufferPointer, _ number: UInt64, _ added: Int64, _ time: StoreTime) {
        let none = UnsafeRawBufferPointer(start: nil, count: 0)
        var (method, fields, payload) = (none, none, none)
        var millisecondsLeft: UInt64 = 0
        var reader = FieldReader(bytes)
        while let tag = reader.next() {
            switch tag {
            case .delimited(1): method = reader.bytesValue()
            case .delimited(2): fields = reader.bytesValue()
            case .delimited(3): payload = reader.bytesValue()
            case .varint(4): millisecondsLeft = reader.varint()
            default: reader.skip(tag)
            }
        }
        guard !reader.hasFailed, method.count > 0, method.count <= MethodName.maximumByteCount,
            let name = String(validating: method, as: UTF8.self)
        else { return nil }
        self.init(
            waiter: 0,
            isObserved: false,
            method: name,
            fields: [UInt8](fields),
            payload: [UInt8](payload),
            deadline: millisecondsLeft == 0 ? nil : time.deadline(millisecondsLeft, after: added)
        )
        self.number = number
    }
}
