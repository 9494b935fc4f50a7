internal import LifelineCore
public import LifelineMessages

/// A server's frame of the framing with fixed headers: `url`, `status`, `serial` and the content's length as big-endian
/// numbers of 32 bits, and the content. See `FixedHeaderRequest`.
public struct FixedHeaderResponse: Sendable, Hashable {
    /// The subject of the request, or of a push.
    public var url: UInt32

    /// The status. The application defines the values.
    public var status: UInt32

    /// The serial of the answered request; the url if there is none.
    public var serial: UInt32

    /// The content. At most `ConnectionConfiguration.maximumFrameLength` bytes.
    public var content: [UInt8]

    /// Makes a response; `FixedHeaderRequest.response(status:content:)` makes the one to a request.
    public init(url: UInt32, status: UInt32 = 0, serial: UInt32, content: [UInt8] = []) {
        self.url = url
        self.status = status
        self.serial = serial
        self.content = content
    }

    /// Makes a push, which answers no request.
    ///
    /// - Parameter number: the subject, 2 to 0x400.
    /// - Throws: `FramingError` `invalidHead` for any other number.
    public static func push(_ number: UInt32, content: [UInt8] = []) throws(FramingError) -> FixedHeaderResponse {
        try FixedHeader.checkNotification(number)
        return FixedHeaderResponse(url: number, serial: number, content: content)
    }

    /// Whether Lifeline's clients treat the response as a push: its serial is its url.
    public var isPush: Bool { head.meaning == .push }

    var head: FixedHeader.Response { FixedHeader.Response(url: url, status: status, serial: serial) }
}

extension FixedHeaderResponse: DelimitedMessage {
    /// Reads the fields and the content.
    ///
    /// - Throws: `MessageError` when the fields are missing.
    public init(
        serializedBytes: UnsafeRawBufferPointer,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) throws(MessageError) {
        guard let (head, _, length) = FixedHeader.Response.carried(in: serializedBytes) else { throw .noHead }
        let content = [UInt8](serializedBytes.dropFirst(length))
        self.init(url: head.url, status: head.status, serial: head.serial, content: content)
    }

    /// Calls `body` with the length, the fields and the content.
    ///
    /// - Throws: `FramingError` when the numbers would have another meaning for a peer.
    public func withDelimitedBytes<Result>(
        partial: Bool = false,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        try head.checkSendable()
        return try CarriedFrame.bytes(head: head, content: content).withUnsafeBytes(body)
    }
}
