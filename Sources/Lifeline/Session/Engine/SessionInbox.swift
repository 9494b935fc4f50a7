internal import LifelineCore
internal import LifelineRuntime

/// Messages that wait to be processed, in order, and who waits for one: the pushes of a method, or the parts of a
/// request or a response. The credit of that method or stream bounds it.
///
/// It belongs to an engine, under whose lock it changes.
final class SessionInbox: Sendable {
    /// A message in somebody's hands.
    struct Item: Sendable {
        /// Stands among the bytes of other messages.
        let payload: ArraySlice<UInt8>
        let metadata: SessionMetadata
        let receipt: SessionMachine.Receipt
    }

    /// Messages one behind the other.
    struct Run {
        struct Entry {
            let end: Int
            let receipt: SessionMachine.Receipt
        }

        var bytes: [UInt8] = []
        var entries: [Entry] = []
        /// Of the few messages that have some, by their numbers.
        var metadata: [Int: SessionMetadata] = [:]
        /// How many entries were taken.
        var head = 0

        var isEmpty: Bool { head == entries.count }
        var count: Int { entries.count - head }

        mutating func append(_ message: InboundMessage, _ receipt: SessionMachine.Receipt) {
            bytes.reserve(message.payload.count)
            entries.reserve(1)
            bytes.append(contentsOf: message.payload)
            if message.metadataCount > 0 { metadata[entries.count] = message.metadata }
            entries.append(Entry(end: bytes.count, receipt: receipt))
        }

        /// Makes room for other messages; keeps some memory for them where there is little.
        mutating func removeAll() {
            guard bytes.capacity <= 4 << 10, entries.capacity <= 64 else { return self = Run() }
            bytes.removeAll(keepingCapacity: true)
            entries.removeAll(keepingCapacity: true)
            metadata = [:]
            head = 0
        }

        var firstPayload: ArraySlice<UInt8> { bytes[(head == 0 ? 0 : entries[head - 1].end)..<entries[head].end] }

        mutating func removeFirst() -> Item {
            let payload = firstPayload
            let metadata = metadata.isEmpty ? [:] : metadata[head] ?? [:]
            return Item(payload: payload, metadata: metadata, receipt: dropFirst().receipt)
        }

        mutating func dropFirst() -> Entry {
            head += 1
            return entries[head - 1]
        }
    }

    /// The answer to who asks for the next message.
    enum Next {
        case item(Item)
        /// Nothing comes any more.
        case end(Result<Void, SessionError>)
        /// Not yet.
        case nothing
    }

    private struct State {
        /// The run that is being taken: it does not change meanwhile, so that its bytes need not be copied.
        var taken = Run()
        /// Messages that have come since.
        var arrived = Run()
        /// In the order in which they came. Gone once something is there for them.
        var waiters: [(id: UInt64, waiter: Waiter)] = []
        var lastWaiter: UInt64 = 0
        var hasBegun = false
        var isClosed = false
        /// How it has ended, after what is left.
        var end: Result<Void, SessionError>?
        /// How many of the first are of sessions that were lost.
        var leftoverCount = 0

        /// Messages that have come are taken next. A method of the value, as two of its fields change at once.
        mutating func takeArrived() { swap(&taken, &arrived) }
    }

    // Touched only under the lock of the engine, so that a read of many frames takes one lock for all of them.
    private nonisolated(unsafe) var state = State()

    init() {}

    // MARK: Under the engine's lock

    /// Whether something has come.
    var hasBegun: Bool { state.hasBegun }

    /// How many wait.
    var count: Int { state.taken.count + state.arrived.count }

    /// A message has come. Returns false when nobody wants it.
    @inline(__always)
    func append(_ message: InboundMessage, _ receipt: SessionMachine.Receipt) -> Bool {
        if state.isClosed { return false }
        state.arrived.append(message, receipt)
        state.hasBegun = true
        return true
    }

    /// A waiter for whom there is something, so that it is resumed; nil: nobody waits.
    @inline(__always)
    func takeWaiter() -> Waiter? {
        if state.waiters.isEmpty { return nil }
        return count > 0 || state.end != nil ? state.waiters.removeFirst().waiter : nil
    }

    /// Nothing comes any more. The first call counts. Returns those who wait, to be resumed.
    func finish(_ end: Result<Void, SessionError>) -> [Waiter] {
        state.end = state.end ?? end
        defer { state.waiters = [] }
        return state.waiters.map(\.waiter)
    }

    /// The next message, and whether it is of a session that was lost.
    @inline(__always)
    func next() -> (Next, isLeftover: Bool) {
        if state.taken.isEmpty {
            guard !state.arrived.isEmpty else {
                return (state.end.map { .end($0) } ?? .nothing, false)
            }
            state.takeArrived()
            state.arrived.removeAll()
        }
        let isLeftover = state.leftoverCount > 0
        if isLeftover { state.leftoverCount -= 1 }
        return (.item(state.taken.removeFirst()), isLeftover)
    }

    /// All messages that are to be taken next, those of them that are of a session that was lost, and how the inbox has
    /// ended where there is none.
    func nextRun() -> (Run?, leftovers: [SessionMachine.Receipt], end: Result<Void, SessionError>?) {
        if state.taken.isEmpty {
            state.takeArrived()
            state.arrived.removeAll()
        }
        if state.taken.isEmpty { return (nil, [], state.end) }
        var run = Run()
        swap(&run, &state.taken)
        let leftoverCount = min(state.leftoverCount, run.count)
        state.leftoverCount -= leftoverCount
        return (run, run.entries[run.head...].prefix(leftoverCount).map(\.receipt), nil)
    }

    /// Messages that were taken and not handed out are the next ones again. Returns false where others are.
    func putBack(_ run: Run) -> Bool {
        guard state.taken.isEmpty, !state.isClosed else { return false }
        state.taken = run
        return true
    }

    /// The session that brought them is lost. Returns those whose credit is gone with it.
    func sessionLost() -> [SessionMachine.Receipt] {
        let new = receipts.dropFirst(state.leftoverCount)
        state.leftoverCount = count
        return Array(new)
    }

    /// Nobody takes anything any more. Returns what is left, and how many of them are of sessions that were lost.
    func close() -> (receipts: [SessionMachine.Receipt], leftoverCount: Int) {
        defer { (state.taken, state.arrived, state.leftoverCount) = (Run(), Run(), 0) }
        state.isClosed = true
        return (receipts, state.leftoverCount)
    }

    private var receipts: [SessionMachine.Receipt] {
        (state.taken.entries.dropFirst(state.taken.head) + state.arrived.entries).map(\.receipt)
    }

    /// Adds a waiter. Returns false when there is something to take.
    func park(_ waiter: Waiter, _ id: UInt64) -> Bool {
        guard count == 0, state.end == nil else { return false }
        state.waiters.append((id, waiter))
        return true
    }

    func makeWaiterID() -> UInt64 {
        state.lastWaiter += 1
        return state.lastWaiter
    }

    func withdraw(_ id: UInt64) -> Waiter? {
        state.waiters.firstIndex { $0.id == id }.map { state.waiters.remove(at: $0).waiter }
    }
}

extension Array {
    /// Makes room for more elements: a large array grows by a quarter, as one that doubles would take twice its credit.
    @inline(__always)
    fileprivate mutating func reserve(_ more: Int) {
        if count + more > capacity, capacity >= 1 << 10 { reserveCapacity(count + Swift.max(more, count / 4)) }
    }
}
