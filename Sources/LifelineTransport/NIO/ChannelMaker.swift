package import LifelineCore
package import NIOCore

/// Makes the channels of a transport's connections.
package protocol ChannelMaker: Sendable {
    /// Connects a channel.
    ///
    /// - Parameters:
    ///   - group: has the channel's loop.
    ///   - initialize: called on the loop for each channel before it connects; an error ends the attempt.
    func connect(
        to address: Endpoint.Address,
        on group: any EventLoopGroup,
        keepalive: KeepaliveConfiguration?,
        timeout: Duration,
        initialize: @escaping @Sendable (any Channel) throws -> Void
    ) throws(ConnectionError) -> EventLoopFuture<any Channel>

    /// Makes a channel that listens.
    ///
    /// - Parameters:
    ///   - loop: the loop of the listening channel.
    ///   - group: has the loops of accepted channels.
    ///   - initializeListener: called on the loop, before anything is accepted.
    ///   - initializeConnection: called for each accepted channel, on its loop, before anything is read.
    func listen(
        on address: Endpoint.Address,
        loop: any EventLoop,
        group: any EventLoopGroup,
        backlog: Int32,
        keepalive: KeepaliveConfiguration?,
        initializeListener: @escaping @Sendable (any Channel) throws -> Void,
        initializeConnection: @escaping @Sendable (any Channel) throws -> Void
    ) async throws -> any Channel
}
