public import LifelineCore
public import LifelineMessages
internal import LifelineTransport

/// A connection on which messages of one type arrive and messages of another (or the same) type are sent.
///
/// It is valid inside the closure of `withConnection` or of a server's handler. It may be used from several tasks: all
/// may send, one at a time may iterate.
public struct Connection<Received: DelimitedMessage, Sent: DelimitedMessage>: Sendable {
    /// This side's end.
    public var localEndpoint: Endpoint { transport.localEndpoint }

    /// The peer's end; on a server's Unix socket, whose clients have no name, the socket itself.
    public var remoteEndpoint: Endpoint { transport.remoteEndpoint }

    /// The application protocol that the two sides have agreed on over TLS (ALPN); nil when there is none.
    public var applicationProtocol: String? { transport.applicationProtocol }

    /// What was agreed on when the WebSocket was opened; nil on a connection that is none.
    public var webSocket: WebSocketOpening? { transport.webSocket }

    /// The messages that arrive.
    public let messages: MessageSequence<Received>

    let transport: any TransportConnection
    private let encoder: FrameEncoder

    init(_ opened: OpenedConnection<BatchQueue<Received>>, configuration: ConnectionConfiguration) {
        self.messages = MessageSequence(inbox: opened.inbox, connection: opened.connection)
        self.transport = opened.connection
        self.encoder = configuration.encoder(for: Sent.self)
    }

    /// Sends a message: returns when it is accepted, which means that it is written before a graceful close.
    ///
    /// It waits while the bytes that the peer has not made room for are over the high-water mark; messages are accepted
    /// in the order of the calls. Messages that are sent in quick succession go out together.
    ///
    /// - Throws: `ConnectionError` `messageRefused` when it cannot be encoded or is over the limit, `sendingFinished`
    ///   after `finishSending()`, or why the connection has failed. `CancellationError` when the task is cancelled; the
    ///   message was not accepted then.
    public nonisolated(nonsending) func send(_ message: Sent) async throws {
        try Task.checkCancellation()
        if let pending = try offer(message) { try await transport.wait(for: pending) }
    }

    /// Sends messages in order, like `send(_:)` one after the other.
    ///
    /// - Throws: `PartialSendError`, which says how many were accepted and why no more were.
    public nonisolated(nonsending) func send(
        contentsOf messages: some Sequence<Sent>
    ) async throws(PartialSendError) {
        var count = 0
        do {
            for message in messages {
                try await send(message)
                count += 1
            }
        } catch {
            throw PartialSendError(acceptedCount: count, cause: error)
        }
    }

    /// Ends this side after everything accepted so far, and what waits to be accepted; returns when that is written.
    /// The peer's messages still arrive, but on a WebSocket: there the peer ends its side as soon as it reads of ours.
    ///
    /// - Throws: `ConnectionError` when the connection fails first. `CancellationError` when the task is cancelled, which
    ///   does not undo the call.
    public func finishSending() async throws {
        try await transport.finishSending()
    }

    private func offer(_ message: Sent) throws -> PendingSend? {
        do {
            return try message.withDelimitedBytes(partial: false) { frame in
                try encoder.checkFrame(frame)
                return try transport.offer(frame)
            }
        } catch let error as ConnectionError {
            throw error
        } catch {
            throw ConnectionError(
                code: .messageRefused,
                message: "The \(Sent.self) was not sent; the connection goes on.",
                cause: error
            )
        }
    }
}

/// How far `send(contentsOf:)` came.
public struct PartialSendError: Error, CustomStringConvertible {
    /// So many messages, from the first on, were accepted and will be written.
    public let acceptedCount: Int
    /// Why the next one was not: a `ConnectionError` or a `CancellationError`.
    public let cause: any Error

    /// Both in words.
    public var description: String { "Sending stopped after \(acceptedCount) messages: \(cause)" }
}
