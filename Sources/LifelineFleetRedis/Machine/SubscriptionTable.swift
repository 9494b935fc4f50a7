internal import LifelineCore
internal import NIOCore

/// The channels whose messages a client wants, and its requests to the server for them.
struct SubscriptionTable<Waiter: Sendable>: RedisRole {
    typealias Actions = RedisActions<Waiter>

    private enum Kind: String {
        case subscribe, unsubscribe, ping
    }

    /// One command to the server, or one for each thousand channels.
    private struct Request {
        let id: UInt64
        let kind: Kind
        var channels: [String] = []
        /// The number of channels that were answered.
        var answeredCount = 0
        /// The error with which some of the channels were refused.
        var failure: RedisError?
    }

    /// Keeps commands below some hundred kilobytes.
    private static var channelsPerCommand: Int { 1_000 }
    /// The number of requests that no call waits for: pings, and the request for all channels on a new connection.
    private static var noCall: UInt64 { 0 }

    private var wanted: Set<String> = []
    /// The waiting calls, by the numbers of their requests.
    private var callers: [UInt64: Waiter] = [:]
    /// The requests that were not written. Without a connection these are subscriptions, which the next connection's
    /// request for all channels will include.
    private var unwritten: [Request] = []
    /// The written requests, in order.
    private var written = FIFO<Request>()
    /// The calls that the request for all channels includes.
    private var renewed: [UInt64] = []
    private var deadlines = DeadlineHeap()
    private var lastID = noCall
    private var isConnected = false
    private var isClosed = false
    /// Whether the handler was told that messages come.
    private var isAnnounced = false
    private var wasAnnounced = false

    var needsConnection: Bool { !unwritten.isEmpty }

    var nextDeadline: MonotonicTime? { deadlines.next }

    /// Adds channels, which stay even if the call fails. Call `turn` afterwards.
    ///
    /// - Returns: the call's number, for `cancel`.
    /// - Throws: `closed`; then the waiter is not kept.
    mutating func subscribe(_ channels: [String], _ waiter: Waiter, deadline: MonotonicTime) throws(RedisError)
        -> UInt64
    {
        if isClosed { throw .closed }
        wanted.formUnion(channels)
        return accept(.subscribe, channels, waiter, deadline: deadline)
    }

    /// Removes channels. Call `turn` afterwards.
    ///
    /// - Returns: the call's number, for `cancel`; nil when there is no connection: then there is nothing to wait for,
    ///   and the waiter is not kept.
    /// - Throws: `closed`; then the waiter is not kept.
    mutating func unsubscribe(_ channels: [String], _ waiter: Waiter, deadline: MonotonicTime) throws(RedisError)
        -> UInt64?
    {
        if isClosed { throw .closed }
        wanted.subtract(channels)
        return isConnected ? accept(.unsubscribe, channels, waiter, deadline: deadline) : nil
    }

    private mutating func accept(
        _ kind: Kind,
        _ channels: [String],
        _ waiter: Waiter,
        deadline: MonotonicTime
    ) -> UInt64 {
        lastID += 1
        unwritten.append(Request(id: lastID, kind: kind, channels: channels))
        callers[lastID] = waiter
        deadlines.insert(deadline, id: lastID)
        return lastID
    }

    // MARK: The connection

    mutating func connected(_ actions: inout Actions) {
        isConnected = true
        renewed = unwritten.map(\.id)
        unwritten = []
        write(Request(id: Self.noCall, kind: .subscribe, channels: wanted.sorted()), &actions)
        finishAnswered(&actions)
    }

    mutating func write(_ actions: inout Actions) {
        for request in unwritten { write(request, &actions) }
        unwritten = []
        finishAnswered(&actions)
    }

    private mutating func write(_ request: Request, _ actions: inout Actions) {
        for start in stride(from: 0, to: request.channels.count, by: Self.channelsPerCommand) {
            let channels = request.channels[start...].prefix(Self.channelsPerCommand)
            actions.write(RedisCommand(request.kind.rawValue.uppercased(), channels.map { .text($0) }).bytes)
        }
        written.append(request)
    }

    mutating func ping(_ actions: inout Actions) {
        actions.write(RedisCommand("PING").bytes)
        written.append(Request(id: Self.noCall, kind: .ping))
    }

    mutating func received(_ reply: RedisValue, _ actions: inout Actions) throws(RedisError) {
        switch reply {
        // Without a subscription, a ping is answered as on any connection.
        case .status: return try receivedPong()
        case .error(let error): try refused(error)
        case .array(let parts):
            guard case .bytes(let kind)? = parts.first, parts.count > 1, case .bytes(let name) = parts[1] else {
                throw .protocolViolation(nil)
            }
            switch String(buffer: kind) {
            case "message":
                guard parts.count == 3, case .bytes(let payload) = parts[2] else { throw .protocolViolation(nil) }
                return actions.events.append(.message(channel: String(buffer: name), payload: payload))
            case "pong": return try receivedPong()
            case "subscribe": try confirmed(.subscribe, name)
            case "unsubscribe": try confirmed(.unsubscribe, name)
            default: throw .protocolViolation(nil)
            }
        case .integer, .bytes, .null: throw .protocolViolation(nil)
        }
        finishAnswered(&actions)
    }

    private mutating func receivedPong() throws(RedisError) {
        guard written.first?.kind == .ping else { throw .protocolViolation(nil) }
        written.removeFirst()
    }

    private mutating func confirmed(_ kind: Kind, _ name: ByteBuffer) throws(RedisError) {
        guard let request = written.first, request.kind == kind, request.answeredCount < request.channels.count,
            name.readableBytesView.elementsEqual(request.channels[request.answeredCount].utf8)
        else { throw .protocolViolation(nil) }
        written[written.firstNumber].answeredCount += 1
    }

    /// A command was refused. After a temporary error, a new connection tries it again.
    private mutating func refused(_ reply: RedisReplyError) throws(RedisError) {
        guard let request = written.first else { throw .protocolViolation(nil) }
        if request.kind == .ping { return try receivedPong() }
        let error = RedisError(reply, to: request.kind.rawValue.uppercased())
        if error.isTemporary { throw error }
        let channels = request.channels[request.answeredCount...].prefix(Self.channelsPerCommand)
        wanted.subtract(channels)
        written[written.firstNumber].failure = error
        written[written.firstNumber].answeredCount += channels.count
    }

    /// Ends the answered requests at the front.
    private mutating func finishAnswered(_ actions: inout Actions) {
        while let request = written.first, request.kind != .ping, request.answeredCount == request.channels.count {
            written.removeFirst()
            let result: Result<RedisValue, any Error> = request.failure.map { .failure($0) } ?? .success(.null)
            guard request.id == Self.noCall else {
                finish(request.id, result, &actions)
                continue
            }
            actions.events.append(.connected(afterGap: wasAnnounced))
            (isAnnounced, wasAnnounced) = (true, true)
            for id in renewed { finish(id, result, &actions) }
            renewed = []
        }
    }

    private mutating func finish(_ id: UInt64, _ result: Result<RedisValue, any Error>, _ actions: inout Actions) {
        if let waiter = callers.removeValue(forKey: id) { actions.resume(waiter, result) }
    }

    /// Handles the end of the connection and its subscriptions. Calls to subscribe wait for the next connection, or
    /// fail if the server does not let the client in.
    mutating func disconnected(_ error: RedisError, _ actions: inout Actions) {
        isConnected = false
        let requests = written.removeAll() + unwritten
        for request in requests where request.kind == .unsubscribe { finish(request.id, .success(.null), &actions) }
        let subscriptions = renewed + requests.filter { $0.kind == .subscribe }.map(\.id)
        renewed = []
        if error.code == .notAdmitted, !error.isTemporary {
            unwritten = []
            for id in subscriptions { finish(id, .failure(error), &actions) }
        } else {
            unwritten = subscriptions.filter { callers[$0] != nil }.map { Request(id: $0, kind: .subscribe) }
        }
        announceEnd(error, &actions)
    }

    private mutating func announceEnd(_ error: RedisError, _ actions: inout Actions) {
        if isAnnounced { actions.events.append(.disconnected(error)) }
        isAnnounced = false
    }

    // MARK: Calls that end early

    mutating func expire(now: MonotonicTime, cause: RedisError?, _ actions: inout Actions) {
        while let id = deadlines.takeDue(now: now) {
            finish(id, .failure(RedisError.notConfirmed(cause)), &actions)
        }
        deadlines.compact(liveCount: callers.count) { callers[$0] != nil }
    }

    mutating func cancel(_ id: UInt64, _ actions: inout Actions) {
        finish(id, .failure(CancellationError()), &actions)
    }

    mutating func close(_ actions: inout Actions) {
        isClosed = true
        for id in callers.keys.sorted() { finish(id, .failure(RedisError.closed), &actions) }
        deadlines = DeadlineHeap()
        announceEnd(.closed, &actions)
    }
}
