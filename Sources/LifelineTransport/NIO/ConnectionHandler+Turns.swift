internal import LifelineCore
internal import NIOCore

/// Takes turns with other connections of the loop at receiving what was read.
extension ConnectionHandler {
    /// How long a connection receives what it has read before others have their turn: 500 µs, some ten times what it
    /// costs to let them, and short enough that tens of connections which send nothing but the smallest frames are not
    /// felt.
    private static var shortTurn: Duration { .microseconds(500) }
    /// The same where no other one has had a turn since: 10 ms, beside which 100 µs until the next turn are little.
    private static var longTurn: Duration { .milliseconds(10) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data)
        let time = now()
        if newcomer != nil, letsAnybodyIn { admitPeer() }
        if liveness?.received(now: time) == true { armLivenessTimer() }
        if rest.readableBytes > 0 {
            // Within another read, for where a write fails NIO reads at once what is left; or behind one that waits for
            // its turn, for when the peer ends its side NIO reads all that the kernel has.
            rest.writeImmutableBuffer(bytes)
        } else {
            rest = bytes
            takeTurn(begunAt: time, behindReadOf: bytes)
        }
        setReadLength(after: isWaitingForTurn ? 0 : bytes.readableBytes)
        chargeMemory()
        if sharedReadLength != nil { SpareBuffer.forReading(bytes.capacity).giveBack(bytes) }
    }

    /// Receives what was read, part by part, until that is done or the turn is over.
    ///
    /// - Parameter read: what the socket was read for just now; nil where that was in an earlier turn.
    private func takeTurn(begunAt begin: MonotonicTime, behindReadOf read: ByteBuffer?) {
        if let executor, read == nil || !hasLayers {
            executor.read(isAll: read.map { $0.writableBytes > 0 }) { receivePart(ofTurn: $0, begunAt: begin) }
        } else if let executor {
            // A layer may be in the middle of what it has read: tasks come after that.
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
        guard let executor else { preconditionFailure("Without an executor all is received at once.") }
        if sharedReadLength != nil, pauses.isDisjoint(with: .turn) {
            // The loop's buffer is for other connections meanwhile.
            var own = ByteBufferAllocator().buffer(capacity: rest.readableBytes)
            own.writeBuffer(&rest)
            rest = own
        }
        pauseReading(.turn)
        isWaitingForTurn = true
        executor.readLater(self)
    }

    /// It is this connection's turn again.
    func continueReading() {
        guard isWaitingForTurn else { return }
        isWaitingForTurn = false
        if rest.readableBytes > 0 { takeTurn(begunAt: now(), behindReadOf: nil) }
        if !isWaitingForTurn { resumeReading(.turn) }
        chargeMemory()
    }

    /// What was read and not received is for nobody any more.
    func dropRest() {
        rest = ByteBuffer()
        handleDeferred()
    }

    /// Handles an event when all has been received that the peer had sent before it.
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

/// An event behind what was read and is not received yet.
enum DeferredEvent {
    /// An inbound event: mostly that the peer has ended its side.
    case user(Any)
    case failure(any Error)
    case inactive(any EventLoop)
}
