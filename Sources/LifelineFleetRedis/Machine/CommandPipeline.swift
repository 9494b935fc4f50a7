internal import LifelineCore
internal import NIOCore

/// Commands on their way: those that wait to be written, and those that wait for their replies.
struct CommandPipeline<Waiter: Sendable>: RedisRole {
    typealias Actions = RedisActions<Waiter>

    private struct Waiting {
        let command: RedisCommand
        let waiter: Waiter
    }

    private struct Written {
        /// A ping has the number of the command before it.
        let id: UInt64
        let name: String
        let byteCount: Int
        /// Nil when no task waits for the reply any more.
        var waiter: Waiter?
    }

    private static var ping: RedisCommand { RedisCommand("PING") }

    private let maximumCount: Int
    private let maximumByteCount: Int
    private var waiting = SparseQueue<Waiting>()
    private var written = FIFO<Written>()
    private var writtenByteCount = 0
    /// The number of written commands with a waiter.
    private var awaitedCount = 0
    private var deadlines = DeadlineHeap()
    private var lastID: UInt64 = 0
    private var lastWrittenID: UInt64 = 0
    private var isClosed = false

    init(_ configuration: RedisConfiguration) {
        maximumCount = max(1, configuration.maximumCommandsInFlight)
        maximumByteCount = min(max(1 << 10, configuration.maximumBytesInFlight), 1 << 30)
    }

    var needsConnection: Bool { !waiting.isEmpty }

    var nextDeadline: MonotonicTime? { deadlines.next }

    /// Adds a command after those that wait. Call `turn` afterwards.
    ///
    /// - Returns: its number, for `cancel`.
    /// - Throws: `closed`, `commandTooLarge`; then the waiter is not kept.
    mutating func accept(_ command: RedisCommand, _ waiter: Waiter, deadline: MonotonicTime) throws(RedisError)
        -> UInt64
    {
        if isClosed { throw .closed }
        guard command.bytes.readableBytes <= maximumByteCount else {
            throw RedisError(
                code: .commandTooLarge,
                message: "\(command.name) has \(command.bytes.readableBytes) bytes, and \(maximumByteCount) may be in "
                    + "flight. Raise RedisConfiguration.maximumBytesInFlight."
            )
        }
        lastID += 1
        waiting.append(lastID, Waiting(command: command, waiter: waiter))
        deadlines.insert(deadline, id: lastID)
        return lastID
    }

    func connected(_ actions: inout Actions) {}

    mutating func write(_ actions: inout Actions) {
        while written.count < maximumCount, let (id, next) = waiting.first {
            let byteCount = next.command.bytes.readableBytes
            guard writtenByteCount + byteCount <= maximumByteCount else { break }
            waiting.remove(id)
            actions.write(next.command.bytes)
            append(Written(id: id, name: next.command.name, byteCount: byteCount, waiter: next.waiter))
        }
    }

    mutating func ping(_ actions: inout Actions) {
        let ping = Self.ping
        actions.write(ping.bytes)
        append(Written(id: lastWrittenID, name: ping.name, byteCount: ping.bytes.readableBytes, waiter: nil))
    }

    private mutating func append(_ command: Written) {
        lastWrittenID = command.id
        writtenByteCount += command.byteCount
        if command.waiter != nil { awaitedCount += 1 }
        written.append(command)
    }

    mutating func received(_ reply: RedisValue, _ actions: inout Actions) throws(RedisError) {
        guard let command = written.popFirst() else { throw .protocolViolation(nil) }
        writtenByteCount -= command.byteCount
        guard let waiter = command.waiter else { return }
        awaitedCount -= 1
        if case .error(let error) = reply {
            actions.resume(waiter, .failure(RedisError(error, to: command.name)))
        } else {
            actions.resume(waiter, .success(reply))
        }
    }

    /// Handles the end of the connection. Written commands fail, because they may have run. The others wait for the
    /// next connection, or fail if the server does not let the client in.
    mutating func disconnected(_ error: RedisError, _ actions: inout Actions) {
        for command in written.removeAll() {
            guard let waiter = command.waiter else { continue }
            actions.resume(waiter, .failure(RedisError.outcomeUnknown(command.name, error)))
        }
        (writtenByteCount, awaitedCount) = (0, 0)
        if error.code == .notAdmitted, !error.isTemporary { failWaiting(error, &actions) }
    }

    private mutating func failWaiting(_ error: RedisError, _ actions: inout Actions) {
        for id in waiting.numbers {
            if let command = waiting.remove(id) { actions.resume(command.waiter, .failure(error)) }
        }
    }

    mutating func expire(now: MonotonicTime, cause: RedisError?, _ actions: inout Actions) {
        while let id = deadlines.takeDue(now: now) {
            if let command = waiting.remove(id) {
                actions.resume(command.waiter, .failure(RedisError.timedOut(command.command.name, cause)))
            } else if let (name, waiter) = takeWaiter(id) {
                actions.resume(waiter, .failure(RedisError.outcomeUnknown(name, nil)))
            }
        }
        deadlines.compact(liveCount: waiting.count + awaitedCount) { [waiting, written] id in
            waiting[id] != nil || Self.place(of: id, in: written).map { written[$0].waiter != nil } ?? false
        }
    }

    mutating func cancel(_ id: UInt64, _ actions: inout Actions) {
        guard let waiter = waiting.remove(id)?.waiter ?? takeWaiter(id)?.waiter else { return }
        actions.resume(waiter, .failure(CancellationError()))
    }

    mutating func close(_ actions: inout Actions) {
        isClosed = true
        disconnected(.closed, &actions)
        failWaiting(.closed, &actions)
        deadlines = DeadlineHeap()
    }

    // MARK: Written commands by their numbers

    /// Removes and returns the waiter of a written command, if there still is one.
    private mutating func takeWaiter(_ id: UInt64) -> (name: String, waiter: Waiter)? {
        guard let place = Self.place(of: id, in: written), let waiter = written[place].waiter.take() else { return nil }
        awaitedCount -= 1
        return (written[place].name, waiter)
    }

    /// Returns the place of a command. The numbers ascend, and pings follow the command whose number they have.
    private static func place(of id: UInt64, in written: FIFO<Written>) -> UInt64? {
        var (low, high) = (written.numbers.lowerBound, written.numbers.upperBound)
        while low < high {
            let middle = low + (high - low) / 2
            if written[middle].id < id { low = middle + 1 } else { high = middle }
        }
        return written.numbers.contains(low) && written[low].id == id ? low : nil
    }
}
