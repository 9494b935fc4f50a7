internal import Lifeline
internal import LifelineCore
internal import LifelineMessages
internal import LifelineProtos
internal import LifelineWellKnownTypes

/// Sends the messages that the user gave and shows how far it is.
struct MessageSender {
    private static let batchSize = 256

    private let client: Client<RawMessage, RawMessage>
    private let limit: Int?
    /// Messages that a connection has accepted.
    private(set) var sentCount = 0
    private var progress = Progress(verb: "sent")

    init(client: Client<RawMessage, RawMessage>, limit: Int?) {
        self.client = client
        self.limit = limit
    }

    /// Sends `text` once, or as often as the limit says, each time as a message of its own.
    mutating func send(text: String, from sender: String?) async throws {
        let total = limit ?? 1
        while sentCount < total {
            let batch = try (sentCount..<min(total, sentCount + Self.batchSize)).map { number in
                try RawMessage(Self.message(text: text, from: sender, number: number))
            }
            try await send(batch)
        }
        progress.finish(count: sentCount)
    }

    private static func message(text: String, from sender: String?, number: Int) -> Sample_Chat_V1_ChatMessage {
        .with {
            $0.id = "\(number + 1)"
            $0.from = sender ?? ""
            $0.text = text
            $0.kind = .text
            $0.nonce = .random(in: .min ... .max)
            $0.position = Int64(number)
            $0.sentAt = .now()
        }
    }

    /// Sends the messages of a delimited stream as they are, after a look whether they are ChatMessages.
    ///
    /// - Returns: Why the stream cannot be read to its end; what stands before that place is sent all the same.
    mutating func send(streamFrom file: consuming InputFile) async throws -> CommandFailure? {
        var assembler = FrameAssembler(
            decoder: FrameDecoder(maximumFrameLength: ConnectionConfiguration().maximumFrameLength)
        )
        var failure: CommandFailure?
        var isAtEnd = false
        while !isLimitReached, !isAtEnd, failure == nil {
            var messages = MessageCollector()
            do {
                let chunk = try await file.readChunk()
                isAtEnd = chunk.isEmpty
                if isAtEnd { try assembler.finish() }
                try chunk.withUnsafeBytes { try assembler.receive($0, into: &messages) }
            } catch {
                failure = CommandFailure(error)
                if failure == nil { throw error }
            }
            try await send(Array(messages.collected.prefix(remaining)))
        }
        progress.finish(count: sentCount)
        return isLimitReached ? nil : failure
    }

    private var remaining: Int { limit.map { $0 - sentCount } ?? .max }
    private var isLimitReached: Bool { remaining == 0 }

    private mutating func send(_ batch: [RawMessage]) async throws {
        for message in batch {
            // How long there may be no connection, the attempts to connect bound.
            try await client.send(message, policy: .wait(timeout: .seconds(365 * 24 * 3600)))
            sentCount += 1
        }
        progress.report(count: sentCount)
    }
}

/// Takes the frames of a chunk as messages.
private struct MessageCollector: FrameSink {
    private(set) var collected: [RawMessage] = []

    mutating func receive(frame: UnsafeRawBufferPointer) throws {
        _ = try Sample_Chat_V1_ChatMessage(serializedBytes: frame)
        collected.append(RawMessage(bytes: [UInt8](frame)))
    }
}
