internal import LifelineCore
public import LifelineMessages

/// A frame of the framing with head lines: a JSON object with `type` and `size`, CRLF, and `size` bytes of content.
///
/// A connection, client or server that sends and receives this type uses that framing with its peer, over every kind of
/// endpoint. With any other type for the other direction, it is refused with `invalidConfiguration`. `HeadLineClient`
/// finds the answers to requests.
public struct HeadLineMessage: Sendable, Hashable {
    /// The type of the content, which the application defines. It must fit into a head line of 4 KiB.
    public var type: String

    /// The content. At most `ConnectionConfiguration.maximumFrameLength` bytes.
    public var content: [UInt8]

    /// The number of the request that this makes, for the framing's layer. 0 for none. It is not on the wire.
    private var tag: UInt32 = 0

    /// Makes a message.
    public init(type: String, content: [UInt8] = []) {
        self.type = type
        self.content = content
    }

    init(type: String, content: [UInt8], tag: UInt32) {
        self.init(type: type, content: content)
        self.tag = tag
    }

    /// Whether both have the same type and the same content.
    public static func == (first: HeadLineMessage, second: HeadLineMessage) -> Bool {
        first.type == second.type && first.content == second.content
    }

    /// Hashes the type and the content.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(type)
        hasher.combine(content)
    }
}

extension HeadLineMessage: DelimitedMessage {
    /// Reads the type and the content.
    ///
    /// - Throws: `MessageError` when they are missing.
    public init(
        serializedBytes: UnsafeRawBufferPointer,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) throws(MessageError) {
        guard let (head, _, length) = HeadLine.carried(in: serializedBytes) else { throw .noHead }
        self.init(type: head.type, content: [UInt8](serializedBytes.dropFirst(length)))
    }

    /// Calls `body` with the length, the type and the content.
    ///
    /// - Throws: `FramingError` when the type does not fit into a head line.
    public func withDelimitedBytes<Result>(
        partial: Bool = false,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        let head = HeadLine(type: type)
        // The content's limit is in the configuration, and checked by the sender.
        let framing = HeadLineFraming(maximumContentLength: CarriedFrame.maximumContentLength)
        _ = try framing.headLength(of: head, contentLength: content.count)
        return try CarriedFrame.bytes(head: head, tag: tag, content: content).withUnsafeBytes(body)
    }
}
