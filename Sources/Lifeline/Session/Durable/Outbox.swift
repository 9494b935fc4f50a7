internal import LifelineCore

/// The durable messages of one side, from their acceptance until the peer has processed them. They outlive sessions: a
/// message that a lane loses with its session goes to the lane of the next session.
///
/// A message waits until a group is written, which gives it its number, and goes to the lane once the group is stored.
/// Messages that lanes cannot take yet stay only in the store, and are read again later, in pages, so memory depends on
/// the messages under way and not on those kept. A group is removed when all its messages are processed.
package struct Outbox: Sendable {
    /// The most messages of one group, and about the most bytes: one write of that size does not delay others for long.
    package static var groupCount: Int { 4_096 }
    package static var groupByteCount: Int { 1 << 20 }
    /// The approximate number of bytes that are read at once, and kept for a lane that cannot take them: twice a lane's
    /// credit.
    package static var pageByteCount: Int { 512 << 10 }
    /// The most messages from the first unprocessed one to the last that a lane has. It bounds what the peer has to
    /// remember.
    package static var openCount: Int { 16_384 }
    /// How long a processed group may stay in the store when nothing else is written: 1 s.
    package static var removalDelay: Duration { .seconds(1) }

    package struct Message: Sendable, Equatable {
        /// The number in the store.
        package internal(set) var number: UInt64 = 0
        /// The number by which the sender knows the message; 0 when nobody waits for it.
        package fileprivate(set) var waiter: UInt64
        /// Whether the sender is told when the message was processed.
        package fileprivate(set) var isObserved: Bool
        package let method: String
        /// The encoded fields of a push besides its message.
        package let fields: [UInt8]
        package let payload: [UInt8]
        /// The durable call that this message replies to. The call is processed when the reply is stored. Nil for other
        /// messages.
        package let answers: DurableInbound.Mark?
        /// The end of its time to live; nil for none.
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

        /// Reads the reply to a call that a store has kept with the call's mark; nil if it is damaged.
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

        /// Returns the message with other content.
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

        /// Returns the message for storing it again.
        func waiting(as waiter: UInt64) -> Message {
            var message = self
            (message.waiter, message.number) = (waiter, 0)
            return message
        }

        /// The form in which a store keeps a reply with the mark of its call.
        package var replyBytes: [UInt8] {
            var bytes: [UInt8] = []
            append(to: &bytes, millisecondsLeft: 0)
            return bytes
        }

        var byteCount: Int { method.utf8.count + fields.count + payload.count + SessionSize.frameOverhead }
    }

    /// A group with messages that were handed out, or are about to be.
    private struct OpenGroup: Sendable {
        let first: UInt64
        let end: UInt64
        let byteCount: Int
        /// The number of its unprocessed messages.
        var leftCount: Int
    }

    /// The messages that no group has yet, by their waiters.
    private var waiting = SparseQueue<Message>()
    private var waitingByteCount = 0
    /// The number of replies that wait or are being stored, and their bytes.
    private var unstoredReplyCount = 0
    package private(set) var unstoredReplyByteCount = 0
    /// The group that is being written, if any.
    private var writing: (group: SessionStoreGroup, messages: [Message])?
    /// The messages that are stored and not handed out, by their numbers.
    private var ready = SparseQueue<Message>()
    private var readyByteCount = 0
    /// The ends of the times to live in `waiting` and `ready`.
    private var waitingDeadlines = DeadlineHeap()
    private var readyDeadlines = DeadlineHeap()
    /// Messages before this number were stored by an earlier process or session, which may have sent them.
    private let earlierEnd: UInt64
    /// The last date in the store.
    private let keptDate: Int64
    /// The date minus the other clock's time, in milliseconds; nil until the date was needed.
    private var dateOffset: Int64?
    /// Whether the date has to be stored, because messages have expired by it.
    package private(set) var isDateDue = false
    /// The last number that was left out: it belongs to no message, or to one that is not sent.
    private var lastLeftOut: UInt64 = 0
    /// The floor that the peer was told with a message after the last number was left out; 0: none.
    private var toldFloor: UInt64 = 0
    /// The waiters of observed messages that only the store has, by the messages' numbers.
    private var observed: [UInt64: UInt64] = [:]
    /// The groups of `ready` and of the messages that were handed out, in order, without the processed ones at the
    /// front.
    private var open: [OpenGroup] = []
    private var firstOpen = 0
    /// The groups that can be removed from the store.
    private var removable: [UInt64] = []
    private var removalDeadline: MonotonicTime?
    /// The number of the next message.
    private var next: UInt64
    /// The number after the last message in the store, and after those that could not be stored after it.
    private var storedEnd: UInt64
    /// The next number according to the store: after the store is opened again, new messages get numbers from this one
    /// on.
    private var keptNext: UInt64
    /// Messages before this number were read from the store, or never left the memory.
    private var readEnd: UInt64
    /// The number from which on messages cannot be read and are not sent; nil when there are none.
    private var damagedFrom: UInt64?
    /// The end of the numbers whose groups are being read; nil when none are.
    private var readingEnd: UInt64?
    /// The number of bytes in the store.
    private(set) var storedByteCount: Int
    private let byteLimit: Int

    /// - Parameters:
    ///   - content: the content of the store.
    ///   - byteLimit: the number of bytes in the store from which on senders wait.
    package init(_ content: SessionStoreContent, byteLimit: Int) {
        (next, storedEnd, keptNext, readEnd) = (content.next, content.next, content.next, content.first)
        earlierEnd = content.next
        // Far from overflow, whatever the store contains.
        keptDate = min(max(content.date, 0), 1 << 53)
        storedByteCount = content.byteCount
        self.byteLimit = max(byteLimit, 1)
    }

    /// Whether every message that was accepted is processed.
    package var isEmpty: Bool { waiting.isEmpty && writing == nil && firstOpen == open.count && readEnd == storedEnd }

    /// The last number up to which no more messages come.
    package var floor: UInt64 {
        min(firstOpen < open.count ? open[firstOpen].first : readEnd, keptNext, damagedFrom ?? .max) - 1
    }

    /// Returns the floor if the next message has to tell it to the peer, because numbers were left out. Otherwise the
    /// peer would remember each of them until the next opening.
    mutating func takeUntoldFloor() -> UInt64? {
        let floor = floor
        guard toldFloor < lastLeftOut, toldFloor < floor else { return nil }
        toldFloor = floor
        return floor
    }

    private mutating func leaveOut(_ number: UInt64) {
        // The message that was to carry the floor may be the one that is left out.
        (lastLeftOut, toldFloor) = (max(lastLeftOut, number), 0)
    }

    /// Whether an earlier process or session may have sent a message.
    func mayBeSentBefore(_ number: UInt64) -> Bool { number != 0 && number < earlierEnd }

    /// Returns the time with a date that never goes back, even over a restart, so that expired messages stay expired
    /// when the clock is set back.
    private mutating func advanced(to time: StoreTime) -> StoreTime {
        let milliseconds = time.now.nanoseconds / 1_000_000
        let offset = max(dateOffset ?? keptDate - milliseconds, min(time.date, 1 << 53) - milliseconds)
        dateOffset = offset
        return StoreTime(now: time.now, date: milliseconds + offset)
    }

    /// Returns the date for the next change of the store; nil if it needs none.
    mutating func takeDate(_ time: StoreTime, isAdding: Bool) -> Int64? {
        guard isAdding || isDateDue else { return nil }
        isDateDue = false
        return advanced(to: time).date
    }

    /// Notes that the date could not be stored.
    mutating func dateFailed() { isDateDue = true }

    // MARK: Before the store

    /// Adds a message, which waits to be stored.
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

    /// Removes a message that waits.
    private mutating func removeWaiting(_ waiter: UInt64) -> Message? {
        guard let message = waiting.remove(waiter) else { return nil }
        waitingByteCount -= message.byteCount
        if message.deadline != nil {
            waitingDeadlines.compact(liveCount: waiting.count) { [waiting] in waiting[$0] != nil }
        }
        return message
    }

    /// Gives up a message. Returns nil when it is stored, or is being stored.
    package mutating func withdraw(_ waiter: UInt64) -> Message? {
        guard let message = removeWaiting(waiter) else { return nil }
        countReply(message, by: -1)
        return message
    }

    /// Gives up all messages that no group has, except replies. Returns them in order.
    package mutating func withdrawAll() -> [Message] {
        waiting.numbers.filter { waiting[$0]?.answers == nil }.compactMap { withdraw($0) }
    }

    /// Gives up the replies that no group has. Their calls remain unprocessed.
    package mutating func withdrawReplies() {
        for waiter in waiting.numbers where waiting[waiter]?.answers != nil { _ = withdraw(waiter) }
    }

    /// Whether replies wait to be stored, or are being stored.
    package var hasUnstoredReplies: Bool { unstoredReplyCount > 0 }

    /// Whether so many bytes wait to be stored that new calls should begin later, because their replies would wait,
    /// too.
    package var isBehind: Bool { waitingByteCount >= Self.groupByteCount }

    /// Returns the next group to store; nil when nothing waits, a group is being stored, or the store is full.
    ///
    /// - Parameter isLast: whether to take all waiting messages, even if the store is full.
    package mutating func takeGroup(isLast: Bool = false, _ time: StoreTime) -> SessionStoreGroup? {
        guard writing == nil, isLast || storedByteCount < byteLimit else { return nil }
        let time = advanced(to: time)
        var (messages, bytes): ([Message], [UInt8]) = ([], [])
        while messages.count < Self.groupCount, bytes.count < Self.groupByteCount, let waiter = waiting.first?.number,
            var message = removeWaiting(waiter)
        {
            message.number = next + UInt64(messages.count)
            // A message whose time to live is over by now ends once it is stored.
            let left = message.deadline?.timeoutMilliseconds(now: time.now) ?? 0
            message.append(to: &bytes, millisecondsLeft: left)
            messages.append(message)
        }
        if messages.isEmpty { return nil }
        let group = SessionStoreGroup(first: next, count: messages.count, bytes: bytes, added: time.date)
        // If storing fails, it is unknown whether the group was stored. So no other message gets these numbers.
        next += UInt64(messages.count)
        writing = (group, messages)
        return group
    }

    /// Removes and returns the waiters of observed messages that no lane has. Their senders are not told after this.
    package mutating func takeObserved() -> [UInt64] {
        defer { observed = [:] }
        return observed.values.sorted() + ready.elements.filter(\.isObserved).map(\.waiter)
    }

    // MARK: In the store

    /// The calls whose replies are in the group that is being stored.
    package var answered: [DurableInbound.Mark] { writing?.messages.compactMap(\.answers) ?? [] }

    /// Notes that the group is stored. Returns its messages.
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

    /// Notes that the group could not be stored. Returns its messages.
    package mutating func groupFailed() -> [Message] {
        guard let (_, messages) = writing.take() else { return [] }
        for message in messages { countReply(message, by: -1) }
        // The numbers stay unused.
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

    /// Begins to read groups, and returns the number from which on to read; nil if there is nothing to read, or reading
    /// is under way.
    package mutating func takeReading() -> UInt64? {
        guard readingEnd == nil, readEnd < storedEnd, readyByteCount < Self.pageByteCount / 2 else { return nil }
        readingEnd = storedEnd
        return readEnd
    }

    /// Takes the groups that were read. Returns false if they are damaged: then none is taken.
    package mutating func read(_ groups: [SessionStoreGroup], _ time: StoreTime) -> Bool {
        guard let readingEnd = readingEnd.take() else { return true }
        let time = advanced(to: time)
        var end = readEnd
        var all: [(SessionStoreGroup, [Message])] = []
        // A group that was added meanwhile may be among them; its turn comes later.
        for group in groups where group.first < readingEnd {
            guard let messages = Message.messages(of: group, time), group.first >= end,
                readingEnd - group.first >= UInt64(messages.count)
            else { return false }
            all.append((group, messages))
            end = group.first + UInt64(messages.count)
        }
        for (group, messages) in all { open(group, messages) }
        // If there is none, the numbers were not stored.
        readEnd = all.isEmpty ? readingEnd : end
        return true
    }

    /// Gives up reading. The groups stay in the store with all later groups, and are not sent.
    package mutating func giveUpReading() {
        damagedFrom = damagedFrom ?? readEnd
        readEnd = storedEnd
    }

    /// Notes that reading failed, and has to be tried again.
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

    /// Removes and returns the next expired message that no lane has. Its number is 0 if it is not stored.
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

    /// Notes that a message that was handed out is processed, or given up.
    ///
    /// - Parameter isLeftOut: whether it is given up, so that its number will not come.
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

    /// The time at which groups have to be removed even if nothing else is written; nil when there is nothing to
    /// remove.
    package var nextDeadline: MonotonicTime? { removalDeadline }

    /// The time at which `takeExpired` has a message.
    package var nextExpiry: MonotonicTime? { .earliest(waitingDeadlines.next, readyDeadlines.next) }

    package func isRemovalDue(now: MonotonicTime) -> Bool { removalDeadline.map { $0 <= now } ?? false }

    /// Returns the groups to remove with the next change.
    package mutating func takeRemovable() -> [UInt64] {
        defer { (removable, removalDeadline) = ([], nil) }
        return removable
    }

    /// Notes that the groups could not be removed.
    package mutating func removalFailed(_ groups: [UInt64], now: MonotonicTime) {
        guard !groups.isEmpty else { return }
        removable += groups
        removalDeadline = removalDeadline ?? now + Self.removalDelay
    }
}

// A group's bytes: a protobuf message for each, in field 1.
extension Outbox.Message {
    /// - Parameter millisecondsLeft: its remaining time to live; 0 for no limit.
    fileprivate func append(to bytes: inout [UInt8], millisecondsLeft: UInt64) {
        FieldWriter.appendMessage(1, to: &bytes) { message in
            FieldWriter.appendField(1, method, to: &message)
            if !fields.isEmpty { FieldWriter.appendField(2, fields, to: &message) }
            FieldWriter.appendField(3, payload, to: &message)
            FieldWriter.appendField(4, millisecondsLeft, to: &message)
        }
    }

    /// Reads the messages of a group; nil if it is damaged.
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
