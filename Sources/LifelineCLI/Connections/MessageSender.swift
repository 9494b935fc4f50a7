internal import Lifeline
internal import LifelineCore
internal import LifelineMessages

/// Sends the messages of a source, and shows how far it is.
struct MessageSender<Received: CarriedContent, Sent: DelimitedMessage> {
    private let client: Client<Received, Sent>
    private let wrap: @Sendable (RawMessage) -> Sent
    /// Messages that a connection has accepted.
    private(set) var sentCount = 0
    private var progress: Progress

    init(client: Client<Received, Sent>, wrap: @escaping @Sendable (RawMessage) -> Sent, isQuiet: Bool) {
        self.client = client
        self.wrap = wrap
        progress = Progress(verb: "sent", isQuiet: isQuiet)
    }

    /// Sends all messages.
    ///
    /// - Returns: why the source cannot be read to its end. What stands before that place is sent all the same.
    mutating func send(_ source: MessageSource) async throws -> CommandFailure? {
        var source = source
        while let batch = try await source.next() {
            for message in batch {
                // How long there may be no connection, the attempts to connect bound.
                try await client.send(wrap(message), policy: .wait(timeout: .seconds(365 * 24 * 3600)))
                sentCount += 1
            }
            progress.report(count: sentCount)
        }
        progress.finish(count: sentCount)
        return source.failure
    }
}
