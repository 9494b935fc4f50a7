/// What a connection can carry: a type that is made from a frame's payload and written as a frame.
///
/// Every generated message is one, and so is `RawMessage`. A type of another protobuf library becomes one with a few
/// lines.
public protocol DelimitedMessage: Sendable {
    /// Decodes a payload, which is valid for the time of the call.
    init(serializedBytes: UnsafeRawBufferPointer, partial: Bool, options: DecodingOptions) throws(MessageError)

    /// Calls `body` with the encoded message behind its length as a varint. The memory is valid for the time of the
    /// call.
    func withDelimitedBytes<Result>(
        partial: Bool,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result

    /// The same for a message in memory, which stays there, unchanged, until the call returns: what it refers to need
    /// not be retained. There is an implementation for all types.
    static func withDelimitedBytes<Result>(
        of message: UnsafePointer<Self>,
        partial: Bool,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result

    /// The encoded message, without its length. There is an implementation for all types, which copies it from
    /// `withDelimitedBytes`.
    func encodedPayload(partial: Bool) throws -> [UInt8]

    /// Decodes payloads, which are valid for the time of the call, and adds a message for each to `messages`, in their
    /// order: one call for many messages, which is compiled for the very type. `messages` has room for all. There is an
    /// implementation for all types. (A class has to be final to have it.)
    ///
    /// - Throws: for the first that cannot be decoded; those before it were added.
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
