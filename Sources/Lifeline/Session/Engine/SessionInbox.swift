internal import LifelineCore
internal import LifelineRuntime

/// The messages that wait to be processed, in order, and their waiting readers: the pushes of a method, or the parts of
/// a request or a response. The credit of that method or stream bounds it.
///
/// It belongs to an engine, under whose lock it changes.
final class SessionInbox: Sendable {
    /// Consecutive messages of one session.
    struct Run {
        struct Entry {
            /// The end of the message's bytes.
            let end: Int
            /// The place of the message; 0 if it has none.
            let place: UInt64
            let cost: Int
        }

        /// The size from which on no more messages are added: 16 KiB, because all bytes stay until the last message is
        /// processed.
        static let fullByteCount = 16 << 10

        /// The session and the source of all of them.
        fileprivate let first: SessionMachine.Receipt
        fileprivate(set) var bytes: [UInt8] = []
        fileprivate(set) var entries: [Entry] = []
        /// The metadata of the few messages that have some, by their indices.
        fileprivate(set) var metadata: [Int: SessionMetadata] = [:]
        /// The number of messages taken.
        fileprivate(set) var head = 0
        /// An ascending number. Runs that are put back are sorted by it.
        fileprivate let number: UInt64
        /// Whether its session is lost.
        fileprivate(set) var isLeftover = false

        var session: UInt64 { first.session }
        var count: Int { entries.count - head }

        fileprivate init(_ first: SessionMachine.Receipt, number: UInt64) {
            (self.first, self.number) = (first, number)
        }

        /// Whether a message may be appended: only if no newer run and no message of this run was taken, so that a run
        /// that never becomes empty does not grow for ever.
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

        /// Returns the size of the messages from an index on.
        func size(from index: Int) -> SessionSize {
            var size = SessionSize()
            for entry in entries[index...] { size.add(entry.cost) }
            return size
        }

        /// The size of the messages that were not taken, if their session is lost.
        var leftoverSize: SessionSize { isLeftover ? size(from: head) : SessionSize() }

        /// Calls `body` with the receipts of some messages: one receipt for all consecutive ones.
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

        /// Moves the first message into its own run.
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
        /// The runs, in the order of their numbers.
        var runs: [Run] = []
        /// The number of the newest run.
        var lastNumber: UInt64 = 0
        /// The runs that readers hold. Some of their messages may not be handed out yet.
        var taken: [TakenMessages] = []
        /// The size of the last run that was taken: the next one reserves as much room.
        var room = (byteCount: 0, count: 0)
        /// The waiters in the order of their arrival. They are removed once there is a message for them.
        var waiters: [(id: UInt64, waiter: Waiter)] = []
        var lastWaiter: UInt64 = 0
        var hasBegun = false
        var isClosed = false
        var isDue = false
        /// How the inbox has ended, after the remaining messages.
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

    // Accessed only under the lock of the engine, so that a read of many frames takes one lock for all of them, and
    // Swift need not check for exclusive access.
    @exclusivity(unchecked) private nonisolated(unsafe) var state = State()

    /// The number of the synchronous method that the pushes belong to; nil for other messages.
    let synchronousMethod: Int?

    /// Whether the inbox continues with the next session of a client, as that of pushes does.
    let outlivesSessions: Bool

    init(synchronousMethod: Int? = nil, outlivesSessions: Bool = false) {
        self.synchronousMethod = synchronousMethod
        self.outlivesSessions = outlivesSessions
    }

    // MARK: Under the engine's lock

    /// Whether any message has arrived.
    var hasBegun: Bool { state.hasBegun }

    /// The number of waiting messages.
    var count: Int { state.runs.reduce(0) { $0 + $1.count } }

    /// Adds a received message. Returns false if the inbox is closed.
    @inline(__always)
    func append(_ message: InboundMessage, _ receipt: SessionMachine.Receipt) -> Bool {
        append(message.payload, metadata: message.metadataCount > 0 ? message.metadata : nil, receipt)
    }

    /// Does the same with other bytes of a message.
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

    /// For a synchronous method: whether its messages are now due to be taken, and were not before this one.
    @inline(__always)
    func becomesDue() -> Bool {
        defer { state.isDue = true }
        return !state.isDue
    }

    /// For a synchronous method: removes and returns the runs that are due.
    func takeDueRuns() -> [Run] {
        state.isDue = false
        defer { state.runs = [] }
        return state.runs
    }

    /// Removes and returns a waiter to resume, because there is a message for it or the inbox has ended. Returns nil if
    /// no reader waits, or if there is nothing to tell it.
    @inline(__always)
    func takeWaiter() -> Waiter? {
        if state.waiters.isEmpty { return nil }
        return !state.runs.isEmpty || state.end != nil ? state.waiters.removeFirst().waiter : nil
    }

    /// Ends the inbox: no more messages come. Only the first call counts. Returns the waiters to resume.
    func finish(_ end: Result<Void, SessionError>) -> [Waiter] {
        state.end = state.end ?? end
        defer { state.waiters = [] }
        return state.waiters.map(\.waiter)
    }

    /// Takes the next messages; returns how the inbox has ended if there are none.
    ///
    /// - Parameter isAlone: whether to take only one message.
    func takeRun(isAlone: Bool) -> (Run?, end: Result<Void, SessionError>?) {
        if state.runs.isEmpty { takeBackRests() }
        guard !state.runs.isEmpty else { return (nil, state.end) }
        if isAlone, state.runs[0].count > 1 { return (state.runs[0].removeFirst(), nil) }
        let run = state.runs.removeFirst()
        state.room = (run.bytes.count, run.entries.count)
        return (run, nil)
    }

    /// Takes back messages that readers hold but have not handed out, for the next reader that asks.
    private func takeBackRests() {
        for messages in state.taken {
            guard let rest = messages.takeBack() else { continue }
            _ = putBack(messages.run, from: rest.lowerBound, isLeftover: false)
        }
    }

    /// Hands a run to a reader.
    func handOver(_ run: Run) -> TakenMessages {
        let messages = TakenMessages(run, of: self)
        state.taken.append(messages)
        return messages
    }

    /// Notes that a reader is done with a run.
    func forget(_ messages: TakenMessages) { state.taken.removeAll { $0 === messages } }

    /// Puts back messages that were taken and not handed out. Returns false if the inbox is closed.
    ///
    /// - Parameters:
    ///   - head: the number of messages handed out.
    ///   - isLeftover: whether the session of the messages is lost.
    func putBack(_ run: Run, from head: Int, isLeftover: Bool) -> Bool {
        if state.isClosed { return false }
        var run = run
        (run.head, run.isLeftover) = (head, isLeftover)
        // A message that was taken alone goes before the run that it was taken from.
        let index = state.runs.firstIndex { $0.number >= run.number } ?? state.runs.count
        state.runs.insert(run, at: index)
        return true
    }

    /// Notes that the session of the messages is lost. Returns the size of the messages whose credit is lost with it.
    func sessionLost() -> SessionSize {
        var size = SessionSize()
        for index in state.runs.indices where !state.runs[index].isLeftover {
            state.runs[index].isLeftover = true
            size = size + state.runs[index].size(from: state.runs[index].head)
        }
        return size
    }

    /// Closes the inbox: no more messages are taken. Returns the remaining ones.
    func close() -> [Run] {
        takeBackRests()
        defer { state.runs = [] }
        state.isClosed = true
        return state.runs
    }

    /// Adds a waiter. Returns false when there is a message to take.
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
    /// Makes room for more elements. A large array grows by a quarter, because doubling could take twice the credit.
    @inline(__always)
    fileprivate mutating func reserve(_ more: Int) {
        if count + more > capacity, capacity >= 1 << 10 { reserveCapacity(count + Swift.max(more, count / 4)) }
    }
}
