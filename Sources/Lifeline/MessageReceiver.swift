internal import LifelineCore
internal import LifelineMessages
internal import LifelineTransport

/// Decodes the frames of one connection on its event loop and hands the messages of each read on together.
struct MessageReceiver<Received: DelimitedMessage>: FrameReceiver {
    /// What a message takes besides its bytes, roughly: its value and its storage's header. Without it, a peer that
    /// sends empty messages could fill the queue with a hundred times what is counted.
    private static var overheadPerMessage: Int { 64 }

    let inbox: BatchQueue<Received>
    private let decodingOptions: DecodingOptions
    private var batch: [Received] = []
    private var cost = 0

    init(configuration: ConnectionConfiguration) {
        self.inbox = BatchQueue(marks: configuration.inboundWaterMarks)
        self.decodingOptions = configuration.decodingOptions
    }

    mutating func receive(frame: UnsafeRawBufferPointer) throws {
        batch.append(try Received(serializedBytes: frame, partial: false, options: decodingOptions))
        cost += frame.count + Self.overheadPerMessage
    }

    mutating func finishBatch() -> ReadDemand {
        defer { (batch, cost) = ([], 0) }
        return inbox.receive(batch, cost: cost)
    }

    mutating func finish(throwing error: ConnectionError?) {
        inbox.finish(throwing: error)
    }
}
