internal import LifelineCore
public import LifelineMessages

/// A frame of the framing with fixed headers as a server sends it, whatever it has to say: `url`, `status`, `serial`
/// and the content's length as big-endian numbers of 32 bits, and the content. See `FixedHeaderRequest`.
public struct FixedHeaderResponse: Sendable, Hashable {
    /// What was asked for, or what is told.
    public var url: UInt32

    /// How it went. What the values mean is the application's.
    public var status: UInt32

    /// Which request this answers; the url, when it answers none.
    public var serial: UInt32

    /// What goes with it. At most `ConnectionConfiguration.maximumFrameLength` bytes.
    public var content: [UInt8]

    /// Makes a response; `FixedHeaderRequest.response(status:content:)` makes the one to a request.
    public init(url: UInt32, status: UInt32 = 0, serial: UInt32, content: [UInt8] = []) {
        self.url = url
        self.status = status
        self.serial = serial
        self.content = content
    }

    /// Something that nobody asked for.
    ///
    /// - Parameter number: what it is about, 2 to 0x400.
    /// - Throws: `FramingError` `invalidHead` for any other number.
    public static func push(_ number: UInt32, content: [UInt8] = []) throws(FramingError) -> FixedHeaderResponse {
        try FixedHeader.checkNotification(number)
        return FixedHeaderResponse(url: number, serial: number, content: content)
    }

    /// Whether nobody asked for it, as our clients see it: its serial is its url.
    public var isPush: Bool { head.meaning == .push }

    var head: FixedHeader.Response { FixedHeader.Response(url: url, status: status, serial: serial) }
}

extension FixedHeaderResponse: DelimitedMessage {
    /// Takes the fields and the content.
    ///
    /// - Throws: `MessageError` when there are none.
    public init(
        serializedBytes: UnsafeRawBufferPointer,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) throws(MessageError) {
        guard let (head, _, length) = FixedHeader.Response.carried(in: serializedBytes) else { throw .noHead }
        let content = [UInt8](serializedBytes.dropFirst(length))
        self.init(url: head.url, status: head.status, serial: head.serial, content: content)
    }

    /// Calls `body` with the fields and the content behind their length.
    ///
    /// - Throws: `FramingError` when the numbers say something else than what is meant to a peer.
    public func withDelimitedBytes<Result>(
        partial: Bool = false,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        try head.checkSendable()
        return try CarriedFrame.bytes(head: head, content: content).withUnsafeBytes(body)
    }
}
