internal import LifelineCore
internal import LifelineMessages
internal import LifelineRuntime
internal import LifelineTransport

/// Passes a connection's frames to a handler on its loop. The handler lives as long as frames may come.
final class FrameHandlerReceiver<Handler: FrameHandler & ~Copyable>: FrameReceiver {
    /// Opens when no more frames come; with the reason if the connection has failed.
    let inbox = Latch<ConnectionError?>()
    let replies: ReplyBuffer
    private let maximumFrameLength: Int
    private let makeHandler: (FrameConnection) -> Handler
    private var handler: Handler?

    init(maximumFrameLength: Int, makeHandler: @escaping @Sendable (FrameConnection) -> Handler) {
        self.maximumFrameLength = maximumFrameLength
        self.makeHandler = makeHandler
        self.replies = ReplyBuffer(maximumFrameLength: maximumFrameLength)
    }

    var replyBuffer: ReplyBuffer? { replies }

    func opened(_ connection: any TransportConnection) {
        handler = makeHandler(
            FrameConnection(
                transport: connection,
                inputEnded: inbox,
                encoder: FrameEncoder(maximumFrameLength: maximumFrameLength)
            )
        )
    }

    func receive(_ run: FrameRun) throws {
        do {
            // Replies are mostly as long as the frames that they answer.
            try replies.write(expecting: run.byteCount) { try handler?.received(run, &$0) }
        } catch let error as ConnectionError where error.code == .sendingFinished && !replies.isOpen {
            // Neither a failure nor the handler's fault: this side has just ended.
        } catch let error as ConnectionError {
            throw error
        } catch let error as MessageError {
            throw error
        } catch {
            throw ConnectionError(
                code: .closedLocally,
                message: "The handler has given the connection up.",
                cause: error
            )
        }
    }

    func finish(throwing error: ConnectionError?) {
        // The handler may hold the connection, which holds this.
        if var handler = handler.take() { handler.ended(error) }
        inbox.open(with: error)
    }

    // All answers are in the replies.
    var answersPings: Bool { false }
    func finishBatch() -> ReadDemand { .more }
    func takeReplies() -> [UInt8] { [] }
    func pingFrame(number: UInt64) -> [UInt8]? { nil }
}
