internal import Lifeline
internal import LifelineCore
internal import LifelineRuntime
internal import LifelineTransport
internal import NIOConcurrencyHelpers

/// The requests of one client, from their beginning to their end. `RequestStateMachine` decides, under one lock;
/// waiting tasks are resumed after it is released.
///
/// Messages are received, and requests are reported as written, on the loop of the present connection; requests begin
/// and end in any task.
final class RequestExchange<Message: Sendable>: Sendable {
    typealias ConnectionID = ClientMachine.ConnectionID
    private typealias Waiter = Latch<Result<Message, RequestError>>
    private typealias Machine = RequestStateMachine<Waiter, ConnectionID>

    private let head: @Sendable (Message) -> AnswerHead
    private let clock: any ClientClock
    private let timerBell = Doorbell()
    private let machine: NIOLockedValueBox<Machine>

    /// - Parameter head: returns a message's facts about the request that it answers.
    init(
        _ matching: AnswerMatching,
        head: @escaping @Sendable (Message) -> AnswerHead,
        configuration: RequestConfiguration,
        clock: any ClientClock
    ) {
        self.head = head
        self.clock = clock
        machine = NIOLockedValueBox(
            Machine(
                matching,
                maximumCount: configuration.maximumRequestCount,
                takesPushes: configuration.takesPushes
            )
        )
    }

    var statistics: RequestStatistics {
        machine.withLockedValue { machine in
            RequestStatistics(
                waitingCount: machine.waitingCount,
                lateAnswerCount: machine.lateAnswerCount,
                unknownAnswerCount: machine.unknownAnswerCount,
                droppedPushCount: machine.droppedPushCount
            )
        }
    }

    // MARK: The caller's side

    /// Makes a request, and waits for the answer.
    ///
    /// - Parameters:
    ///   - reserved: a serial that the request must not have.
    ///   - send: sends the request with a serial, and may wait for a connection until the timeout. Returns the
    ///     connection that accepted it.
    nonisolated(nonsending) func request(
        answerType: String?,
        timeout: Duration,
        avoiding reserved: UInt32? = nil,
        send: @escaping @Sendable (_ serial: UInt32, _ timeout: Duration) async throws -> ConnectionID?
    ) async throws(RequestError) -> Message {
        let timeout = timeout.clamped(atLeast: .zero)
        let answer = Waiter()
        let request = try begin(answer, answerType, deadline: clock.now + timeout, avoiding: reserved)
        let result = await withTaskCancellationHandler {
            await withTaskGroup { group in
                group.addTask {
                    do {
                        let connection = try await send(request.serial, timeout)
                        self.end { $0.accepted(request.id, by: connection) }
                    } catch {
                        self.end { $0.sendFailed(request.id, error) }
                    }
                }
                let result = await answer.waitUninterrupted()
                // Cancels a send that still waits for a connection, or for room.
                group.cancelAll()
                return result
            }
        } onCancel: {
            end { $0.cancelled(request.id) }
        }
        return try result.get()
    }

    private func begin(
        _ answer: Waiter,
        _ answerType: String?,
        deadline: MonotonicTime,
        avoiding reserved: UInt32?
    ) throws(RequestError) -> Machine.BeginAction {
        let result = machine.withLockedValue { machine in
            Result { () throws(RequestError) in
                try machine.began(answer, answerType: answerType, deadline: deadline, avoiding: reserved)
            }
        }
        let action = try result.get()
        if action.setsTimer { timerBell.ring() }
        return action
    }

    private func end(_ event: (inout Machine) -> Machine.Ended?) {
        endAll { machine in event(&machine).map { [$0] } ?? [] }
    }

    private func endAll(_ event: (inout Machine) -> [Machine.Ended]) {
        for request in machine.withLockedValue({ event(&$0) }) { request.waiter.open(with: .failure(request.error)) }
    }

    // MARK: Running

    /// Ends requests at their deadlines while `body` runs, and the remaining ones after it.
    nonisolated(nonsending) func run(_ body: nonisolated(nonsending) () async throws -> Void) async throws {
        async let _: Void = timerBell.runTimer(by: clock) {
            machine.withLockedValue { $0.timerWillBeSet() }
        } fire: {
            let now = clock.now
            endAll { $0.timerFired(now: now) }
        }
        defer { endAll { $0.closed(.clientClosed) } }
        try await body()
    }
}

// Events of a connection, on its loop.
extension RequestExchange: MessageIntake, RequestObserver {
    func connectionBegan() { machine.withLockedValue { $0.connectionBegan() } }

    func wroteRequest(tag: UInt32) { endAll { $0.wrote(serial: tag) } }

    func consume(_ message: Message, byteCount: Int) -> Bool {
        switch machine.withLockedValue({ $0.received(head(message)) }) {
        case .answer(let waiter): waiter.open(with: .success(message))
        case .drop: break
        case .push: return false
        }
        return true
    }

    func inputEnded(_ end: InputEndReason) { endAll { $0.inputEnded(end) } }

    func connectionClosed(_ id: ConnectionID) { endAll { $0.connectionClosed(id) } }
}
