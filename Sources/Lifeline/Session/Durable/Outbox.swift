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

        package init(
            waiter: UInt64,
            isObserved: Bool,
            method: String,
            fields: [UInt8],
            payload: [UInt8],
            answers: DurableInbound.Mark? = nil
        ) {
            (self.waiter, self.isObserved, self.method) = (waiter, isObserved, method)
            (self.fields, self.payload, self.answers) = (fields, payload, answers)
        }

        /// The reply to a call, as a store has kept it with the call's mark; nil where that is damaged.
        package init?(reply bytes: [UInt8], to call: DurableInbound.Mark, waiter: UInt64) {
            let group = SessionStoreGroup(first: 0, count: 1, bytes: bytes)
            guard let message = Self.messages(of: group)?.first else { return nil }
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
                answers: answers
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
            append(to: &bytes)
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
    /// Those that are stored and not handed out.
    private var ready = FIFO<Message>()
    private var readyByteCount = 0
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
        storedByteCount = content.byteCount
        self.byteLimit = max(byteLimit, 1)
    }

    /// Whether every message that was accepted is processed.
    package var isEmpty: Bool { waiting.isEmpty && writing == nil && firstOpen == open.count && readEnd == storedEnd }

    /// The last number in front of which no message comes any more.
    package var floor: UInt64 {
        min(firstOpen < open.count ? open[firstOpen].first : readEnd, keptNext, damagedFrom ?? .max) - 1
    }

    // MARK: Before the store

    /// Takes a message, which waits to be stored.
    package mutating func append(_ message: Message) {
        waiting.append(message.waiter, message)
        waitingByteCount += message.byteCount
        countReply(message, by: 1)
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
    package mutating func takeGroup(isLast: Bool = false) -> SessionStoreGroup? {
        guard writing == nil, isLast || storedByteCount < byteLimit else { return nil }
        var (messages, bytes): ([Message], [UInt8]) = ([], [])
        while messages.count < Self.groupCount, bytes.count < Self.groupByteCount, let waiter = waiting.first?.number,
            var message = removeWaiting(waiter)
        {
            message.number = next + UInt64(messages.count)
            message.append(to: &bytes)
            messages.append(message)
        }
        if messages.isEmpty { return nil }
        let group = SessionStoreGroup(first: next, count: messages.count, bytes: bytes)
        // Where storing fails nobody knows whether it has, and so no other message gets these numbers.
        next += UInt64(messages.count)
        writing = (group, messages)
        return group
    }

    /// Those whose senders are to be told when they are processed, and that no lane has, by their waiters. Nobody is
    /// told after this.
    package mutating func takeObserved() -> [UInt64] {
        defer { observed = [:] }
        return observed.values.sorted() + ready.numbers.compactMap { ready[$0] }.filter(\.isObserved).map(\.waiter)
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
            ready.append(message)
            readyByteCount += message.byteCount
        }
    }

    /// From which number on groups are to be read; nil: none, or they are being read.
    package mutating func takeReading() -> UInt64? {
        guard readingEnd == nil, readEnd < storedEnd, readyByteCount < Self.pageByteCount / 2 else { return nil }
        readingEnd = storedEnd
        return readEnd
    }

    /// Groups were read. Returns false where they are damaged: nothing of them is taken.
    package mutating func read(_ groups: [SessionStoreGroup]) -> Bool {
        guard let readingEnd = readingEnd.take() else { return true }
        var end = readEnd
        var all: [(SessionStoreGroup, [Message])] = []
        // One that was added meanwhile may be there, and its turn comes later.
        for group in groups where group.first < readingEnd {
            guard let messages = Message.messages(of: group), group.first >= end,
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
        guard let message = ready.first, message.number - floor <= UInt64(Self.openCount) else { return nil }
        return message
    }

    package mutating func takeReady() -> Message? {
        guard firstReady != nil, let message = ready.popFirst() else { return nil }
        readyByteCount -= message.byteCount
        return message
    }

    /// A message that was handed out is processed, or is given up.
    package mutating func finished(_ number: UInt64, now: MonotonicTime) {
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
    fileprivate func append(to bytes: inout [UInt8]) {
        FieldWriter.appendMessage(1, to: &bytes) { message in
            FieldWriter.appendField(1, method, to: &message)
            if !fields.isEmpty { FieldWriter.appendField(2, fields, to: &message) }
            FieldWriter.appendField(3, payload, to: &message)
        }
    }

    /// Reads the messages of a group; nil where it is damaged.
    fileprivate static func messages(of group: SessionStoreGroup) -> [Outbox.Message]? {
        var messages: [Outbox.Message] = []
        let isWhole = group.bytes.withUnsafeBytes { bytes in
            var reader = FieldReader(bytes)
            while let tag = reader.next() {
                guard tag == .delimited(1) else { return false }
                let number = group.first + UInt64(messages.count)
                guard let message = Outbox.Message(parsing: reader.bytesValue(), number: number) else { return false }
                messages.append(message)
            }
            return !reader.hasFailed
        }
        return isWhole && messages.count == group.count && !messages.isEmpty ? messages : nil
    }

    private init?(parsing bytes: UnsafeRawBufferPointer, number: UInt64) {
        let none = UnsafeRawBufferPointer(start: nil, count: 0)
        var (method, fields, payload) = (none, none, none)
        var reader = FieldReader(bytes)
        while let tag = reader.next() {
            switch tag {
            case .delimited(1): method = reader.bytesValue()
            case .delimited(2): fields = reader.bytesValue()
            case .delimited(3): payload = reader.bytesValue()
            default: reader.skip(tag)
            }
        }
        guard !reader.hasFailed, method.count > 0, method.count <= MethodName.maximumByteCount,
            let name = String(validating: method, as: UTF8.self)
        else { return nil }
        self.init(waiter: 0, isObserved: false, method: name, fields: [UInt8](fields), payload: [UInt8](payload))
        self.number = number
    }
}
