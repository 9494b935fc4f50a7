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

    /// Decodes payloads, which are valid for the time of the call, and adds a message for each to an array, in their order:
    /// one call for many messages, which is compiled for the very type. There is an implementation for all types. (A class
    /// has to be final to have it.)
    ///
    /// - Throws: for the first that cannot be decoded; those before it were added.
    static func decode(
        _ payloads: UnsafeBufferPointer<UnsafeRawBufferPointer>,
        into messages: inout [Self],
        partial: Bool,
        options: DecodingOptions
    ) throws(MessageError)
}

extension DelimitedMessage {
    @inlinable public static func decode(
        _ payloads: UnsafeBufferPointer<UnsafeRawBufferPointer>,
        into messages: inout [Self],
        partial: Bool,
        options: DecodingOptions
    ) throws(MessageError) {
        for payload in payloads {
            messages.append(try Self(serializedBytes: payload, partial: partial, options: options))
        }
    }
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

    @inlinable public func withDelimitedBytes<Result>(
        partial: Bool = false,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        try bytes.withUnsafeBytes { bytes in
            // Ten bytes: the longest varint.
            try withUnsafeTemporaryAllocation(byteCount: 10 + bytes.count, alignment: 1) { memory in
                var (end, rest) = (0, bytes.count)
                while rest >= 0x80 {
                    memory[end] = UInt8(truncatingIfNeeded: rest) | 0x80
                    end += 1
                    rest >>= 7
                }
                memory[end] = UInt8(rest)
                end += 1
                UnsafeMutableRawBufferPointer(rebasing: memory[end...]).copyMemory(from: bytes)
                return try body(UnsafeRawBufferPointer(rebasing: memory[..<(end + bytes.count)]))
            }
        }
    }
}
