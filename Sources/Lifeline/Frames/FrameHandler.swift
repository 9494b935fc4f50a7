public import LifelineCore

/// Takes the frames of one connection on its event loop, as borrowed bytes, and writes the replies straight into the
/// outgoing buffer: the cheapest way to answer. `Connection`, with messages and tasks, stands on the same path.
///
/// ```swift
/// final class Echo: FrameHandler {
///     func received(_ frames: FrameRun, _ replies: inout FrameWriter) throws {
///         for payload in frames { try replies.write(payload) }
///     }
/// }
///
/// try await withFrameServer(listeningOn: Endpoint("tcp://127.0.0.1:7000")) { _ in
///     Echo()
/// } _: { server in
///     try await server.waitUntilShutDown()
/// }
/// ```
///
/// One handler, a class or a value, is made for each connection when the connection stands. All calls of it come one at
/// a time on the connection's loop, which other connections share: it must not block or compute for long. What takes
/// longer goes to another thread, with copies of the bytes and the handler's `FrameConnection`, over which any thread
/// can send.
public protocol FrameHandler: ~Copyable, SendableMetatype {
    /// Frames have come: all that one read has completed, in order. (Where the first of them began in an earlier read,
    /// it comes in a call of its own.)
    ///
    /// Bytes written to `replies` go out together when the read was handled, behind all that was sent over
    /// `FrameConnection` until then. While more than `ConnectionConfiguration.outboundWaterMarks` of replies wait for
    /// the peer to read them, nothing is read: a peer that does not read is not answered without bound. So one call
    /// should write little more than its frames ask for.
    ///
    /// - Parameter frames: valid during the call only.
    /// - Throws: what ends the connection at once, with a reset over TCP, and reaches `ended(_:)`: a `ConnectionError`
    ///   as it is, a `MessageError` as the cause of a `protocolViolation`, anything else as the cause of a
    ///   `closedLocally`. But the `sendingFinished` of a writer when this side has ended may be thrown on: the frames'
    ///   input goes on to its end.
    mutating func received(_ frames: FrameRun, _ replies: inout FrameWriter) throws

    /// No more frames come. The last call.
    ///
    /// On a server the connection is closed right after it: what other threads send from then on is refused with
    /// `sendingFinished`. A handler that has others answer needs a peer that ends its side when it has its answers.
    ///
    /// - Parameter error: why the connection failed: a `protocolViolation` when the peer sent what is no frame, or one
    ///   over the limit, or ended inside one. Nil when the peer has ended its side, or this side closes the connection:
    ///   then what was accepted is still written.
    mutating func ended(_ error: ConnectionError?)
}

extension FrameHandler where Self: ~Copyable {
    /// Does nothing.
    public mutating func ended(_ error: ConnectionError?) {}
}
