public import LifelineCore

/// How a reconnecting client behaves.
public struct ClientConfiguration: Sendable {
    /// The behaviour of each connection, and when a silent peer counts as dead.
    public var connection = ConnectionConfiguration()

    /// How it tries to connect again.
    public var backoff = BackoffConfiguration()

    /// How much may wait for a connection. Default: 65,536 messages and 8 MiB.
    public var sendQueue = SendQueueConfiguration()

    /// Whether the client watches the network: it pauses while no network leads to the endpoint, and connects at once
    /// when one is back. Default: true. Endpoints on this machine need no network, so nothing is watched for them. With
    /// a proxy, the network must lead to the proxy.
    public var watchesNetwork = true

    /// Makes a configuration with the default values.
    public init() {}
}
