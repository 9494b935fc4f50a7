internal import LifelineCore
public import LifelineMessages

/// A client's frame of the framing with fixed headers: `url`, `serial` and the content's length as big-endian numbers
/// of 32 bits, and the content.
///
/// A connection, client or server that sends this type and receives `FixedHeaderResponse`, or the other way round, uses
/// that framing with its peer, over every kind of endpoint. With any other type for the other direction, it is refused
/// with `invalidConfiguration`. `FixedHeaderClient` numbers requests and finds their answers.
public struct FixedHeaderRequest: Sendable, Hashable {
    /// The subject of the request; 1 is the heartbeat, and numbers up to 0x400 are notifications.
    public var url: UInt32

    /// The serial of the request: 0x401 to 0xFFFFFFFE, and not the url. For a notification, which is not answered, it
    /// is the url.
    public var serial: UInt32

    /// The content. At most `ConnectionConfiguration.maximumFrameLength` bytes.
    public var content: [UInt8]

    /// Makes a request, or a notification if the serial is the url.
    public init(url: UInt32, serial: UInt32, content: [UInt8] = []) {
        self.url = url
        self.serial = serial
        self.content = content
    }

    /// Whether the client does not expect an answer.
    public var isNotification: Bool { head.meaning == .notification }

    /// Makes the answer to this request.
    ///
    /// - Parameter status: the status. The application defines the values.
    public func response(status: UInt32 = 0, content: [UInt8] = []) -> FixedHeaderResponse {
        FixedHeaderResponse(url: url, status: status, serial: serial, content: content)
    }

    var head: FixedHeader.Request { FixedHeader.Request(url: url, serial: serial) }
}

extension FixedHeaderRequest: DelimitedMessage {
    /// Reads the fields and the content.
    ///
    /// - Throws: `MessageError` when the fields are missing.
    public init(
        serializedBytes: UnsafeRawBufferPointer,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) throws(MessageError) {
        guard let (head, _, length) = FixedHeader.Request.carried(in: serializedBytes) else { throw .noHead }
        self.init(url: head.url, serial: head.serial, content: [UInt8](serializedBytes.dropFirst(length)))
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

extension MessageError {
    static var noHead: MessageError {
        MessageError(code: .truncated, message: "A frame of an older framing has no head.")
    }
}
