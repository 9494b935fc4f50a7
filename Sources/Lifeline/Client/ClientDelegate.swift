public import LifelineCore
public import LifelineMessages

/// Callbacks in place of sequences, for code that comes from delegate-style socket libraries. `Client.run(delegate:)`
/// makes the calls: in order, and never two at once.
///
/// | CocoaAsyncSocket | here |
/// |---|---|
/// | `socket(_:didConnectToHost:port:)` | `didConnect()` |
/// | `socketDidDisconnect(_:withError:)` | `didDisconnect(_:)`, with the side that ended the connection, and the reason
/// |
/// | `socket(_:didRead:withTag:)` | `didReceive(_:)`, a whole message |
/// | a timer of one's own for heartbeats | `willSendHeartbeat(number:)`, to know of it |
/// | a counter of one's own for retries | `didGiveUp(_:)`; `Client.reconnect()` starts again |
/// | `write(_:withTimeout:tag:)` | `Client.send(_:policy:)` |
/// | `disconnectAfterWriting()` | `Client.close()` |
/// | `delegateQueue` | an actor as the delegate |
///
/// A slow method delays the calls after it and, through back-pressure, the peer. It does not delay the connection or
/// its heartbeat. All methods do nothing by default.
public protocol ClientDelegate<Received>: Sendable {
    /// The type of received messages.
    associatedtype Received: DelimitedMessage

    /// A connection is open.
    func didConnect() async

    /// The connection has ended. The client decides whether it makes another one: it makes none after `close()`, and
    /// `didGiveUp(_:)` follows when all attempts are used up.
    func didDisconnect(_ disconnection: ClientDisconnection) async

    /// No attempt is due any more, until the network changes or `Client.reconnect()` is called.
    func didGiveUp(_ reason: TransitionReason) async

    /// A message has arrived. The call comes after `didConnect()` of its connection, and before `didDisconnect(_:)`.
    func didReceive(_ message: Received) async

    /// The client is about to ask the peer for a sign of life, with the ping of this number. While the delegate is
    /// busy, only the newest ping is kept. A WebSocket's own pings are not reported.
    func willSendHeartbeat(number: UInt64) async
}

extension ClientDelegate {
    public func didConnect() async {}
    public func didDisconnect(_ disconnection: ClientDisconnection) async {}
    public func didGiveUp(_ reason: TransitionReason) async {}
    public func didReceive(_ message: Received) async {}
    public func willSendHeartbeat(number: UInt64) async {}
}

/// How a connection ended.
public struct ClientDisconnection: Sendable {
    /// The side that ended a connection.
    public enum Initiator: Sendable, Hashable {
        /// This side, by `close()`, `reconnect()` or cancellation.
        case user
        /// The peer, in order or by a reset.
        case peer
        /// Neither: the network went away, the peer fell silent or broke the protocol, or the system failed.
        case failure
    }

    /// The side that ended the connection.
    public let initiator: Initiator
    /// The reason for the end.
    public let reason: TransitionReason
    /// How many messages that `send` had accepted did not reach the peer's system; nil where that cannot be known.
    public let undeliveredMessageCount: Int?

    init(_ event: ClientEvent) {
        reason = event.transition.reason
        undeliveredMessageCount = event.undeliveredMessageCount
        initiator =
            switch reason.code {
            case _ where event.transition.from == .draining: .user
            case .closedByUser, .reconnectRequested, .cancelled, .drained: .user
            case .closedByPeer: .peer
            case .attemptsUsedUp where reason.error?.code == .closedByPeer: .peer
            default: .failure
            }
    }
}

extension Client {
    /// Runs like `run()`, and calls a delegate meanwhile. Returns after the delegate's last call. Do not iterate
    /// `messages` at the same time: each message goes either to the delegate or to the loop.
    ///
    /// - Throws: as `run()` does.
    public func run(delegate: some ClientDelegate<Received>) async throws {
        try start()
        try await withThrowingTaskGroup { group in
            group.addTask { try await self.runToEnd() }
            group.addTask {
                var delivery = DelegateDelivery(delegate, events: self.events, inbox: self.inbox)
                await delivery.run()
            }
            try await group.waitForAll()
        }
    }
}
