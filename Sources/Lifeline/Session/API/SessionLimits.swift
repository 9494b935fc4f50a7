/// How much one end of a session keeps and takes.
///
/// Sizes are those of memory: each message counts for 64 bytes beside its encoded content and metadata. So what a
/// session takes is at most one and a half times what these limits say.
///
/// Two limits are the protocol's, and the same for everybody: a message has 128 entries of metadata at most, which
/// take 64 KiB at most. A request with more is refused with `invalidArgument`; this side refuses to send any
/// (`messageRefused`).
public struct SessionLimits: Sendable, Hashable {
    /// Messages that are kept until the peer has processed them. Whoever pushes more waits. Values below 4 count as 4.
    /// Default: 65,536. Calls that have no room wait in line, and may be as many once more.
    public var maximumKeptMessageCount = 65_536
    /// Their size in bytes. Values below 4,096 count as 4,096. Default: 8 MiB.
    ///
    /// Calls that have no room wait in line, and may be as much once more: those above throw `tooManyInFlight`.
    /// Responses that have no room may be half as much: those above end their requests with `resourceExhausted` in
    /// their place.
    public var maximumKeptByteCount = 8 << 20
    /// Messages that the peer may send and that are not processed yet. Values below 4 count as 4. Default: 65,536.
    public var maximumUnprocessedMessageCount = 65_536
    /// Their size in bytes. Values below 4,096 count as 4,096. Default: 8 MiB. A larger message is not taken: the
    /// peer's call or push throws `messageRefused`.
    public var maximumUnprocessedByteCount = 8 << 20
    /// The size in bytes of messages of one stream, or of one pushed method, that the peer may send and that nobody has
    /// taken yet: more waits at the peer, and holds up nothing else. A message of any size comes where all before it
    /// were taken. Values below 64 KiB count as 64 KiB. Default: 256 KiB.
    public var maximumUnreadByteCount = 256 << 10
    /// Requests of this side's that may wait for their responses. Values below 1 count as 1. Default: 1,024.
    public var maximumRequestCount = 1024
    /// Requests of the peer's that may be handled at once; those above are refused with `resourceExhausted`. Values
    /// below 1 count as 1. Default: 1,024.
    public var maximumHandlerCount = 1024

    /// Makes limits with the default values.
    public init() {}
}
