internal import LifelineCore

/// A group of messages that share a credit, or wait for the same condition.
enum MessageScope: Hashable, Sendable {
    /// Pushes of a method of this side.
    case pushes(String)
    /// Parts of a request of this side.
    case requestParts(serial: UInt32)
    /// Parts of the response to a request of the peer.
    case responseParts(IncomingRequest)
    /// Requests of this side, which need no credit.
    case requests
}

/// A message that has to wait: for credit, for room in the log, or because the peer goes away.
struct WaitingMessage: Sendable {
    let kind: FrameKind
    let scope: MessageScope
    /// The sender's number for the message; 0 if the sender does not wait.
    var number: UInt64 = 0
    /// The serial of a request or a part; 0 for pushes.
    var serial: UInt32 = 0
    /// The method of a push or a request; empty for parts.
    var method = ""
    var fields: [UInt8] = []
    var payload: [UInt8] = []
    var delivery = SessionDelivery.reliable
    /// Whether the sender is told when the message was processed.
    var isObserved = false
    /// The end of the message's time to live; for a request: the time until which its caller waits.
    var deadline: MonotonicTime?
    /// Whether the sender waits until the message is accepted.
    var isAwaited = true
    /// Whether parts follow a request.
    var hasParts = false
    /// The number in the store; 0 if the message is not durable.
    var durable: UInt64 = 0
    /// For a durable message: whether it was sent in a lost session, or perhaps by an earlier process or session.
    var mayHaveCome = false
    /// The durable call that the message replies to, if no store has the reply. The call is processed when the reply
    /// is.
    var answers: SessionMachine.Receipt?

    var contentByteCount: Int { fields.count + payload.count }
    /// The approximate cost: numbers and tags are not counted.
    var cost: Int { contentByteCount + SessionSize.frameOverhead }
}

/// The waiting messages of each scope in order, and the scopes that may proceed, which take turns.
struct WaitingMessages: Sendable {
    private var queues: [MessageScope: SparseQueue<WaitingMessage>] = [:]
    /// The order of the messages that have a number.
    private var orders: [UInt64: (order: UInt64, scope: MessageScope)] = [:]
    private var nextOrder: UInt64 = 0
    /// The scopes to check, in order.
    private var ready = FIFO<MessageScope>()
    private var isReady: Set<MessageScope> = []
    private(set) var byteCount = 0
    /// The number of bytes of the durable messages.
    private(set) var durableByteCount = 0
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }
    /// Whether a scope has to be checked, because there was no room for it.
    var hasReady: Bool { !ready.isEmpty }

    func isWaiting(in scope: MessageScope) -> Bool { count > 0 && queues[scope] != nil }

    /// Whether messages other than pushes wait.
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

    /// Replaces a waiting message by another one of the same scope.
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

    /// Removes the first message of a scope.
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
        // While nothing waits, scopes are not checked, and a scope left here would make the next message wait.
        if count == 0 { (ready, isReady) = (FIFO(), []) }
        return message
    }

    /// Removes and returns the messages of a scope.
    mutating func removeAll(of scope: MessageScope) -> [WaitingMessage] {
        var removed: [WaitingMessage] = []
        while let message = removeFirst(of: scope) { removed.append(message) }
        return removed
    }

    /// Removes and returns all messages, in the order of their arrival.
    mutating func removeAll() -> [WaitingMessage] {
        let all = queues.values.flatMap { queue in queue.numbers.map { ($0, queue[$0]) } }.sorted { $0.0 < $1.0 }
        self = WaitingMessages()
        return all.compactMap(\.1)
    }

    /// Schedules a check of a scope.
    mutating func makeReady(_ scope: MessageScope) {
        guard isWaiting(in: scope), isReady.insert(scope).inserted else { return }
        ready.append(scope)
    }

    /// Schedules a check of all scopes, in the order of their oldest messages.
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
