internal import LifelineCore
internal import LifelineProtos
internal import LifelineRuntime
internal import NIOConcurrencyHelpers

/// Pushes that wait to be processed, in order, and who waits for one. What the session's window takes bounds it.
final class SessionInbox: Sendable {
    struct Item: Sendable {
        let push: Lifeline_Session_V1_Push
        let receipt: SessionEngine.Receipt

        /// Its size as windows count it.
        var byteCount: Int { SessionPayload.messageOverhead + SessionPayload.push(push).byteCount }
    }

    private struct State {
        var items = FIFO<Item>(firstNumber: 0)
        /// In the order in which they came. Gone once something is there for them.
        var waiters: [(id: UInt64, waiter: Waiter)] = []
        var lastWaiter: UInt64 = 0
        /// Whether there was ever something.
        var hasBegun = false
        /// Whether nobody wants what comes.
        var isClosed = false
        /// How it has ended, after what is left.
        var end: Result<Void, SessionError>?
        /// How many of the first are of sessions that were lost.
        var leftoverCount = 0

        /// Returns the first, and whether it is of a session that was lost.
        mutating func takeFirst() -> (Item, isLeftover: Bool)? {
            guard !items.isEmpty else { return nil }
            defer { leftoverCount = max(leftoverCount - 1, 0) }
            return (items.removeFirst(), leftoverCount > 0)
        }
    }

    private let state = NIOLockedValueBox(State())
    /// Where those of sessions that were lost are counted.
    private let leftovers: LeftoverPushes?

    init(leftovers: LeftoverPushes? = nil) { self.leftovers = leftovers }

    /// Whether something has come.
    var hasBegun: Bool { state.withLockedValue { $0.hasBegun } }

    /// How many wait.
    var count: Int { state.withLockedValue { $0.items.count } }

    /// A push came in. False when nobody wants it.
    func append(_ item: Item) -> Bool {
        let (isTaken, waiter) = state.withLockedValue { state in
            guard !state.isClosed else { return (false, nil as Waiter?) }
            state.items.append(item)
            state.hasBegun = true
            return (true, state.waiters.isEmpty ? nil : state.waiters.removeFirst().waiter)
        }
        waiter?.resume()
        return isTaken
    }

    /// Nothing comes any more. The first call counts.
    func finish(_ end: Result<Void, SessionError>) {
        let waiters = state.withLockedValue { state in
            state.end = state.end ?? end
            defer { state.waiters = [] }
            return state.waiters
        }
        for (_, waiter) in waiters { waiter.resume() }
    }

    /// The session that brought them is lost, and its window with it: they count against no other one.
    func sessionLost() {
        let new = state.withLockedValue { state in
            let new = state.items.numbers.dropFirst(state.leftoverCount)
            defer { state.leftoverCount = state.items.count }
            return new.map { state.items[$0].byteCount }
        }
        leftovers?.add(new)
    }

    /// Nobody takes anything any more. Returns what is left.
    func close() -> [Item] {
        let (items, leftoverCount) = state.withLockedValue { state in
            state.isClosed = true
            defer { (state.items, state.leftoverCount) = (FIFO(firstNumber: 0), 0) }
            return (state.items.numbers.map { state.items[$0] }, state.leftoverCount)
        }
        leftovers?.remove(items.prefix(leftoverCount).map(\.byteCount))
        return items
    }

    /// The next push, once there is one; nil at the end.
    ///
    /// - Throws: what it was ended with; `cancelled` when the task is.
    nonisolated(nonsending) func next() async throws(SessionError) -> Item? {
        while true {
            if Task.isCancelled {
                // It may have been woken for an item, which is the next one's then.
                passOn()
                throw .cancelled
            }
            let (first, end) = state.withLockedValue { ($0.takeFirst(), $0.end) }
            if let (item, isLeftover) = first {
                if isLeftover { leftovers?.remove([item.byteCount]) }
                return item
            }
            if let end {
                try end.get()
                return nil
            }
            await wait()
        }
    }

    private nonisolated(nonsending) func wait() async {
        let id = state.withLockedValue { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        await state.wait { state, waiter in
            guard state.items.isEmpty, state.end == nil else { return false }
            state.waiters.append((id, waiter))
            return true
        } withdraw: { state in
            state.waiters.firstIndex { $0.id == id }.map { state.waiters.remove(at: $0).waiter }
        }
    }

    private func passOn() {
        let waiter = state.withLockedValue { state in
            !state.items.isEmpty && !state.waiters.isEmpty ? state.waiters.removeFirst().waiter : nil
        }
        waiter?.resume()
    }
}

/// A push in somebody's hands: processed when it is let go.
final class PushInHand: Sendable {
    private let receipt: SessionEngine.Receipt
    private let engine: SessionEngine

    init(_ receipt: SessionEngine.Receipt, _ engine: SessionEngine) {
        self.receipt = receipt
        self.engine = engine
    }

    deinit { engine.finish(receipt) }
}
