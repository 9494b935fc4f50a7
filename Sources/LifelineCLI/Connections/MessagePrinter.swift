internal import Lifeline
internal import LifelineCore
internal import LifelineMessages

/// Prints the messages of all connections until there are enough.
///
/// While the output takes nothing, a connection's next batch is not taken, and so the peers wait, too.
actor MessagePrinter {
    private let output: OutputFile
    private var messages: PrintedMessages
    /// Ends the command when the limit is reached, or printing fails.
    nonisolated let commandEnd = CommandEnd()

    /// - Parameter limit: the most messages; nil: no limit.
    init(form: PrintedForm, output: OutputFile, limit: Int?, skipsBadMessages: Bool, isQuiet: Bool) {
        self.output = output
        messages = PrintedMessages(
            form,
            maximumCount: limit ?? .max,
            skipsBadMessages: skipsBadMessages,
            progress: Progress(verb: "received", isQuiet: isQuiet || output.isTerminal)
        )
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
            commandEnd.finish()
        } catch let bad as BadMessage {
            commandEnd.finish(throwing: CommandFailure(status: .badData, message: "\(bad)"))
        } catch {
            commandEnd.finish(throwing: error)
        }
        // Do not delay a peer that goes on until the client is closed.
        await client.dropMessages()
    }

    /// Prints messages up to the limit.
    ///
    /// - Parameters:
    ///   - count: the messages of the connection before these.
    ///   - peer: the other end of the connection, in words.
    /// - Throws: `BadMessage`, after the messages before it were printed; errors of printing.
    func print(_ batch: [some CarriedContent], after count: Int, of peer: String) async throws {
        var text: [UInt8] = []
        // Only the call that prints the last message ends the command, after its own output and that of other calls.
        var isLast = false
        defer { messages.reportProgress() }
        for (index, message) in batch.enumerated() where !messages.isDone {
            do throws(BadMessage) {
                try append(message, at: "message \(count + index + 1) of \(peer)", to: &text)
            } catch {
                try await write(&text)
                throw error
            }
            isLast = messages.isDone
            if text.count >= PrintedMessages.batchLength { try await write(&text) }
        }
        try await write(&text)
        if isLast { commandEnd.finish() }
    }

    private func append(
        _ message: some CarriedContent,
        at place: @autoclosure () -> String,
        to text: inout [UInt8]
    ) throws(BadMessage) {
        let result = message.withContent { payload in
            Result { () throws(BadMessage) in try messages.append(payload, at: place(), to: &text) }
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
            commandEnd.finish(throwing: error)
            throw error
        }
    }

    /// Leaves an empty file when there were no messages. For a command that has not failed.
    nonisolated func finishOutput() { output.begin() }

    /// Reports the result.
    ///
    /// - Parameter isJSON: whether the report is JSON for a program.
    func reportEnd(isJSON: Bool) throws {
        if isJSON {
            try messages.reportEndAsJSON()
        } else {
            messages.reportEnd()
        }
    }
}

extension Client {
    /// Takes all messages until the client is closed, so that a peer that answers is not delayed.
    func dropMessages() async {
        do {
            for try await _ in messages.batches {}
        } catch {
            // Only this task iterates, and it is not cancelled before the client is.
        }
    }
}
