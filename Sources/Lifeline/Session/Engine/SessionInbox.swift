internal import LifelineCore
internal import LifelineRuntime

/// Messages that wait to be processed, in order, and who waits for one: the pushes of a method, or the parts of a
/// request or a response. The credit of that method or stream bounds it.
///
/// It belongs to an engine, under whose lock it changes.
final class SessionInbox: Sendable {
    /// Messages of one session, one behind the other.
    struct Run {
        struct Entry {
            /// Where its bytes end.
            let end: Int
            /// 0: it has none.
            let place: UInt64
            let cost: Int
        }

        /// From when on no more is added: 16 KiB, as all bytes stay until the last message is processed.
        static let fullByteCount = 16 << 10

        /// The session and the source of all of them.
        fileprivate let first: SessionMachine.Receipt
        fileprivate(set) var bytes: [UInt8] = []
        fileprivate(set) var entries: [Entry] = []
        /// Of the few messages that have some, by their numbers.
        fileprivate(set) var metadata: [Int: SessionMetadata] = [:]
        /// How many were taken.
        fileprivate(set) var head = 0
        /// Ascends. Those that come back are in this order.
        fileprivate let number: UInt64
        /// Whether its session is lost.
        fileprivate(set) var isLeftover = false

        var session: UInt64 { first.session }
        var count: Int { entries.count - head }

        fileprivate init(_ first: SessionMachine.Receipt, number: UInt64) {
            (self.first, self.number) = (first, number)
        }

        /// Whether a message may be put behind its last one: no newer run was taken, and no message of it, so that a
        /// run that never becomes empty does not grow for ever.
        @inline(__always)
        fileprivate func takesMore(_ receipt: SessionMachine.Receipt, newest: UInt64) -> Bool {
            head == 0 && bytes.count < Self.fullByteCount && number == newest && session == receipt.session
                && !isLeftover
        }

        @inline(__always)
        fileprivate mutating func append(
            _ content: UnsafeRawBufferPointer,
            metadata entry: @autoclosure () -> SessionMetadata?,
            _ receipt: SessionMachine.Receipt
        ) {
            bytes.reserve(content.count)
            entries.reserve(1)
            bytes.append(contentsOf: content)
            if let entry = entry() { metadata[entries.count] = entry }
            entries.append(Entry(end: bytes.count, place: receipt.place, cost: receipt.cost))
        }

        @inline(__always)
        func range(_ index: Int) -> Range<Int> { (index == 0 ? 0 : entries[index - 1].end)..<entries[index].end }

        func payload(_ index: Int) -> ArraySlice<UInt8> { bytes[range(index)] }

        @inline(__always)
        func withPayload<Result, Failure: Error>(
            _ index: Int,
            _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
        ) throws(Failure) -> Result {
            try bytes.span.withUnsafeBytes { (bytes) throws(Failure) in
                try body(UnsafeRawBufferPointer(rebasing: bytes[range(index)]))
            }
        }

        @inline(__always)
        func metadata(_ index: Int) -> SessionMetadata { metadata.isEmpty ? [:] : metadata[index] ?? [:] }

        /// What those from an index on count for.
        func size(from index: Int) -> SessionSize {
            var size = SessionSize()
            for entry in entries[index...] { size.add(entry.cost) }
            return size
        }

        /// What those count for that were not taken, among messages of lost sessions.
        var leftoverSize: SessionSize { isLeftover ? size(from: head) : SessionSize() }

        /// Calls `body` with the receipts of some: one for all that came one behind the other.
        func forEachReceipt(_ indices: Range<Int>, _ body: (SessionMachine.Receipt) -> Void) {
            var index = indices.lowerBound
            while index < indices.upperBound {
                let place = entries[index].place
                var (count, cost) = (1, entries[index].cost)
                index += 1
                while place != 0, index < indices.upperBound, entries[index].place == place + UInt64(count) {
                    cost += entries[index].cost
                    count += 1
                    index += 1
                }
                body(first.with(place: place, count: count, cost: cost))
            }
        }

        /// Takes the first message out, into a run of its own.
        fileprivate mutating func removeFirst() -> Run {
            var run = Run(first, number: number)
            run.bytes = [UInt8](payload(head))
            run.entries = [Entry(end: run.bytes.count, place: entries[head].place, cost: entries[head].cost)]
            if let metadata = metadata[head] { run.metadata[0] = metadata }
            run.isLeftover = isLeftover
            head += 1
            return run
        }
    }

    private struct State {
        /// In the order of their numbers.
        var runs: [Run] = []
        /// That of the newest one.
        var lastNumber: UInt64 = 0
        /// Runs in the hands of readers, of which some messages may not be handed out.
        var taken: [TakenMessages] = []
        /// How long the last run was that was taken: so much room the next one has from the beginning.
        var room = (byteCount: 0, count: 0)
        /// In the order in which they came. Gone once something is there for them.
        var waiters: [(id: UInt64, waiter: Waiter)] = []
        var lastWaiter: UInt64 = 0
        var hasBegun = false
        var isClosed = false
        var isDue = false
        /// How it has ended, after what is left.
        var end: Result<Void, SessionError>?

        @inline(never)
        mutating func beginRun(_ receipt: SessionMachine.Receipt) {
            lastNumber += 1
            var run = Run(receipt, number: lastNumber)
            run.bytes.reserveCapacity(min(room.byteCount, Run.fullByteCount))
            run.entries.reserveCapacity(min(room.count, 256))
            runs.append(run)
        }
    }

    // Touched only under the lock of the engine, so that a read of many frames takes one lock for all of them, and the
    // language need not look for other accesses.
    @exclusivity(unchecked) private nonisolated(unsafe) var state = State()

    /// The number of the synchronous method whose pushes these are; nil: they are no such.
    let synchronousMethod: Int?

    /// Whether it goes on with the next session of a client: pushes do.
    let outlivesSessions: Bool

    init(synchronousMethod: Int? = nil, outlivesSessions: Bool = false) {
        self.synchronousMethod = synchronousMethod
        self.outlivesSessions = outlivesSessions
    }

    // MARK: Under the engine's lock

    /// Whether something has come.
    var hasBegun: Bool { state.hasBegun }

    /// How many wait.
    var count: Int { state.runs.reduce(0) { $0 + $1.count } }

    /// A message has come. Returns false when nobody wants it.
    @inline(__always)
    func append(_ message: InboundMessage, _ receipt: SessionMachine.Receipt) -> Bool {
        append(message.payload, metadata: message.metadataCount > 0 ? message.metadata : nil, receipt)
    }

    /// The same of other bytes of a message.
    @inline(__always)
    func append(
        _ content: UnsafeRawBufferPointer,
        metadata: @autoclosure () -> SessionMetadata?,
        _ receipt: SessionMachine.Receipt
    ) -> Bool {
        if state.isClosed { return false }
        let last = state.runs.count - 1
        if last < 0 || !state.runs[last].takesMore(receipt, newest: state.lastNumber) { state.beginRun(receipt) }
        state.runs[state.runs.count - 1].append(content, metadata: metadata(), receipt)
        state.hasBegun = true
        return true
    }

    /// Of a synchronous method: whether its messages are to be taken, and were not before this one.
    @inline(__always)
    func becomesDue() -> Bool {
        defer { state.isDue = true }
        return !state.isDue
    }

    /// Of a synchronous method: what is to be taken.
    func takeDueRuns() -> [Run] {
        state.isDue = false
        defer { state.runs = [] }
        return state.runs
    }

    /// A waiter for whom there is something, so that it is resumed; nil: nobody waits.
    @inline(__always)
    func takeWaiter() -> Waiter? {
        if state.waiters.isEmpty { return nil }
        return !state.runs.isEmpty || state.end != nil ? state.waiters.removeFirst().waiter : nil
    }

    /// Nothing comes any more. The first call counts. Returns those who wait, to be resumed.
    func finish(_ end: Result<Void, SessionError>) -> [Waiter] {
        state.end = state.end ?? end
        defer { state.waiters = [] }
        return state.waiters.map(\.waiter)
    }

    /// Messages that are to be taken next; how the inbox has ended where there are none.
    ///
    /// - Parameter isAlone: whether to take one message only.
    func takeRun(isAlone: Bool) -> (Run?, end: Result<Void, SessionError>?) {
        if state.runs.isEmpty { takeBackRests() }
        guard !state.runs.isEmpty else { return (nil, state.end) }
        if isAlone, state.runs[0].count > 1 { return (state.runs[0].removeFirst(), nil) }
        let run = state.runs.removeFirst()
        state.room = (run.bytes.count, run.entries.count)
        return (run, nil)
    }

    /// What a reader holds and was not handed out is for whoever asks first.
    private func takeBackRests() {
        for messages in state.taken {
            guard let rest = messages.takeBack() else { continue }
            _ = putBack(messages.run, from: rest.lowerBound, isLeftover: false)
        }
    }

    /// A run is in the hands of a reader.
    func handOver(_ run: Run) -> TakenMessages {
        let messages = TakenMessages(run, of: self)
        state.taken.append(messages)
        return messages
    }

    /// A reader is done with a run.
    func forget(_ messages: TakenMessages) { state.taken.removeAll { $0 === messages } }

    /// Messages that were taken and not handed out are among the next ones again. Returns false when nobody wants them.
    ///
    /// - Parameters:
    ///   - head: how many were handed out.
    ///   - isLeftover: whether their session is lost.
    func putBack(_ run: Run, from head: Int, isLeftover: Bool) -> Bool {
        if state.isClosed { return false }
        var run = run
        (run.head, run.isLeftover) = (head, isLeftover)
        // One that was taken alone goes before those that it was taken from.
        let index = state.runs.firstIndex { $0.number >= run.number } ?? state.runs.count
        state.runs.insert(run, at: index)
        return true
    }

    /// The session that brought the messages is lost. Returns the size of those whose credit is gone with it.
    func sessionLost() -> SessionSize {
        var size = SessionSize()
        for index in state.runs.indices where !state.runs[index].isLeftover {
            state.runs[index].isLeftover = true
            size = size + state.runs[index].size(from: state.runs[index].head)
        }
        return size
    }

    /// Nobody takes anything any more. Returns what is left.
    func close() -> [Run] {
        takeBackRests()
        defer { state.runs = [] }
        state.isClosed = true
        return state.runs
    }

    /// Adds a waiter. Returns false when there is something to take.
    func park(_ waiter: Waiter, _ id: UInt64) -> Bool {
        guard state.runs.isEmpty, state.end == nil else { return false }
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
