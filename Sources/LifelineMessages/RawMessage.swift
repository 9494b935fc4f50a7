internal import CLifelineMessages
internal import Glibc

/// An encoded message that is not decoded: for a gateway that forwards messages, or for types known only at run time.
///
/// Short messages that arrive together share memory, up to about 4 KiB. It is freed with the last of them. To keep one
/// of many, keep its `bytes`.
public struct RawMessage: DelimitedMessage, @unchecked Sendable {
    // @unchecked Sendable, because `payload` points into `block`, whose bytes do not change: another holder of the
    // array copies it before writing, as the block holds it too.

    /// The bytes, which other messages may share.
    @usableFromInline let block: Block
    @usableFromInline let payload: UnsafeRawBufferPointer

    /// Bytes that neither move nor change.
    @usableFromInline final class Block: Sendable {
        @usableFromInline let bytes: [UInt8]

        @inlinable init(_ bytes: [UInt8]) { self.bytes = bytes }

        /// The bytes, valid while the block lives. `withUnsafeBytes` guarantees less for a collection in general. But
        /// the memory of an array is a separate object. This block holds it, and it does not move while it is not
        /// changed.
        @inlinable var memory: UnsafeRawBufferPointer { bytes.withUnsafeBytes { $0 } }
    }

    @inlinable init(_ block: Block, _ payload: UnsafeRawBufferPointer) {
        (self.block, self.payload) = (block, payload)
    }

    /// Takes an encoded message, without a check.
    @inlinable public init(bytes: [UInt8]) {
        let block = Block(bytes)
        self.init(block, block.memory)
    }

    /// Encodes a message. Throws as `Message.serializedBytes(partial:)` does.
    public init(_ message: some Message, partial: Bool = false) throws(MessageError) {
        self.init(bytes: try message.serializedBytes(partial: partial))
    }

    public init(
        serializedBytes: UnsafeRawBufferPointer,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) throws(MessageError) {
        self.init(bytes: [UInt8](serializedBytes))
    }

    /// The encoded message, without a length prefix. It is a copy if memory is shared.
    public var bytes: [UInt8] {
        get { ownsBlock ? block.bytes : withUnsafeBytes { Array($0) } }
        set { self = RawMessage(bytes: newValue) }
        _modify {
            var bytes = self.bytes
            // The array then has one reference, so it is changed in place.
            self = .empty
            defer { self = RawMessage(bytes: bytes) }
            yield &bytes
        }
    }

    /// The size in bytes, without a length prefix.
    @inlinable public var byteCount: Int { payload.count }

    private static let empty = RawMessage(bytes: [])

    private var ownsBlock: Bool { byteCount == block.bytes.count }

    /// Calls `body` with the bytes, without a length prefix and without a copy. The memory is valid only during the
    /// call.
    @inlinable public func withUnsafeBytes<Result>(
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> Result {
        defer { extendLifetime(block) }
        return try body(payload)
    }

    public func encodedPayload(partial: Bool = false) -> [UInt8] { bytes }

    @inlinable public func withDelimitedBytes<Result>(
        partial: Bool = false,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        try withUnsafeBytes { try RawMessage.withFrame(of: $0, body) }
    }

    // Reads only the payload: the caller, which points to the message, keeps its block alive.
    @inlinable public static func withDelimitedBytes<Result>(
        of message: UnsafePointer<RawMessage>,
        partial: Bool,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        try withFrame(of: message.pointee.payload, body)
    }

    @inlinable static func withFrame<Result>(
        of payload: UnsafeRawBufferPointer,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> Result {
        // Ten bytes: the longest varint.
        try withUnsafeTemporaryAllocation(byteCount: 10 + payload.count, alignment: 1) { memory in
            let end = writeVarint(UInt64(payload.count), to: memory)
            UnsafeMutableRawBufferPointer(rebasing: memory[end...]).copyMemory(from: payload)
            return try body(UnsafeRawBufferPointer(rebasing: memory[..<(end + payload.count)]))
        }
    }
}

// Several at once.
extension RawMessage {
    /// The most memory that short messages share: 4 KiB.
    private static var blockByteCount: Int { 4 << 10 }
    /// The size from which a message has its own memory: 1 KiB. Allocating is then cheap, compared with copying.
    private static var longByteCount: Int { 1 << 10 }
    /// The most bytes between two messages of a read: a length prefix. They are copied too, whatever they are, but
    /// nothing reads them. So close to both messages, they are in a memory page of one of them.
    private static var longestPrefix: Int { 5 }

    public static func decode(
        _ payloads: UnsafeBufferPointer<UnsafeRawBufferPointer>,
        into messages: inout OutputSpan<RawMessage>,
        partial: Bool,
        options: DecodingOptions
    ) throws(MessageError) {
        var first = 0
        while first < payloads.count {
            guard let start = payloads[first].baseAddress, !payloads[first].isEmpty else {
                messages.append(.empty)
                first += 1
                continue
            }
            var (next, end) = (first + 1, start + payloads[first].count)
            if payloads[first].count < longByteCount {
                while next < payloads.count, let another = payloads[next].baseAddress, another >= end,
                    another - end <= longestPrefix, payloads[next].count < longByteCount,
                    another + payloads[next].count - start <= blockByteCount
                {
                    end = another + payloads[next].count
                    next += 1
                }
            }
            let bytes = UnsafeRawBufferPointer(start: start, count: end - start)
            append(UnsafeBufferPointer(rebasing: payloads[first..<next]), of: bytes, to: &messages)
            first = next
        }
    }

    /// Adds messages that share a block, a copy of these bytes, with prefixes. That is less work than a copy of each
    /// message.
    private static func append(
        _ payloads: UnsafeBufferPointer<UnsafeRawBufferPointer>,
        of bytes: UnsafeRawBufferPointer,
        to messages: inout OutputSpan<RawMessage>
    ) {
        let block = Block([UInt8](bytes))
        // Both have an address, because `decode` has found a message.
        let distance = block.memory.baseAddress.unsafelyUnwrapped - bytes.baseAddress.unsafelyUnwrapped
        // A reference for each, all at once: one by one, they took a fifth of the time for receiving 32 bytes.
        let reference = Unmanaged.passRetained(block)
        if payloads.count > 1 { lifeline_retain(reference.toOpaque(), UInt32(payloads.count - 1)) }
        for payload in payloads {
            let start = payload.baseAddress.unsafelyUnwrapped + distance
            let copy = UnsafeRawBufferPointer(start: start, count: payload.count)
            messages.append(RawMessage(reference.takeRetainedValue(), copy))
        }
    }
}

extension RawMessage: Hashable {
    public static func == (first: RawMessage, second: RawMessage) -> Bool {
        guard first.byteCount == second.byteCount else { return false }
        return first.withUnsafeBytes { bytes in
            second.withUnsafeBytes { others in
                guard let start = bytes.baseAddress, let otherStart = others.baseAddress else { return true }
                return start == otherStart || memcmp(start, otherStart, bytes.count) == 0
            }
        }
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(byteCount)
        withUnsafeBytes { hasher.combine(bytes: $0) }
    }
}
