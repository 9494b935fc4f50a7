internal import Lifeline
internal import LifelineMessages
internal import LifelineProtos

/// Prints the messages of all connections until enough have come.
///
/// While standard output takes nothing, a connection's next batch is not taken, and so the peers wait, too.
actor MessagePrinter {
    private let format: MessageFormat
    private let limit: Int?
    private var printedCount = 0
    private var progress = Progress(verb: "received")
    private nonisolated let done: AsyncThrowingStream<Never, any Error>
    private nonisolated let finisher: AsyncThrowingStream<Never, any Error>.Continuation

    init(format: MessageFormat, limit: Int?) {
        self.format = format
        self.limit = limit
        (done, finisher) = AsyncThrowingStream.makeStream(of: Never.self)
    }

    /// Waits until the limit is reached, printing failed, or the user interrupts the command.
    nonisolated func waitUntilDone(or interruption: Interruption) async throws {
        let waiting = Task { [finisher] in
            if await interruption.wait() != nil { finisher.finish() }
        }
        defer { waiting.cancel() }
        for try await _ in done {}
        await finishProgress()
    }

    /// Prints messages up to the limit. The ones before one that is no ChatMessage are printed before its error is
    /// thrown.
    func print(_ batch: [RawMessage]) async throws {
        var output: [UInt8] = []
        defer { progress.report(count: printedCount) }
        do {
            for message in batch where limit.map({ printedCount < $0 }) ?? true {
                try append(message, to: &output)
                printedCount += 1
            }
        } catch {
            try await writeToStandardOutput(output)
            throw error
        }
        let isLimitReached = printedCount == limit
        do {
            try await writeToStandardOutput(output)
        } catch {
            finisher.finish(throwing: error)
            throw error
        }
        if isLimitReached { finisher.finish() }
    }

    private func append(_ raw: RawMessage, to output: inout [UInt8]) throws {
        let message = try raw.withUnsafeBytes { try Sample_Chat_V1_ChatMessage(serializedBytes: $0) }
        switch format {
        case .text: output += (message.textFormatString() + "\n").utf8
        case .delimited: try raw.withDelimitedBytes { output += $0 }
        }
    }

    private func finishProgress() {
        progress.finish(count: printedCount)
    }
}
