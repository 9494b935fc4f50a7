internal import LifelineCore

/// The messages that share a credit, or wait for the same.
enum MessageScope: Hashable, Sendable {
    /// Pushes of a method of this side's.
    case pushes(String)
    /// Parts of a request of this side's.
    case requestParts(serial: UInt32)
    /// Parts of the response to a request of the peer's.
    case responseParts(IncomingRequest)
    /// Requests of this side's, which need no credit.
    case requests
}

/// A message that its sender has to wait with: there is no credit for it, no room in the log, or the peer goes away.
struct WaitingMessage: Sendable {
    let kind: FrameKind
    let scope: MessageScope
    /// By which its sender knows it; 0: its sender does not wait for anything.
    var number: UInt64 = 0
    /// Of a request or a part; 0 in pushes.
    var serial: UInt32 = 0
    /// Of a push or a request; else empty.
    var method = ""
    var fields: [UInt8] = []
    var payload: [UInt8] = []
    var delivery = SessionDelivery.reliable
    /// Whether its sender is told when it was processed.
    var isObserved = false
    /// Until when it is worth sending; of a request: until when its sender waits.
    var deadline: MonotonicTime?
    /// Whether its sender waits until it is accepted.
    var isAwaited = true
    /// Of a request: whether parts follow.
    var hasParts = false
    /// Its number in the store; 0: it is not durable.
    var durable: UInt64 = 0
    /// Of a durable one: whether it was sent in a session that was lost, or perhaps by an earlier process or session.
    var mayHaveCome = false
    /// The durable call that it is the reply to, where no store has the reply: that is processed when this is.
    var answers: SessionMachine.Receipt?

    var contentByteCount: Int { fields.count + payload.count }
    /// Its cost, roughly: numbers and tags are not counted.
    var cost: Int { contentByteCount + SessionSize.frameOverhead }
}

/// The messages that wait, each scope's in order, and the scopes that may go on, by turns.
struct WaitingMessages: Sendable {
    private var queues: [MessageScope: SparseQueue<WaitingMessage>] = [:]
    /// The order of those that have a number.
    private var orders: [UInt64: (order: UInt64, scope: MessageScope)] = [:]
    private var nextOrder: UInt64 = 0
    /// Scopes to be looked at, in their order.
    private var ready = FIFO<MessageScope>()
    private var isReady: Set<MessageScope> = []
    private(set) var byteCount = 0
    /// That of the durable ones.
    private(set) var durableByteCount = 0
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }
    /// Whether a scope is to be looked at: there was no room for it.
    var hasReady: Bool { !ready.isEmpty }

    func isWaiting(in scope: MessageScope) -> Bool { count > 0 && queues[scope] != nil }

    /// Whether something else than pushes waits.
    var hasParts: Bool { queues.keys.contains { if case .pushes = $0 { false } else { true } } }

    func count(of scope: MessageScope) -> Int { queues[scope]?.count ?? 0 }

    func first(of scope: MessageScope) -> WaitingMessage? { queues[scope]?.first?.element }

    subscript(number: UInt64) -> WaitingMessage? { orders[number].flatMap { queues[$0.scope]?[$0.order] } }

    mutating func append(_ message: WaitingMessage) {
        nextOrder += 1
        queues[message.scope, default: SparseQueue()].append(nextOrder, message)
        if message.number != 0 { orders[message.number] = (nextOrder, message.scope) }
        byteCount += message.cost
        if message.durable != 0 { durableByteCount += message.cost }
        count += 1
    }

    /// Puts another message of the same scope in the place of one that waits.
    mutating func replace(_ number: UInt64, with message: WaitingMessage) {
        guard let (order, scope) = orders.removeValue(forKey: number), let old = queues[scope]?[order] else { return }
        byteCount += message.cost - old.cost
        queues[scope]?.update(order) { $0 = message }
        orders[message.number] = (order, scope)
    }

    @discardableResult
    mutating func remove(_ number: UInt64) -> WaitingMessage? {
        guard let (order, scope) = orders[number] else { return nil }
        return remove(order, of: scope)
    }

    /// Removes the first of a scope.
    @discardableResult
    mutating func removeFirst(of scope: MessageScope) -> WaitingMessage? {
        queues[scope]?.first.flatMap { remove($0.number, of: scope) }
    }

    private mutating func remove(_ order: UInt64, of scope: MessageScope) -> WaitingMessage? {
        guard let message = queues[scope]?.remove(order) else { return nil }
        if message.number != 0 { orders[message.number] = nil }
        if queues[scope]?.isEmpty == true { queues[scope] = nil }
        byteCount -= message.cost
        if message.durable != 0 { durableByteCount -= message.cost }
        count -= 1
        // While nothing waits, nobody looks at the scopes, and one that were left would have the next message wait.
        if count == 0 { (ready, isReady) = (FIFO(), []) }
        return message
    }

    /// Removes and returns those of a scope.
    mutating func removeAll(of scope: MessageScope) -> [WaitingMessage] {
        var removed: [WaitingMessage] = []
        while let message = removeFirst(of: scope) { removed.append(message) }
        return removed
    }

    /// Removes and returns all, in the order in which they came.
    mutating func removeAll() -> [WaitingMessage] {
        let all = queues.values.flatMap { queue in queue.numbers.map { ($0, queue[$0]) } }.sorted { $0.0 < $1.0 }
        self = WaitingMessages()
        return all.compactMap(\.1)
    }

    /// Has a scope looked at.
    mutating func makeReady(_ scope: MessageScope) {
        guard isWaiting(in: scope), isReady.insert(scope).inserted else { return }
        ready.append(scope)
    }

    /// Has all scopes looked at, in the order of their oldest messages.
    mutating func makeAllReady() {
        let oldest = queues.compactMap { scope, queue in queue.first.map { ($0.number, scope) } }
        for (_, scope) in oldest.sorted(by: { $0.0 < $1.0 }) { makeReady(scope) }
    }

    mutating func takeReady() -> MessageScope? {
        guard let scope = ready.popFirst() else { return nil }
        isReady.remove(scope)
        return scope
    }
}
