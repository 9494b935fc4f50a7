public import LifelineCore

/// How a reconnecting client behaves.
public struct ClientConfiguration: Sendable {
    /// How each connection behaves, and when a silent peer counts as dead.
    public var connection = ConnectionConfiguration()

    /// How it tries to connect again.
    public var backoff = BackoffConfiguration()

    /// How much may wait for a connection. Default: 65,536 messages and 8 MiB.
    public var sendQueue = SendQueueConfiguration()

    /// Whether it watches the network: pauses while there is none that leads to the endpoint, and connects at once when
    /// it is back. Default: true. Endpoints on this machine do not need a network, so that nothing is watched for them.
    /// With a proxy, it is the proxy that the network must lead to.
    public var watchesNetwork = true

    /// Makes a configuration with the default values.
    public init() {}
}
