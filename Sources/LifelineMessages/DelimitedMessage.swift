/// What a connection can carry: a type that is made from a frame's payload and written as a frame.
///
/// Every generated message is one, and so is `RawMessage`. A type of another protobuf library becomes one with a few lines.
public protocol DelimitedMessage: Sendable {
    /// Decodes a payload, which is valid for the time of the call.
    init(serializedBytes: UnsafeRawBufferPointer, partial: Bool, options: DecodingOptions) throws(MessageError)

    /// Calls `body` with the encoded message behind its length as a varint. The memory is valid for the time of the
    /// call.
    func withDelimitedBytes<Result>(
        partial: Bool,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result
}

/// An encoded message that stays as it is: for a gateway that passes messages on, or for types known only at run time.
public struct RawMessage: DelimitedMessage, Hashable {
    /// The encoded message, without a length prefix.
    public var bytes: [UInt8]

    /// Takes an encoded message. Nothing is checked.
    public init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Encodes a message. Throws as `Message.serializedBytes(partial:)` does.
    public init(_ message: some Message, partial: Bool = false) throws(MessageError) {
        bytes = try message.serializedBytes(partial: partial)
    }

    public init(
        serializedBytes: UnsafeRawBufferPointer,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) throws(MessageError) {
        bytes = [UInt8](serializedBytes)
    }

    public func withDelimitedBytes<Result>(
        partial: Bool = false,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        var delimited: [UInt8] = []
        delimited.reserveCapacity(bytes.count + 5)
        delimited.appendVarint(UInt64(bytes.count))
        delimited += bytes
        return try delimited.withUnsafeBytes(body)
    }
}
