internal import Lifeline
internal import LifelineCore
internal import LifelineMessages

/// A message that cannot be decoded.
struct BadMessage: Error, CustomStringConvertible {
    /// Its place among those of its connection, from 1.
    let number: Int
    let peer: String
    let error: MessageError

    var description: String {
        "Cannot decode message \(number) of \(peer). \(error.words) Is --type right? --skip-bad leaves such messages out."
    }
}

/// Prints the messages of all connections until enough have come.
///
/// While the output takes nothing, a connection's next batch is not taken, and so the peers wait, too.
actor MessagePrinter {
    private let form: PrintedForm
    private let output: MessageOutput
    private let limit: Int
    private let skipsBadMessages: Bool
    private var (printedCount, badCount) = (0, 0)
    private var progress: Progress
    private nonisolated let done: AsyncThrowingStream<Never, any Error>
    private nonisolated let finisher: AsyncThrowingStream<Never, any Error>.Continuation

    /// - Parameter limit: the most messages; nil: no limit.
    init(form: PrintedForm, output: MessageOutput, limit: Int?, skipsBadMessages: Bool, isQuiet: Bool) {
        self.form = form
        self.output = output
        self.limit = limit ?? .max
        self.skipsBadMessages = skipsBadMessages
        progress = Progress(verb: "received", isQuiet: isQuiet || output.isTerminal)
        (done, finisher) = AsyncThrowingStream.makeStream(of: Never.self)
    }

    /// Waits until the limit is reached, printing failed, the user interrupts the command, or the time is over.
    ///
    /// - Parameter duration: nil: as long as it takes.
    nonisolated func waitUntilDone(or interruption: Interruption, within duration: Duration?) async throws {
        let waiting = Task { [finisher] in
            if await interruption.wait() != nil { finisher.finish() }
        }
        let timing = duration.map { duration in
            Task { [finisher] in
                try await Task.sleep(for: duration)
                finisher.finish()
            }
        }
        defer {
            waiting.cancel()
            timing?.cancel()
        }
        for try await _ in done {}
    }

    /// Prints the messages of a client, up to the limit, until it is closed.
    ///
    /// - Parameter peer: the server, in words.
    nonisolated func printMessages<Received: CarriedContent, Sent>(
        of client: Client<Received, Sent>,
        from peer: String
    ) async {
        var count = 0
        do {
            for try await batch in client.messages.batches {
                try await print(batch, after: count, of: peer)
                count += batch.count
            }
            finisher.finish()
        } catch let bad as BadMessage {
            finisher.finish(throwing: CommandFailure(status: .badData, message: "\(bad)"))
        } catch {
            finisher.finish(throwing: error)
        }
        // A peer that goes on is not held up until the client is closed.
        await client.dropMessages()
    }

    /// Prints messages up to the limit.
    ///
    /// - Parameters:
    ///   - count: the messages of the connection before these.
    ///   - peer: the other end of the connection, in words.
    /// - Throws: `BadMessage`, after the messages before it were printed; what printing fails with.
    func print(_ batch: [some CarriedContent], after count: Int, of peer: String) async throws {
        var text: [UInt8] = []
        // Only the call that prints the last message ends the command, behind its own output and that of others.
        var isLast = false
        defer { progress.report(count: printedCount) }
        for (index, message) in batch.enumerated() where printedCount < limit {
            do throws(MessageError) {
                try append(message, to: &text)
                printedCount += 1
                isLast = printedCount == limit
            } catch {
                let bad = BadMessage(number: count + index + 1, peer: peer, error: error)
                guard skipsBadMessages else {
                    try await write(&text)
                    throw bad
                }
                badCount += 1
                writeErrorLine("lifeline: left out message \(bad.number) of \(peer): \(error.words.escaped())")
            }
            // The text of a message may be many times as long as its encoding.
            if text.count >= 256 << 10 { try await write(&text) }
        }
        try await write(&text)
        if isLast { finisher.finish() }
    }

    private func append(_ message: some CarriedContent, to text: inout [UInt8]) throws(MessageError) {
        let result = message.withContent { payload in
            Result { () throws(MessageError) in try form.append(payload, to: &text) }
        }
        try result.get()
    }

    private func write(_ text: inout [UInt8]) async throws {
        let bytes = text
        text.removeAll(keepingCapacity: true)
        if bytes.isEmpty { return }
        do {
            try await output.write(bytes)
        } catch let error as CommandFailure {
            finisher.finish(throwing: error)
            throw error
        }
    }

    /// Leaves an empty file where nothing has come. For a command that has not failed.
    nonisolated func finishOutput() { output.begin() }

    /// Tells how it went.
    func reportEnd() {
        progress.finish(count: printedCount)
        if badCount > 0 {
            let all = printedCount + badCount
            writeErrorLine("lifeline: left out \(badCount) of \(all) messages, which cannot be decoded")
        }
    }
}

extension Client {
    /// Takes all messages until the client is closed, so that a peer that answers is not held up.
    func dropMessages() async {
        do {
            for try await _ in messages.batches {}
        } catch {
            // Only this task iterates, and it is not cancelled before the client is.
        }
    }
}
