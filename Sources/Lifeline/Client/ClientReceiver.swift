internal import LifelineCore
internal import LifelineMessages
internal import LifelineRuntime
internal import LifelineTransport
internal import NIOConcurrencyHelpers

/// Where the messages of all of a client's connections arrive, one connection after the other.
///
/// What a connection brings before the client has reported it waits, and is dropped if it is given up unreported: so
/// each message comes after the step to `ready` of its connection.
@usableFromInline final class ClientInbox<Received: DelimitedMessage>: Sendable {
    /// The attempt whose messages are taken, and the connection that it led to.
    private struct Source {
        let id: ClientMachine.ConnectionID
        /// Whose reading may have to be resumed; nil until it is reported.
        var connection: (any TransportConnection)?
        /// What came until then: a read, and when the peer ends its side meanwhile, what the kernel held.
        var early: [(messages: [Received], cost: Int)] = []
    }

    private struct State {
        /// Messages that have come in since the client was made.
        var receivedCount = 0
        /// The last ping that nobody was told of.
        var ping: UInt64?
        var source: Source?
    }

    let queue: BatchQueue<Received>
    /// What a loop over single messages has left of the batch that it took last.
    @usableFromInline let rest = MessageRest<Received>()
    /// Held around the queue's lock, never within it. The queue wakes its consumer meanwhile, which only schedules its
    /// task: that runs elsewhere, and waits here for a moment at most, or on this thread, later.
    private let state = NIOLockedValueBox(State())
    /// There is room again.
    private let roomBell = Doorbell()
    /// A batch has come, or a ping is sent, or a step was made.
    let observerBell = Doorbell()

    init(marks: WaterMarks) {
        queue = BatchQueue(marks: marks)
    }

    var receivedCount: Int { state.withLockedValue { $0.receivedCount } }

    // MARK: The client's side

    /// An attempt begins; only its messages are taken from now on.
    func expect(_ id: ClientMachine.ConnectionID) {
        state.withLockedValue { $0.source = Source(id: id) }
    }

    /// The connection of the expected attempt was reported: its messages come in.
    func attach(_ connection: any TransportConnection) {
        state.withLockedValue { state in
            let early = state.source?.early ?? []
            state.source?.connection = connection
            state.source?.early = []
            // Within the lock, so that nothing that comes now goes before it.
            for (messages, cost) in early { _ = add(messages, cost: cost, in: &state) }
        }
        observerBell.ring()
        // What came early has paused it. When too much waits, the consumer resumes it.
        if !queue.isPaused { connection.resumeReading() }
    }

    /// The connection is no more, or was given up.
    func detach() {
        state.withLockedValue { $0.source = nil }
    }

    /// No connection comes any more: ends after what has arrived.
    func finish() {
        queue.finish(throwing: nil)
    }

    /// Waits until the consumer has made room, or may have.
    func waitForRoom() async throws {
        await roomBell.wait()
        try Task.checkCancellation()
    }

    // MARK: The connection's side

    /// A batch was received. Tells whether to read on.
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

    /// A ping is about to be sent.
    func pingWillBeSent(number: UInt64) {
        state.withLockedValue { $0.ping = number }
        observerBell.ring()
    }

    // MARK: The consumer's side

    /// The consumer has made room.
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
        // With an error, the end of the connection tells the client.
        if let error {
            intake?.inputEnded(.failed(error))
            return
        }
        let reason = keeper.inputEnded(id)
        // After that: what is sent again because of it goes over the next connection.
        intake?.inputEnded(.regular(reason))
    }
}
