internal import LifelineCore
internal import NIOCore

/// Lets the connections of a loop take turns at receiving the bytes that they have read.
extension ConnectionHandler {
    /// How long a connection receives read bytes before others get their turn: 500 µs. That is some ten times the cost
    /// of a change of turns, and short enough that tens of connections which send only the smallest frames cause no
    /// noticeable delay.
    private static var shortTurn: Duration { .microseconds(500) }
    /// The same time if no other connection has had a turn since: 10 ms, compared to which 100 µs until the next turn
    /// are little.
    private static var longTurn: Duration { .milliseconds(10) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data)
        let time = now()
        if newcomer != nil, letsAnybodyIn { admitPeer() }
        if liveness?.received(now: time) == true { armLivenessTimer() }
        if rest.readableBytes > 0 {
            // This read comes within another one, because NIO reads the remaining bytes at once when a write fails; or
            // after one that waits for its turn, because NIO reads all bytes of the kernel when the peer ends its side.
            rest.writeImmutableBuffer(bytes)
        } else {
            rest = bytes
            takeTurn(begunAt: time, behindReadOf: bytes)
        }
        setReadLength(after: isWaitingForTurn ? 0 : bytes.readableBytes)
        chargeMemory()
        if sharedReadLength != nil { SpareBuffer.forReading(bytes.capacity).giveBack(bytes) }
    }

    /// Receives the read bytes, part by part, until all are received or the turn is over.
    ///
    /// - Parameter read: the bytes just read from the socket; nil if they were read in an earlier turn.
    private func takeTurn(begunAt begin: MonotonicTime, behindReadOf read: ByteBuffer?) {
        if let executor, read == nil || !hasLayers {
            executor.read(isAll: read.map { $0.writableBytes > 0 }) { receivePart(ofTurn: $0, begunAt: begin) }
        } else if let executor {
            // A layer may be in the middle of its read bytes: tasks run after that.
            let turn = executor.socketWasRead()
            while receivePart(ofTurn: turn, begunAt: begin) {}
        } else {
            receivePart(.unlimited)
        }
        if rest.readableBytes > 0 { waitForTurn() } else { handleDeferred() }
    }

    /// Returns whether the turn goes on.
    private func receivePart(ofTurn turn: Int, begunAt begin: MonotonicTime) -> Bool {
        receivePart(partLimit)
        let isAlone = lastTurn == turn - 1
        if rest.readableBytes > 0, now() - begin < (isAlone ? Self.longTurn : Self.shortTurn) { return true }
        lastTurn = turn
        return false
    }

    private func waitForTurn() {
        guard let executor else { preconditionFailure("Without an executor there are no turns.") }
        if sharedReadLength != nil, pauses.isDisjoint(with: .turn) {
            // Other connections use the loop's buffer meanwhile.
            var own = ByteBufferAllocator().buffer(capacity: rest.readableBytes)
            own.writeBuffer(&rest)
            rest = own
        }
        pauseReading(.turn)
        isWaitingForTurn = true
        executor.readLater(self)
    }

    /// Continues in this connection's next turn.
    func continueReading() {
        guard isWaitingForTurn else { return }
        isWaitingForTurn = false
        if rest.readableBytes > 0 { takeTurn(begunAt: now(), behindReadOf: nil) }
        if !isWaitingForTurn { resumeReading(.turn) }
        chargeMemory()
    }

    /// Drops the bytes that were read and not received.
    func dropRest() {
        rest = ByteBuffer()
        handleDeferred()
    }

    /// Handles an event after all bytes that the peer sent before it were received.
    func handle(_ event: DeferredEvent) {
        if rest.readableBytes > 0 { return deferred.append(event) }
        switch event {
        case .user(let event): inboundEventTriggered(event)
        case .failure(let error): fail(ConnectionError(ioError: error), resetting: false)
        case .inactive(let eventLoop): becameInactive(on: eventLoop)
        }
    }

    private func handleDeferred() {
        if deferred.isEmpty { return }
        let events = deferred
        deferred = []
        for event in events { handle(event) }
    }
}

/// An event after read bytes that are not received yet.
enum DeferredEvent {
    /// An inbound event: mostly that the peer has ended its side.
    case user(Any)
    case failure(any Error)
    case inactive(any EventLoop)
}
