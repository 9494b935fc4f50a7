/// The limits of what one end of a session keeps and accepts.
///
/// Sizes measure memory: each message counts for 64 bytes besides its encoded content and metadata. A session takes at
/// most one and a half times these limits.
///
/// Two limits are part of the protocol and fixed: a message has at most 128 entries of metadata, which take at most 64
/// KiB. A request with more is refused with `invalidArgument`; this side refuses to send one (`messageRefused`).
public struct SessionLimits: Sendable, Hashable {
    /// The most messages that are kept until the peer has processed them. Further pushes wait. Values below 4 count as
    /// 4. Default: 65,536. Calls without room wait in line; as many again may wait.
    public var maximumKeptMessageCount = 65_536
    /// The most bytes of kept messages. Values below 4,096 count as 4,096. Default: 8 MiB.
    ///
    /// Calls without room wait in line. As many bytes again may wait; further calls throw `tooManyInFlight`. Responses
    /// without room may take half as many bytes; a further response is replaced by `resourceExhausted`.
    public var maximumKeptByteCount = 8 << 20
    /// The most unprocessed messages of the peer. Values below 4 count as 4. Default: 65,536.
    public var maximumUnprocessedMessageCount = 65_536
    /// The most bytes of unprocessed messages. Values below 4,096 count as 4,096. Default: 8 MiB. A larger message is
    /// refused: the peer's call or push throws `messageRefused`.
    public var maximumUnprocessedByteCount = 8 << 20
    /// The most bytes of messages of one stream, or of one pushed method, that wait to be taken. Further messages wait
    /// at the peer, and hold up nothing else. A message of any size comes through once all before it were taken. Values
    /// below 64 KiB count as 64 KiB. Default: 256 KiB.
    public var maximumUnreadByteCount = 256 << 10
    /// The most requests of this side that may wait for their responses. Values below 1 count as 1. Default: 1,024.
    public var maximumRequestCount = 1024
    /// The most requests of the peer that are handled at once; further ones are refused with `resourceExhausted`.
    /// Values below 1 count as 1. Default: 1,024.
    public var maximumHandlerCount = 1024

    /// Makes limits with the default values.
    public init() {}
}
