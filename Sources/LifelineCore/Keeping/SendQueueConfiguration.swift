/// The limits for messages that wait for a connection. A send above them fails at once with `sendQueueFull`.
///
/// Values below 0 count as 0.
public struct SendQueueConfiguration: Sendable, Hashable {
    /// The most messages that may wait. Default: 65,536, which bounds the memory for each message besides its bytes.
    public var maximumMessageCount = 65_536

    /// The most bytes that may wait, as messages have them on the wire. Default: 8 MiB, two messages of the default
    /// maximum size.
    public var maximumByteCount = 8 << 20

    /// Makes a configuration with the default values.
    public init() {}
}
