internal import LifelineCore
internal import LifelineMessages
internal import LifelineTransport
internal import NIOConcurrencyHelpers

/// Where the messages of all of a client's connections arrive, one connection after the other.
final class ClientInbox<Received: DelimitedMessage>: Sendable {
    let queue: BatchQueue<Received>
    /// Messages that have come in since the client was made.
    private let count = NIOLockedValueBox(0)
    /// The last ping that nobody was told of.
    private let ping = NIOLockedValueBox<UInt64?>(nil)
    /// The connection whose reading may have to be resumed, and who waits for room.
    private let connection = NIOLockedValueBox<(any TransportConnection)?>(nil)
    /// There is room again.
    private let roomBell = Doorbell()
    /// A batch has come, or a ping is sent, or a step was made.
    let observerBell: Doorbell

    init(marks: WaterMarks, observerBell: Doorbell) {
        self.observerBell = observerBell
        queue = BatchQueue(marks: marks)
    }

    var receivedCount: Int { count.withLockedValue { $0 } }

    /// Messages come from this connection now.
    func attach(_ connection: any TransportConnection) {
        self.connection.withLockedValue { $0 = connection }
        // The first batch may have paused it, and been taken, before this.
        connection.resumeReading()
    }

    func detach() {
        connection.withLockedValue { $0 = nil }
    }

    /// The consumer has made room.
    func resumeReading() {
        connection.withLockedValue { $0 }?.resumeReading()
        roomBell.ring()
    }

    /// What has arrived, without waiting: the rest of a batch, or the next one, or nothing.
    func takeBatch() -> [Received] {
        queue.takeBatch { resumeReading() }
    }

    /// Waits until the consumer has made room, or may have.
    func waitForRoom() async throws {
        await roomBell.wait()
        try Task.checkCancellation()
    }

    /// No connection comes any more: ends after what has arrived.
    func finish() {
        queue.finish(throwing: nil)
    }

    /// A ping is about to be sent.
    func pingWillBeSent(number: UInt64) {
        ping.withLockedValue { $0 = number }
        observerBell.ring()
    }

    func takePing() -> UInt64? { ping.withLockedValue { $0.take() } }

    /// A batch was received.
    func received(count: Int) {
        self.count.withLockedValue { $0 += count }
        observerBell.ring()
    }
}

/// Decodes the frames of one of a client's connections into the client's inbox, which outlives it.
struct ClientReceiver<Received: DelimitedMessage>: FrameReceiver {
    let inbox: ClientInbox<Received>
    private var base: MessageReceiver<Received>
    /// The peer has ended its side in order.
    private let inputEnded: @Sendable () -> Void

    init(
        _ base: MessageReceiver<Received>,
        inbox: ClientInbox<Received>,
        inputEnded: @escaping @Sendable () -> Void
    ) {
        self.base = base
        self.inbox = inbox
        self.inputEnded = inputEnded
    }

    mutating func receive(frame: UnsafeRawBufferPointer) throws {
        try base.receive(frame: frame)
    }

    mutating func finishBatch() -> ReadDemand {
        let demand = base.finishBatch()
        if base.lastBatchCount > 0 { inbox.received(count: base.lastBatchCount) }
        return demand
    }

    mutating func takeReplies() throws(ConnectionError) -> [UInt8] {
        try base.takeReplies()
    }

    func pingFrame(number: UInt64) throws(ConnectionError) -> [UInt8]? {
        guard let frame = try base.pingFrame(number: number) else { return nil }
        inbox.pingWillBeSent(number: number)
        return frame
    }

    mutating func finish(throwing error: ConnectionError?) {
        // With an error, the end of the connection tells it.
        if error == nil { inputEnded() }
    }
}
