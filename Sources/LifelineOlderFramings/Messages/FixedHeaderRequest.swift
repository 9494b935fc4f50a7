internal import LifelineCore
public import LifelineMessages

/// A frame of the framing with fixed headers as a client sends it: `url`, `serial` and the content's length as
/// big-endian numbers of 32 bits, and the content.
///
/// A connection, client or server that sends this type and receives `FixedHeaderResponse`, or the other way round,
/// speaks that framing to its peer, over every kind of endpoint. With any other type on the other side, it is refused
/// with `invalidConfiguration`. `FixedHeaderClient` numbers requests and finds their answers.
public struct FixedHeaderRequest: Sendable, Hashable {
    /// What is asked for; 1 is the heartbeat, and up to 0x400 are notifications.
    public var url: UInt32

    /// Which request this is: 0x401 to 0xFFFFFFFE, and not the url. The url, when it is a notification, which is not
    /// answered.
    public var serial: UInt32

    /// What goes with it. At most `ConnectionConfiguration.maximumFrameLength` bytes.
    public var content: [UInt8]

    /// Makes a request; with the url for a serial, a notification.
    public init(url: UInt32, serial: UInt32, content: [UInt8] = []) {
        self.url = url
        self.serial = serial
        self.content = content
    }

    /// Whether the client does not expect an answer.
    public var isNotification: Bool { head.meaning == .notification }

    /// The answer to this request.
    ///
    /// - Parameter status: how it went. What the values mean is the application's.
    public func response(status: UInt32 = 0, content: [UInt8] = []) -> FixedHeaderResponse {
        FixedHeaderResponse(url: url, status: status, serial: serial, content: content)
    }

    var head: FixedHeader.Request { FixedHeader.Request(url: url, serial: serial) }
}

extension FixedHeaderRequest: DelimitedMessage {
    /// Takes the fields and the content.
    ///
    /// - Throws: `MessageError` when there are none.
    public init(
        serializedBytes: UnsafeRawBufferPointer,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) throws(MessageError) {
        guard let (head, _, length) = FixedHeader.Request.carried(in: serializedBytes) else { throw .noHead }
        self.init(url: head.url, serial: head.serial, content: [UInt8](serializedBytes.dropFirst(length)))
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

extension MessageError {
    static var noHead: MessageError {
        MessageError(code: .truncated, message: "A frame of an older framing has no head.")
    }
}
