internal import LifelineCore
internal import LifelineMessages
internal import LifelineRuntime
internal import LifelineTransport
internal import NIOConcurrencyHelpers

/// Where the messages of all of a client's connections arrive, one connection after the other.
///
/// Messages that arrive before the client has reported their connection wait, and are dropped if the connection is
/// given up unreported. So each message comes after the step to `ready` of its connection.
@usableFromInline final class ClientInbox<Received: DelimitedMessage>: Sendable {
    /// The attempt whose messages are taken, and the connection that it led to.
    private struct Source {
        let id: ClientMachine.ConnectionID
        /// The connection whose reading may have to be resumed; nil until it is reported.
        var connection: (any TransportConnection)?
        /// The messages until then: those of one read, and when the peer ends its side meanwhile, what the kernel held.
        var early: [(messages: [Received], cost: Int)] = []
    }

    private struct State {
        /// Messages that have come in since the client was made.
        var receivedCount = 0
        /// The last ping that was not reported yet.
        var ping: UInt64?
        var source: Source?
    }

    let queue: BatchQueue<Received>
    /// The rest of the batch that a loop over single messages took last.
    @usableFromInline let rest = MessageRest<Received>()
    /// Held around the queue's lock, never within it. Meanwhile the queue may wake its consumer, which only schedules
    /// the consumer's task. The task runs on another thread, where it waits here for a moment at most, or later on this
    /// one.
    private let state = NIOLockedValueBox(State())
    /// Rings when there is room again.
    private let roomBell = Doorbell()
    /// Rings when a batch has come, a ping is sent, or a step was made.
    let observerBell = Doorbell()

    init(marks: WaterMarks) {
        queue = BatchQueue(marks: marks)
    }

    var receivedCount: Int { state.withLockedValue { $0.receivedCount } }

    // MARK: The client's side

    /// Begins an attempt: only its messages are taken from now on.
    func expect(_ id: ClientMachine.ConnectionID) {
        state.withLockedValue { $0.source = Source(id: id) }
    }

    /// Lets messages of the expected attempt's connection in, once the connection was reported.
    func attach(_ connection: any TransportConnection) {
        state.withLockedValue { state in
            let early = state.source?.early ?? []
            state.source?.connection = connection
            state.source?.early = []
            // Within the lock, so that no message that comes now goes before these.
            for (messages, cost) in early { _ = add(messages, cost: cost, in: &state) }
        }
        observerBell.ring()
        // The early messages have paused the connection. When too much waits, the consumer resumes it.
        if !queue.isPaused { connection.resumeReading() }
    }

    /// Takes no more messages of the connection, which has ended or was given up.
    func detach() {
        state.withLockedValue { $0.source = nil }
    }

    /// Ends the sequence after the messages that have arrived, because no more connections come.
    func finish() {
        queue.finish(throwing: nil)
    }

    /// Waits until the consumer has made room, or may have.
    func waitForRoom() async throws {
        await roomBell.wait()
        try Task.checkCancellation()
    }

    // MARK: The connection's side

    /// Receives a batch. Returns whether to read on.
    func receive(_ messages: [Received], cost: Int, from id: ClientMachine.ConnectionID) -> ReadDemand {
        let (demand, isNews) = state.withLockedValue { state -> (ReadDemand, Bool) in
            guard let source = state.source, source.id == id else { return (.refused, false) }
            if source.connection != nil { return (add(messages, cost: cost, in: &state), !messages.isEmpty) }
            state.source?.early.append((messages, cost))
            return (.pause, false)
        }
        if isNews { observerBell.ring() }
        return demand
    }

    private func add(_ messages: [Received], cost: Int, in state: inout State) -> ReadDemand {
        state.receivedCount += messages.count
        return queue.receive(messages, cost: cost)
    }

    /// Notes that a ping is about to be sent.
    func pingWillBeSent(number: UInt64) {
        state.withLockedValue { $0.ping = number }
        observerBell.ring()
    }

    // MARK: The consumer's side

    /// Resumes reading, because the consumer has made room.
    func resumeReading() {
        state.withLockedValue { $0.source?.connection }?.resumeReading()
        roomBell.ring()
    }

    func takePing() -> UInt64? { state.withLockedValue { $0.ping.take() } }
}

extension ClientInbox: MessageSource {
    @usableFromInline func fill() -> Bool {
        queue.fill(rest) { resumeReading() }
    }

    @usableFromInline func takeBatch() -> [Received] {
        queue.takeBatch(after: rest) { resumeReading() }
    }

    @usableFromInline nonisolated(nonsending) func wait() async throws -> Bool {
        try await queue.untyped.wait(besides: rest)
    }
}

/// Where the messages of one of a client's connections go: into the client's inbox, which outlives it.
struct ClientSink<Message: DelimitedMessage>: MessageSink {
    let id: ClientMachine.ConnectionID
    let inbox: ClientInbox<Message>
    let intake: (any MessageIntake<Message>)?
    let keeper: ConnectionKeeper

    func receive(_ messages: [Message], cost: Int) -> ReadDemand { inbox.receive(messages, cost: cost, from: id) }

    func pingWillBeSent(number: UInt64) { inbox.pingWillBeSent(number: number) }

    func finish(throwing error: ConnectionError?) {
        // With an error, the end of the connection informs the client.
        if let error {
            intake?.inputEnded(.failed(error))
            return
        }
        let reason = keeper.inputEnded(id)
        // After that, so that sends that repeat because of it go over the next connection.
        intake?.inputEnded(.regular(reason))
    }
}
