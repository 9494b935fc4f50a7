package import LifelineCore
package import NIOCore

/// Makes the channels that a transport's connections stand on.
package protocol ChannelMaker: Sendable {
    /// Connects a channel.
    ///
    /// - Parameters:
    ///   - group: has the channel's loop.
    ///   - initialize: called on the loop for each channel that is made for it, before that connects; what it throws
    ///     ends the attempt.
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
    ///   - loop: that of the listening channel.
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
