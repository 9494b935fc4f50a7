internal import LifelineCore
internal import LifelineMessages
internal import LifelineTransport

/// Decodes the frames of one connection on its event loop and passes on the messages of each read together. Pings are
/// answered, and removed together with their answers, once per batch, so that connections without heartbeat messages
/// pay nothing for it.
struct MessageReceiver<Sink: MessageSink>: FrameReceiver {
    typealias Received = Sink.Message

    /// The approximate memory of a message besides its bytes: its value and the header of its storage. Without it, a
    /// peer that sends empty messages could fill the queue with a hundred times the counted size.
    private static var overheadPerMessage: Int { 64 }

    /// The receiver of the messages.
    let inbox: Sink
    private let decodingOptions: DecodingOptions
    private let heartbeat: HeartbeatFrames<Received>?
    private let intake: (any MessageIntake<Received>)?
    private var batch: [Received] = []
    private var cost = 0
    /// The cost of each message in the batch, if an intake may take some out.
    private var costs: [Int] = []
    private var replies: Result<[UInt8], ConnectionError> = .success([])

    init(
        configuration: ConnectionConfiguration,
        heartbeat: HeartbeatMessages<Received, some DelimitedMessage>?,
        sink: Sink
    ) {
        self.inbox = sink
        self.intake = sink.intake
        self.decodingOptions = configuration.decodingOptions
        self.heartbeat = heartbeat.map { HeartbeatFrames($0, configuration) }
        intake?.connectionBegan()
    }

    /// Makes a receiver with its own queue for messages.
    init<Message: DelimitedMessage>(
        configuration: ConnectionConfiguration,
        heartbeat: HeartbeatMessages<Message, some DelimitedMessage>?
    ) where Sink == BatchQueue<Message> {
        let queue = BatchQueue<Message>(marks: configuration.inboundWaterMarks)
        self.init(configuration: configuration, heartbeat: heartbeat, sink: queue)
    }

    var answersPings: Bool { heartbeat != nil }

    var inboxByteCount: Int { inbox.waitingCost }

    /// 32 KiB. The messages of a read of 128 KiB took some 400 KiB, which glibc returned to the kernel each time they
    /// were freed, as it does from 128 KiB on (`M_TRIM_THRESHOLD`): chat messages of 300 bytes took 0.75 µs instead of
    /// 0.48. Each further part costs one wake-up of the receiving task, some 10,000 instructions.
    ///
    /// 128 KiB with an intake, which keeps no messages.
    ///
    /// 1,024 frames, because frames of a byte or two cost as much as others.
    var partLimit: PartLimit { PartLimit(byteCount: intake == nil ? 32 << 10 : 128 << 10, frameCount: 1024) }

    mutating func receive(_ run: FrameRun) throws {
        // Reserving gains nothing for a few messages, and this is generic code.
        if run.count > 4 { batch.reserveCapacity(batch.count + run.count) }
        // Includes the prefixes, so that the frames need not be visited for it.
        if intake == nil { cost += run.byteCount + run.count * Self.overheadPerMessage }
        try run.withPayloads { try decode($0) }
    }

    private mutating func decode(_ payloads: UnsafeBufferPointer<UnsafeRawBufferPointer>) throws(MessageError) {
        let before = batch.count
        // Also on a throw, for the messages that were decoded until then.
        defer {
            precondition(
                0...payloads.count ~= batch.count - before,
                "\(Received.self).decode adds a message for each payload."
            )
            if intake != nil {
                for payload in payloads[..<(batch.count - before)] {
                    cost += payload.count + Self.overheadPerMessage
                    costs.append(payload.count + Self.overheadPerMessage)
                }
            }
        }
        try Received.decode(payloads, into: &batch, partial: false, options: decodingOptions)
    }

    mutating func finishBatch() -> ReadDemand {
        defer {
            (batch, cost) = ([], 0)
            costs.removeAll(keepingCapacity: costs.count < 1024)
        }
        if let heartbeat { takeHeartbeats(heartbeat) }
        if let intake { takeMessages(intake) }
        return inbox.receive(batch, cost: cost)
    }

    mutating func takeReplies() throws(ConnectionError) -> [UInt8] {
        guard heartbeat != nil else { return [] }
        defer { replies = .success([]) }
        return try replies.get()
    }

    func pingFrame(number: UInt64) throws(ConnectionError) -> [UInt8]? {
        guard let frame = try heartbeat?.ping?(number) else { return nil }
        inbox.pingWillBeSent(number: number)
        return frame
    }

    mutating func finish(throwing error: ConnectionError?) {
        inbox.finish(throwing: error)
    }

    /// Offers the batch to the intake. Messages that it takes, and their cost, do not reach the sink.
    private mutating func takeMessages(_ intake: any MessageIntake<Received>) {
        var kept = 0
        for index in batch.indices {
            if intake.consume(batch[index], byteCount: costs[index] - Self.overheadPerMessage) {
                cost -= costs[index]
                continue
            }
            if kept != index { batch.swapAt(kept, index) }
            costs[kept] = costs[index]
            kept += 1
        }
        batch.removeSubrange(kept...)
        intake.batchEnded()
    }

    /// Takes the heartbeat's messages out of the batch and answers pings. The batch's cost still includes them, until
    /// the consumer takes the batch.
    private mutating func takeHeartbeats(_ heartbeat: HeartbeatFrames<Received>) {
        var kept = 0
        do throws(ConnectionError) {
            var answers: [UInt8] = []
            for index in batch.indices {
                if try heartbeat.isHeartbeat(batch[index], &answers) { continue }
                if kept != index { batch.swapAt(kept, index) }
                if intake != nil { costs[kept] = costs[index] }
                kept += 1
            }
            replies = .success(answers)
        } catch {
            replies = .failure(error)
        }
        batch.removeSubrange(kept...)
    }
}

/// Heartbeat messages as frames, for a receiver that need not know the type of sent messages.
private struct HeartbeatFrames<Received: DelimitedMessage>: Sendable {
    /// Makes a ping; nil when this side sends no pings.
    let ping: (@Sendable (UInt64) throws(ConnectionError) -> [UInt8])?
    /// Returns whether a message belongs to the heartbeat. Appends the answer to a ping to the bytes.
    let isHeartbeat: @Sendable (Received, inout [UInt8]) throws(ConnectionError) -> Bool

    init<Sent>(_ messages: HeartbeatMessages<Received, Sent>, _ configuration: ConnectionConfiguration) {
        let encoder = configuration.encoder(for: Sent.self)
        if let makePing = messages.ping {
            ping = { (number) throws(ConnectionError) in try HeartbeatFrames.frame(of: makePing(number), encoder) }
        } else {
            ping = nil
        }
        isHeartbeat = { (message, answers) throws(ConnectionError) in
            guard let answer = messages.answer(message) else { return messages.isAnswer(message) }
            answers += try HeartbeatFrames.frame(of: answer, encoder)
            return true
        }
    }

    private static func frame(
        of message: some DelimitedMessage,
        _ encoder: FrameEncoder
    ) throws(ConnectionError) -> [UInt8] {
        do {
            return try message.withDelimitedBytes(partial: false) { frame in
                try encoder.checkFrame(frame)
                return Array(frame)
            }
        } catch {
            throw ConnectionError(
                code: .messageRefused,
                message: "A message of the heartbeat cannot be sent; see HeartbeatMessages.",
                cause: error
            )
        }
    }
}
