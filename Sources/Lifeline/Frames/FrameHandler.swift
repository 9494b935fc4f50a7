public import LifelineCore

/// Takes the frames of one connection on its event loop, as borrowed bytes, and writes the replies straight into the
/// outgoing buffer: the cheapest way to answer. `Connection`, with messages and tasks, uses the same path.
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
/// Each open connection gets its own handler, a class or a value. Its methods are called one at a time on the
/// connection's loop. Other connections share the loop, so a handler must not block or compute for long. Longer work
/// belongs on another thread, with copies of the bytes and the handler's `FrameConnection`, which any thread can send
/// over.
public protocol FrameHandler: ~Copyable, SendableMetatype {
    /// Receives the frames that one read has completed, in order. (If the first of them began in an earlier read, it
    /// comes in its own call.)
    ///
    /// Bytes written to `replies` go out together after the read was handled, behind everything sent over
    /// `FrameConnection` until then. While more replies than `ConnectionConfiguration.outboundWaterMarks` wait for the
    /// peer, nothing is read, so that replies to a peer that does not read stay bounded. One call should write little
    /// more than its frames ask for.
    ///
    /// - Parameter frames: valid during the call only.
    /// - Throws: an error ends the connection at once, with a reset over TCP, and reaches `ended(_:)`: a
    ///   `ConnectionError` as it is, a `MessageError` as the cause of a `protocolViolation`, any other as the cause of
    ///   a `closedLocally`. The exception is a writer's `sendingFinished` after this side has ended: frames then still
    ///   arrive until the input ends.
    mutating func received(_ frames: FrameRun, _ replies: inout FrameWriter) throws

    /// Notes that no more frames come. This is the last call.
    ///
    /// A server closes the connection right afterwards and refuses later sends of other threads with `sendingFinished`.
    /// If other threads answer for the handler, the peer has to keep its side open until it has the answers.
    ///
    /// - Parameter error: the reason for a failed connection: a `protocolViolation` when the peer sent a malformed
    ///   frame or one over the limit, or ended inside a frame. Nil when the peer has ended its side, or this side
    ///   closes the connection: then accepted frames are still written.
    mutating func ended(_ error: ConnectionError?)
}

extension FrameHandler where Self: ~Copyable {
    /// Does nothing.
    public mutating func ended(_ error: ConnectionError?) {}
}
