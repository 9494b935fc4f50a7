internal import LifelineCore
public import LifelineMessages

/// A frame of the framing with head lines: a JSON object with `type` and `size`, CRLF, and `size` bytes of content.
///
/// A connection, client or server that sends and receives this type speaks that framing to its peer, over every kind of
/// endpoint. With any other type on the other side, it is refused with `invalidConfiguration`. `HeadLineClient` finds the
/// answers to requests.
public struct HeadLineMessage: Sendable, Hashable {
    /// What the content is: the application's to say. It must fit into a head line of 4 KiB.
    public var type: String

    /// What goes with it. At most `ConnectionConfiguration.maximumFrameLength` bytes.
    public var content: [UInt8]

    /// Makes a message.
    public init(type: String, content: [UInt8] = []) {
        self.type = type
        self.content = content
    }
}

extension HeadLineMessage: DelimitedMessage {
    /// Takes the type and the content.
    ///
    /// - Throws: `MessageError` when there are none.
    public init(
        serializedBytes: UnsafeRawBufferPointer,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) throws(MessageError) {
        guard let (head, _, length) = HeadLine.carried(in: serializedBytes) else { throw .noHead }
        self.init(type: head.type, content: [UInt8](serializedBytes.dropFirst(length)))
    }

    /// Calls `body` with the type and the content behind their length.
    ///
    /// - Throws: `FramingError` when the type does not fit into a head line.
    public func withDelimitedBytes<Result>(
        partial: Bool = false,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        try delimitedBytes(tag: 0).withUnsafeBytes(body)
    }

    fileprivate func delimitedBytes(tag: UInt32) throws(FramingError) -> [UInt8] {
        let head = HeadLine(type: type)
        // The content's limit is the configuration's, and checked by whoever sends this.
        let framing = HeadLineFraming(maximumContentLength: CarriedFrame.maximumContentLength)
        _ = try framing.headLength(of: head, contentLength: content.count)
        return try CarriedFrame.bytes(head: head, tag: tag, content: content)
    }
}

/// What a `HeadLineClient` sends: a message, and the number of the request that it makes, which is told when it is written
/// and is not on the wire.
struct HeadLineRequest: DelimitedMessage {
    let message: HeadLineMessage
    /// 0: it is no request.
    let tag: UInt32

    init(_ message: HeadLineMessage, tag: UInt32) {
        self.message = message
        self.tag = tag
    }

    init(
        serializedBytes: UnsafeRawBufferPointer,
        partial: Bool,
        options: DecodingOptions
    ) throws(MessageError) {
        self.init(try HeadLineMessage(serializedBytes: serializedBytes, partial: partial, options: options), tag: 0)
    }

    func withDelimitedBytes<Result>(
        partial: Bool,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        try message.delimitedBytes(tag: tag).withUnsafeBytes(body)
    }
}
