/// A type that a connection can carry: it is made from a frame's payload and written as a frame.
///
/// All generated messages conform to it, and so does `RawMessage`. A type of another protobuf library needs only a few
/// lines for that.
public protocol DelimitedMessage: Sendable {
    /// Decodes a payload, which is valid only during the call.
    init(serializedBytes: UnsafeRawBufferPointer, partial: Bool, options: DecodingOptions) throws(MessageError)

    /// Calls `body` with the encoded message after its length as a varint. The memory is valid only during the call.
    func withDelimitedBytes<Result>(
        partial: Bool,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result

    /// The same for a message in memory, which stays there, unchanged, until the call returns: objects that it refers
    /// to need not be retained. All types have an implementation.
    static func withDelimitedBytes<Result>(
        of message: UnsafePointer<Self>,
        partial: Bool,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result

    /// The encoded message, without its length. All types have an implementation, which copies the message from
    /// `withDelimitedBytes`.
    func encodedPayload(partial: Bool) throws -> [UInt8]

    /// Decodes payloads, which are valid only during the call, and adds a message for each to `messages`, in their
    /// order. This is one call for many messages, compiled for the specific type. `messages` has room for all. All
    /// types have an implementation. (A class has to be final to have it.)
    ///
    /// - Throws: for the first payload that cannot be decoded. The messages before it were added.
    static func decode(
        _ payloads: UnsafeBufferPointer<UnsafeRawBufferPointer>,
        into messages: inout OutputSpan<Self>,
        partial: Bool,
        options: DecodingOptions
    ) throws(MessageError)
}

extension DelimitedMessage {
    @inlinable public static func withDelimitedBytes<Result>(
        of message: UnsafePointer<Self>,
        partial: Bool,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        try message.pointee.withDelimitedBytes(partial: partial, body)
    }

    /// The encoded message, without its length.
    public func encodedPayload(partial: Bool) throws -> [UInt8] {
        try withDelimitedBytes(partial: partial) { frame in
            let prefixLength = frame.firstIndex { $0 < 0x80 }.map { $0 + 1 } ?? 0
            return [UInt8](UnsafeRawBufferPointer(rebasing: frame[prefixLength...]))
        }
    }

    @inlinable public static func decode(
        _ payloads: UnsafeBufferPointer<UnsafeRawBufferPointer>,
        into messages: inout OutputSpan<Self>,
        partial: Bool,
        options: DecodingOptions
    ) throws(MessageError) {
        // Each type has this: a range would be more to compile.
        var index = 0
        while index < payloads.count {
            messages.append(try Self(serializedBytes: payloads[index], partial: partial, options: options))
            index &+= 1
        }
    }

    /// Decodes payloads, and adds a message for each to an array: see the requirement of this name.
    package static func decode(
        _ payloads: UnsafeBufferPointer<UnsafeRawBufferPointer>,
        into messages: inout [Self],
        partial: Bool,
        options: DecodingOptions
    ) throws(MessageError) {
        try messages.append(addingCapacity: payloads.count) { (added) throws(MessageError) in
            try decode(payloads, into: &added, partial: partial, options: options)
        }
    }
}
