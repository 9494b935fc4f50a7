internal import LifelineCore
internal import LifelineTransport
internal import NIOConcurrencyHelpers

/// The requests of one client, from being asked to their end. `RequestTable` and the matching decide, under one lock;
/// who waits is woken after it.
///
/// Messages come in, and requests are reported as written, on the loop of the connection of that time; requests begin and
/// end in any task.
final class RequestExchange<Matching: AnswerMatching>: Sendable {
    typealias Message = Matching.Message
    private typealias Waiter = Latch<Result<Message, RequestError>>

    private struct State {
        var table: RequestTable<Waiter>
        var matching: Matching
        /// The serials of requests that no connection has taken yet, as far as is known.
        var unsent: Set<UInt32> = []
        /// Whether a connection is read: answers may come.
        var isReceiving = false
        /// Why it is not, when it failed.
        var failure: ConnectionError?
        /// The last connection that is over; those before it are, too.
        var closedConnection: ConnectionManager.ConnectionID?
        var droppedPushCount = 0
        /// What the timer sleeps until; nil: it does not.
        var armedDeadline: MonotonicTime?
        var isClosed = false

        /// No answers come any more to what was sent. What no connection has taken goes over the next one.
        mutating func loseSent() -> [EndedRequest<Waiter>] {
            matching.connectionLost(keeping: unsent)
            return table.connectionLost { unsent.contains(RequestTable<Waiter>.serial(of: $0)) }
        }

        /// Whether the timer has to be set to an earlier time.
        mutating func armTimer() -> Bool {
            guard let next = table.nextDeadline, armedDeadline.map({ next < $0 }) ?? true else { return false }
            armedDeadline = next
            return true
        }
    }

    private let clock: any ClientClock
    private let takesPushes: Bool
    private let timerBell = Doorbell()
    private let state: NIOLockedValueBox<State>

    init(_ matching: Matching, configuration: RequestConfiguration, clock: any ClientClock) {
        self.clock = clock
        takesPushes = configuration.takesPushes
        let maximumCount = max(configuration.maximumRequestCount, 1)
        state = NIOLockedValueBox(
            State(
                table: RequestTable(maximumCount: maximumCount, serials: FixedHeader.serials),
                matching: matching
            )
        )
    }

    var statistics: RequestStatistics {
        state.withLockedValue { state in
            RequestStatistics(
                waitingCount: state.table.count,
                lateAnswerCount: state.table.lateResponseCount,
                unknownAnswerCount: state.table.unknownResponseCount,
                droppedPushCount: state.droppedPushCount
            )
        }
    }

    // MARK: The side of who asks

    /// Asks, and waits for the answer.
    ///
    /// - Parameters:
    ///   - reserved: a serial that the request must not have.
    ///   - send: sends the request with a serial, and may wait for so long at most until a connection takes it.
    ///     Returns which one did.
    nonisolated(nonsending) func request(
        answerKind: Matching.AnswerKind,
        timeout: Duration,
        avoiding reserved: UInt32? = nil,
        send:
            @escaping @Sendable (_ serial: UInt32, _ timeLimit: Duration) async throws -> ConnectionManager
            .ConnectionID?
    ) async throws(RequestError) -> Message {
        let timeout = timeout.clamped(atLeast: .zero)
        let answer = Waiter()
        let id = try begin(answer, answerKind, deadline: clock.now + timeout, avoiding: reserved)
        let result = await withTaskCancellationHandler {
            await withTaskGroup { group in
                group.addTask {
                    do {
                        let connection = try await send(RequestTable<Waiter>.serial(of: id), timeout)
                        self.sent(id, over: connection)
                    } catch {
                        self.sendFailed(id, error)
                    }
                }
                let result = await answer.waitUninterrupted()
                // A send that still waits for a connection, or for room.
                group.cancelAll()
                return result
            }
        } onCancel: {
            end(id, with: .cancelled)
        }
        return try result.get()
    }

    private func begin(
        _ answer: Waiter,
        _ answerKind: Matching.AnswerKind,
        deadline: MonotonicTime,
        avoiding reserved: UInt32?
    ) throws(RequestError) -> UInt64 {
        let (result, setsTimer) = state.withLockedValue { state -> (Result<UInt64, RequestError>, Bool) in
            if state.isClosed { return (.failure(.notSent(ConnectionError.clientClosed)), false) }
            // Places that nobody waits at are held by a peer that does not answer: they count.
            let maximumCount = state.table.maximumCount
            guard state.unsent.count + state.matching.owedCount < maximumCount else {
                return (.failure(.tooManyInFlight(limit: maximumCount)), false)
            }
            do throws(RequestError) {
                let id = try state.table.began(answer, deadline: deadline, avoiding: reserved)
                let serial = RequestTable<Waiter>.serial(of: id)
                state.unsent.insert(serial)
                state.matching.began(serial: serial, answerKind: answerKind)
                return (.success(id), state.armTimer())
            } catch {
                return (.failure(error), false)
            }
        }
        if setsTimer { timerBell.ring() }
        return try result.get()
    }

    /// A connection has taken the request: maybe one that is over by now.
    private func sent(_ id: UInt64, over connection: ConnectionManager.ConnectionID?) {
        let (lost, failure) = state.withLockedValue { state -> (Waiter?, ConnectionError?) in
            state.unsent.remove(RequestTable<Waiter>.serial(of: id))
            guard let connection, let closed = state.closedConnection, connection <= closed else { return (nil, nil) }
            return (state.table.cancelled(id), state.failure)
        }
        lost?.open(with: .failure(.connectionLost(failure)))
    }

    /// No connection has taken the request, and none will.
    private func sendFailed(_ id: UInt64, _ error: any Error) {
        state.withLockedValue { state in
            let serial = RequestTable<Waiter>.serial(of: id)
            state.unsent.remove(serial)
            state.matching.gaveUp(serial: serial)
        }
        // The client's timer may be a little ahead of this one.
        let isLate = (error as? ConnectionError)?.code == .sendTimedOut
        end(id, with: isLate ? .timedOut : .notSent(error))
    }

    /// The request ends without its answer, if it has not ended.
    private func end(_ id: UInt64, with error: RequestError) {
        state.withLockedValue { $0.table.cancelled(id) }?.open(with: .failure(error))
    }

    // MARK: Running

    /// Ends requests at their deadlines while `body` runs, and those that are left after it.
    nonisolated(nonsending) func run(_ body: nonisolated(nonsending) () async throws -> Void) async throws {
        async let _: Void = keepTime()
        defer { close() }
        try await body()
    }

    private func keepTime() async {
        while !Task.isCancelled {
            let deadline = state.withLockedValue { state in
                state.armedDeadline = state.table.nextDeadline
                return state.armedDeadline
            }
            await withTaskGroup { group in
                group.addTask { await self.timerBell.wait() }
                if let deadline { group.addTask { try? await self.clock.sleep(until: deadline) } }
                await group.next()
                group.cancelAll()
            }
            let now = clock.now
            wake(state.withLockedValue { $0.table.timerFired(now: now) }, cause: nil)
        }
    }

    private func close() {
        let left = state.withLockedValue { state in
            state.isClosed = true
            state.unsent = []
            return state.loseSent()
        }
        wake(left, cause: ConnectionError.clientClosed)
    }

    private func wake(_ ended: [EndedRequest<Waiter>], cause: ConnectionError?) {
        for request in ended {
            request.waiter.open(with: .failure(request.code == .timedOut ? .timedOut : .connectionLost(cause)))
        }
    }
}

// What a connection tells, on its loop.
extension RequestExchange: MessageIntake, RequestObserver {
    func connectionBegan() {
        state.withLockedValue { state in
            state.isReceiving = true
            state.failure = nil
        }
    }

    func wroteRequest(tag: UInt32) {
        let lost = state.withLockedValue { state -> [EndedRequest<Waiter>] in
            state.unsent.remove(tag)
            state.matching.wrote(serial: tag)
            // The peer has ended its side, and this one still writes what it had accepted.
            return state.isReceiving ? [] : state.loseSent()
        }
        wake(lost, cause: nil)
    }

    func takes(_ message: Message) -> Bool {
        let (waiter, isTaken) = state.withLockedValue { state -> (Waiter?, Bool) in
            guard case .answer(let serial) = state.matching.received(message) else {
                if !takesPushes { state.droppedPushCount += 1 }
                return (nil, !takesPushes)
            }
            guard case .answer(_, let waiter) = state.table.receivedResponse(serial: serial) else { return (nil, true) }
            state.unsent.remove(serial)
            return (waiter, true)
        }
        waiter?.open(with: .success(message))
        return isTaken
    }

    func inputEnded(_ error: ConnectionError?) {
        let lost = state.withLockedValue { state -> [EndedRequest<Waiter>] in
            state.isReceiving = false
            state.failure = error
            // One that failed takes messages yet, for a moment; who asks again shall not ask it.
            return error == nil ? state.loseSent() : []
        }
        wake(lost, cause: nil)
    }

    func connectionClosed(_ id: ConnectionManager.ConnectionID) {
        let (lost, failure) = state.withLockedValue { state in
            state.isReceiving = false
            state.closedConnection = id
            return (state.loseSent(), state.failure)
        }
        wake(lost, cause: failure)
    }
}
