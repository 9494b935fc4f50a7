internal import Lifeline
internal import LifelineCore
internal import LifelineMessages

/// Sends the messages of a source, and shows its progress.
struct MessageSender<Received: CarriedContent, Sent: DelimitedMessage> {
    private let client: Client<Received, Sent>
    private let wrap: @Sendable (RawMessage) -> Sent
    /// The number of messages that a connection has accepted.
    private(set) var sentCount = 0
    private var progress: Progress

    init(client: Client<Received, Sent>, wrap: @escaping @Sendable (RawMessage) -> Sent, isQuiet: Bool) {
        self.client = client
        self.wrap = wrap
        progress = Progress(verb: "sent", isQuiet: isQuiet)
    }

    /// Sends all messages.
    ///
    /// - Returns: the reason why the source cannot be read to its end, if so. The messages before that place are sent
    ///   nevertheless.
    mutating func send(_ source: MessageSource) async throws -> CommandFailure? {
        var source = source
        while let batch = try await source.next() {
            for message in batch {
                // The number of attempts to connect limits the time without a connection.
                try await client.send(wrap(message), policy: .wait(timeout: .seconds(365 * 24 * 3600)))
                sentCount += 1
            }
            progress.report(count: sentCount)
        }
        progress.finish(count: sentCount)
        return source.failure
    }
}
