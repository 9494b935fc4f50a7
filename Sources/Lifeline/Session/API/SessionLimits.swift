/// How much one end of a session keeps and takes.
///
/// Sizes are those of memory: each message counts for 768 bytes beside its content, and each entry of its metadata for
/// 64. So what a session takes is at most one and a half times what these limits say.
///
/// Two limits are the protocol's, and the same for everybody: a message has 128 entries of metadata at most, which
/// count for 64 KiB at most. A request with more is refused with `invalidArgument`; this side refuses to send any
/// (`messageRefused`).
public struct SessionLimits: Sendable, Hashable {
    /// Messages that are kept until the peer has processed them. Whoever pushes more waits. Values below 4 count as 4.
    /// Default: 65,536. Calls that have no room wait in line, and may be as many once more.
    public var maximumKeptMessageCount = 65_536
    /// Their size in bytes. Values below 4,096 count as 4,096. Default: 8 MiB.
    ///
    /// Calls that have no room wait in line, and may be as much once more: those above throw `tooManyInFlight`. Responses that
    /// have no room may be half as much: those above end their requests with `resourceExhausted` in their place.
    public var maximumKeptByteCount = 8 << 20
    /// Messages that the peer may send and that are not processed yet. Values below 4 count as 4. Default: 65,536.
    public var maximumUnprocessedMessageCount = 65_536
    /// Their size in bytes. Values below 4,096 count as 4,096. Default: 8 MiB. A larger message is not taken: the
    /// peer's call or push throws `messageRefused`.
    public var maximumUnprocessedByteCount = 8 << 20
    /// Requests of this side's that may wait for their responses. Values below 1 count as 1. Default: 1,024.
    public var maximumRequestCount = 1024
    /// Requests of the peer's that may be handled at once; those above are refused with `resourceExhausted`. Values below 1
    /// count as 1. Default: 1,024.
    public var maximumHandlerCount = 1024

    /// Makes limits with the default values.
    public init() {}

    /// For the name and the metadata, which are kept as long as the session: 16 KiB, as most HTTP servers take in fields.
    static let maximumHelloLength = 16 << 10
}
