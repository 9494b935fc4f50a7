internal import Glibc
internal import LifelineCore
internal import LifelineRuntime
internal import NIOCore

// The end of a connection: in order, with a failure, or at once.
extension ConnectionHandler {
    /// Notes that this side has ended its output, or could not.
    func completeOutput(_ result: Result<Void, any Error>) {
        switch result {
        case .failure(let error):
            ioFailed(error)
        case .success:
            outputEnded.open(with: nil)
            perform(machine.outputEnded())
            // From now on the timer limits the time for the peer's end.
            if let closeTimer {
                closeTimer.cancel()
                startCloseTimer()
            }
        }
    }

    func close() {
        guard case .begin(let action) = machine.closeRequested() else { return }
        liveness?.closeRequested()
        livenessTimer.cancel()
        perform(action)
        dropRest()
        resumeReading(.all)
        if outbound.finish(closing: .closedLocally) { flush() }
        startCloseTimer()
    }

    private func startCloseTimer() {
        guard let context, machine.failure == nil else { return }
        let before = unwrittenByteCounts
        closeTimer = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(closeTimeout)) {
            switch self.machine.closeTimerEnded(madeProgress: self.unwrittenByteCounts != before) {
            case .none: return
            case .wait: self.startCloseTimer()
            case .closeChannel: self.cutChannel()
            }
        }
    }

    /// The bytes that the queue and the channel still have to write: either number changes when the peer reads.
    private var unwrittenByteCounts: [Int] { [outbound.unwrittenByteCount, channelByteCount] }

    /// The number of bytes of the write that the kernel has not taken.
    var channelByteCount: Int {
        (try? context?.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
    }

    /// The number of accepted bytes that may be lost when the connection is cut: those that the peer's system has not
    /// acknowledged. Bytes that a Unix socket has taken count as delivered. 0 when the connection is over.
    var undeliveredByteCount: Int {
        guard let context, machine.failure == nil else { return 0 }
        let isUnix = if case .unixDomainSocket = context.remoteAddress { true } else { false }
        let inSystem = isUnix ? 0 : Int(clamping: unacknowledgedByteCount(context.channel) ?? 0)
        return outbound.unwrittenByteCount + channelByteCount + inSystem
    }

    /// Closes at once. With `resetting`, a TCP peer sees a reset, which it cannot mistake for a regular end.
    func fail(_ reason: ConnectionError, resetting: Bool) {
        guard machine.failed(reason), let context else { return endLastWait() }
        // Before the peer can notice the end, and come back.
        if let end = machine.stopReceivingRequested().finishInput { _ = finishInput(end) }
        defer { dropRest() }
        if reason.code == .protocolViolation { context.triggerUserOutboundEvent(PeerViolatedProtocol(), promise: nil) }
        if resetting, let socket = context.channel as? any SocketOptionProvider, context.remoteAddress?.port != nil {
            // This takes effect at once on the loop; on failure the close is an ordinary one.
            _ = socket.setSoLinger(linger(l_onoff: 1, l_linger: 0))
        }
        cutChannel()
    }

    /// Closes the socket at once, so that layers do not end it in order.
    private func cutChannel() {
        guard hasLayers else {
            context?.close(promise: nil)
            return
        }
        context?.triggerUserOutboundEvent(SocketCut(), promise: nil)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        ioFailed(error)
    }

    func ioFailed(_ error: any Error) {
        handle(.failure(error))
    }

    func channelInactive(context: ChannelHandlerContext) {
        handle(.inactive(context.eventLoop))
        context.fireChannelInactive()
    }

    func becameInactive(on eventLoop: any EventLoop) {
        closeTimer?.cancel()
        livenessTimer.cancel()
        let violation = machine.becameInactive().finishInput.flatMap { finishInput($0) }
        let failure = machine.failure ?? violation
        let unwritten = outbound.close(failure ?? .closedLocally)
        bytesInFlight = ByteBuffer()
        _ = replyBuffer?.take { _, _ in }
        outputEnded.open(with: failure)
        let report = ClosureReport(
            failure: failure,
            failedInUse: machine.failedInUse || violation != nil,
            peerEndedInTime: machine.peerEndedInTime,
            unwrittenByteCount: unwritten,
            lastInboundAt: liveness?.lastInboundAt,
            acceptedFrameCount: outbound.acceptedFrameCount,
            unacknowledgedFrameCount: nil
        )
        liveness = nil
        memoryCharge?.update(0)
        memoryCharge = nil
        finish(report, waiting: machine.endedInOrder && violation == nil, on: eventLoop)
    }
}
