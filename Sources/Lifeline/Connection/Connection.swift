public import LifelineCore
public import LifelineMessages
internal import LifelineTransport

/// A connection on which messages of one type arrive and messages of another (or the same) type are sent.
///
/// It is valid inside the closure of `withConnection` or of a server's handler. Several tasks may use it: all may send,
/// but only one at a time may iterate.
public struct Connection<Received: DelimitedMessage, Sent: DelimitedMessage>: Sendable {
    /// The endpoint of this side.
    public var localEndpoint: Endpoint { transport.localEndpoint }

    /// The endpoint of the peer; on a server's Unix socket, whose clients have no name, the socket itself.
    public var remoteEndpoint: Endpoint { transport.remoteEndpoint }

    /// The application protocol that the two sides have agreed on over TLS (ALPN); nil when they agreed on none.
    public var applicationProtocol: String? { transport.applicationProtocol }

    /// The result of opening the WebSocket; nil on other connections.
    public var webSocket: WebSocketOpening? { transport.webSocket }

    /// Runs tasks on the event loop of the connection:
    ///
    ///     try await withTaskExecutorPreference(connection.executor) { ... }
    ///
    /// Tasks that send and receive run there without a switch between threads, and their answers to the messages of one
    /// read go out with few writes. They must not block, nor compute for long without a pause, because the loop's other
    /// connections wait meanwhile. Handlers of servers run there unless `ServerConfiguration.handlerExecutor` says
    /// otherwise.
    public var executor: any TaskExecutor { transport.executor ?? globalConcurrentExecutor }

    /// The messages that arrive.
    public let messages: MessageSequence<Received>

    var transport: any TransportConnection { outlet.transport }
    @usableFromInline let outlet: FrameOutlet
    private let outboundWaterMarks: WaterMarks

    init(_ opened: OpenedConnection<BatchQueue<Received>>, configuration: ConnectionConfiguration) {
        self.init(
            opened,
            configuration.encoder(for: Sent.self),
            outboundWaterMarks: configuration.outboundWaterMarks
        )
    }

    init(
        _ opened: OpenedConnection<BatchQueue<Received>>,
        _ encoder: FrameEncoder,
        outboundWaterMarks: WaterMarks
    ) {
        self.messages = MessageSequence(inbox: opened.inbox, connection: opened.connection)
        self.outlet = FrameOutlet(transport: opened.connection, encoder: encoder)
        self.outboundWaterMarks = outboundWaterMarks
    }

    /// Sends a message. Returns when the message is accepted: an accepted message is written before a graceful close.
    ///
    /// The call waits while the bytes that the peer has not made room for are over the high-water mark; messages are
    /// accepted in the order of the calls. Messages that are sent in quick succession go out together.
    ///
    /// - Parameter isolation: the isolation of the caller; leave it out.
    /// - Throws: `ConnectionError` `messageRefused` when it cannot be encoded or is over the limit, `sendingFinished`
    ///   after `finishSending()`, or the reason for which the connection has failed. `CancellationError` when the task
    ///   is cancelled: then the message was not accepted.
    @inlinable @inline(__always)
    public func send(_ message: Sent, isolation: isolated (any Actor)? = #isolation) async throws {
        // Inlined, with the isolation as a parameter, for a loop that receives and sends: see `MessageSource.next`. In
        // a function that is `nonisolated(nonsending)`, Swift would check the executor for each message again.
        if let place = try encodeAndOffer(message) { try await outlet.wait(in: place, isolation: isolation) }
    }

    @inlinable func encodeAndOffer(_ message: Sent) throws -> FrameOutlet.PlaceInLine? {
        try Task.checkCancellation()
        // Capturing self would copy it.
        let outlet = outlet
        do {
            return try message.withDelimitedBytes(partial: false) { try outlet.offer($0) }
        } catch {
            throw Self.refusal(error)
        }
    }

    /// Sends messages in order, like `send(_:)` one after the other, and at less cost: they are gathered, up to 16 KiB
    /// or a quarter of the high-water mark, and accepted together. With a slow sequence, `send(_:)` each message
    /// instead.
    ///
    /// - Throws: `PartialSendError`, with the number of accepted messages and the reason for stopping.
    @inlinable public nonisolated(nonsending) func send(
        contentsOf messages: some Sequence<Sent>
    ) async throws(PartialSendError) {
        var batch = makeBatch(expecting: messages.underestimatedCount)
        do {
            var next = 0
            while let count = try messages.withContiguousStorageIfAvailable({ messages in
                try batch.takeFrames(of: messages, from: &next)
                return messages.count
            }) {
                try await batch.send()
                if next >= count { return }
                outlet.writeEarly()
            }
            for message in messages.dropFirst(next) {
                // A message that does not fit fits once the messages before it were sent.
                while try !message.withDelimitedBytes(partial: false, { try batch.take($0) }) {
                    try await batch.send()
                    outlet.writeEarly()
                }
                if batch.isFull { try await batch.send() }
            }
            try await batch.send()
        } catch {
            throw await end(&batch, error)
        }
    }

    @usableFromInline func makeBatch(expecting count: Int) -> OutgoingBatch {
        OutgoingBatch(
            outlet: outlet,
            byteLimit: min(16 << 10, outboundWaterMarks.high / 4),
            expectedCount: count
        )
    }

    /// Sends the messages gathered before an error, unless the error means that nothing can be sent.
    @usableFromInline nonisolated(nonsending) func end(
        _ batch: inout OutgoingBatch,
        _ error: any Error
    ) async -> PartialSendError {
        if error is CancellationError || error is ConnectionError {
            return PartialSendError(acceptedCount: batch.acceptedCount, cause: error)
        }
        do {
            try await batch.send()
        } catch {
            return PartialSendError(acceptedCount: batch.acceptedCount, cause: error)
        }
        return PartialSendError(acceptedCount: batch.acceptedCount, cause: Self.refusal(error))
    }

    /// Ends this side after all messages that are accepted or wait to be accepted; returns when they are written. The
    /// peer's messages still arrive, except on a WebSocket, where the peer ends its side as soon as it learns that this
    /// side has ended.
    ///
    /// - Throws: `ConnectionError` when the connection fails first. `CancellationError` when the task is cancelled,
    ///   which does not undo the call.
    public func finishSending() async throws {
        try await transport.finishSending()
    }

    /// The error to throw when a message was not offered: the connection's failure, or `messageRefused` when the
    /// message cannot be encoded or is over the limit.
    @usableFromInline static func refusal(_ cause: any Error) -> any Error {
        if cause is ConnectionError { return cause }
        return ConnectionError(
            code: .messageRefused,
            message: "The \(Sent.self) was not sent; the connection goes on.",
            cause: cause
        )
    }
}

/// Reports how many messages `send(contentsOf:)` sent before it stopped.
public struct PartialSendError: Error, CustomStringConvertible {
    /// The number of messages, from the first on, that were accepted and will be written.
    public let acceptedCount: Int
    /// The reason why the next message was not accepted: a `ConnectionError` or a `CancellationError`.
    public let cause: any Error

    /// The number and the reason in words.
    public var description: String { "Sending stopped after \(acceptedCount) messages: \(cause)" }
}
