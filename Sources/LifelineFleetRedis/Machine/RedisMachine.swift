internal import LifelineCore
internal import NIOCore

/// The purpose of a connection: commands or messages.
protocol RedisRole: Sendable {
    associatedtype Waiter: Sendable

    /// Whether there is work that needs a connection.
    var needsConnection: Bool { get }
    /// The time at which to call `expire`.
    var nextDeadline: MonotonicTime? { get }

    /// Notes that the connection is ready.
    mutating func connected(_ actions: inout RedisActions<Waiter>)
    /// Adds bytes that may be written now, while the connection is ready.
    mutating func write(_ actions: inout RedisActions<Waiter>)
    /// Asks for a sign of life.
    mutating func ping(_ actions: inout RedisActions<Waiter>)
    /// Handles a reply, while the connection is ready.
    ///
    /// - Throws: `protocolViolation` when no command asked for it, or an error that ends the connection.
    mutating func received(_ reply: RedisValue, _ actions: inout RedisActions<Waiter>) throws(RedisError)
    /// Notes that the connection is lost, or an attempt has failed.
    mutating func disconnected(_ error: RedisError, _ actions: inout RedisActions<Waiter>)
    /// Ends calls that have waited for too long.
    ///
    /// - Parameter cause: the reason why there is no connection; nil if there is one.
    mutating func expire(now: MonotonicTime, cause: RedisError?, _ actions: inout RedisActions<Waiter>)
    /// Ends a call whose task was cancelled.
    mutating func cancel(_ id: UInt64, _ actions: inout RedisActions<Waiter>)
    /// Closes the client.
    mutating func close(_ actions: inout RedisActions<Waiter>)
}

/// Makes all decisions about one connection of a client: when to connect, what to write, and how calls end.
struct RedisMachine<Role: RedisRole>: Sendable {
    typealias Actions = RedisActions<Role.Waiter>

    private(set) var connection: RedisConnectionState
    var role: Role
    private let greeting: RedisGreeting

    init(_ configuration: RedisConfiguration, role: Role, seed: UInt64) {
        connection = RedisConnectionState(configuration, seed: seed)
        greeting = RedisGreeting(configuration)
        self.role = role
    }

    /// The latest time at which to call `turn`; nil to wait for another event.
    var nextDeadline: MonotonicTime? {
        guard let first = connection.nextDeadline else { return role.nextDeadline }
        return role.nextDeadline.map { min($0, first) } ?? first
    }

    /// Notes that the connection of an attempt is open. Returns nil when it is no longer wanted.
    mutating func opened(_ attempt: UInt64, now: MonotonicTime) -> Actions? {
        guard isCurrent(attempt), connection.opened(greeting, now: now) else { return nil }
        var actions = Actions()
        actions.bytes = greeting.bytes
        return actions
    }

    /// Whether events of a connection count.
    private func isCurrent(_ attempt: UInt64) -> Bool { attempt == connection.attempt && !connection.isClosed }

    /// Handles replies on a connection.
    ///
    /// - Parameter failure: the error in the bytes after them, if there is one.
    mutating func received(
        _ replies: [RedisValue],
        failure: RESPError?,
        attempt: UInt64,
        now: MonotonicTime
    ) -> Actions {
        var actions = Actions()
        guard isCurrent(attempt) else { return actions }
        connection.received(now: now)
        do throws(RedisError) {
            for reply in replies { try receive(reply, now: now, &actions) }
            if let failure { throw .protocolViolation(failure) }
        } catch {
            lose(error, now: now, &actions)
        }
        advance(now: now, &actions)
        return actions
    }

    private mutating func receive(
        _ reply: RedisValue,
        now: MonotonicTime,
        _ actions: inout Actions
    ) throws(RedisError) {
        if connection.isReady { return try role.received(reply, &actions) }
        switch connection.receivedGreeting(reply, now: now) {
        case .wait: break
        case .fail(let error): throw error
        case .becomeReady:
            actions.steps.append(.connected(attempt: connection.attempt))
            role.connected(&actions)
        }
    }

    /// Notes that an attempt has failed, or its connection is lost.
    mutating func lost(_ error: RedisError, attempt: UInt64, now: MonotonicTime) -> Actions {
        var actions = Actions()
        guard isCurrent(attempt) else { return actions }
        lose(error, now: now, &actions)
        advance(now: now, &actions)
        return actions
    }

    private mutating func lose(_ error: RedisError, now: MonotonicTime, _ actions: inout Actions) {
        switch connection.lost(error, now: now) {
        case .none: return
        case .connect:
            actions.connects = connection.attempt
            actions.steps.append(.lost(error, retryIn: .zero))
        case .wait(let delay):
            actions.steps.append(.lost(error, retryIn: delay))
        }
        actions.disconnects = true
        // The bytes were for the lost connection.
        actions.bytes = ByteBuffer()
        role.disconnected(error, &actions)
    }

    /// Handles new work of the role, or the timer, which may fire too early.
    mutating func turn(now: MonotonicTime) -> Actions {
        var actions = Actions()
        advance(now: now, &actions)
        return actions
    }

    private mutating func advance(now: MonotonicTime, _ actions: inout Actions) {
        switch connection.timerFired(now: now) {
        case .none: break
        case .connect: actions.connects = connection.attempt
        case .ping: role.ping(&actions)
        case .fail(let error): lose(error, now: now, &actions)
        }
        role.expire(now: now, cause: connection.lastFailure, &actions)
        if connection.isReady {
            role.write(&actions)
        } else if role.needsConnection, connection.connectionNeeded() {
            actions.connects = connection.attempt
        }
    }

    /// Ends a call whose task was cancelled. The actions are only results, which any thread may deliver.
    mutating func cancel(_ id: UInt64) -> Actions {
        var actions = Actions()
        role.cancel(id, &actions)
        return actions
    }

    /// Notes that reading stops or resumes.
    mutating func pauseChanged(_ isPaused: Bool, now: MonotonicTime) {
        connection.pauseChanged(isPaused, now: now)
    }

    /// Closes the client.
    mutating func close() -> Actions {
        var actions = Actions()
        guard !connection.isClosed else { return actions }
        connection.close()
        actions.disconnects = true
        role.close(&actions)
        return actions
    }
}
