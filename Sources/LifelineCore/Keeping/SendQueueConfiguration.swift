/// How much may wait for a connection. A send that would go over fails at once with `sendQueueFull`.
///
/// Values below 0 count as 0.
public struct SendQueueConfiguration: Sendable, Hashable {
    /// The most messages that may wait. Default: 65,536, which bounds what is kept for each message beside its bytes.
    public var maximumMessageCount = 65_536

    /// The most bytes that may wait, in messages as they are on the wire. Default: 8 MiB, two messages of the largest
    /// default size.
    public var maximumByteCount = 8 << 20

    /// Makes a configuration with the default values.
    public init() {}
}
