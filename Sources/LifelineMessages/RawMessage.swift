/// An encoded message that stays as it is: for a gateway that passes messages on, or for types known only at run time.
///
/// Short ones that arrive together share memory, some 4 KiB at most, which lasts as long as one of them does. To keep one of
/// many, keep its `bytes`.
public struct RawMessage: DelimitedMessage, Sendable {
    /// What it may share with others.
    @usableFromInline var block: [UInt8]
    @usableFromInline var start: Int
    @usableFromInline var end: Int

    /// Takes an encoded message. Nothing is checked.
    @inlinable public init(bytes: [UInt8]) {
        (block, start, end) = (bytes, 0, bytes.count)
    }

    @inlinable init(_ block: [UInt8], from start: Int, to end: Int) {
        (self.block, self.start, self.end) = (block, start, end)
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

    /// The encoded message, without a length prefix: a copy, when memory is shared.
    public var bytes: [UInt8] {
        get { ownsBlock ? block : Array(block[start..<end]) }
        set { self = RawMessage(bytes: newValue) }
        _modify {
            var bytes = self.bytes
            // Nothing else has them then, so that they are changed in place.
            self = RawMessage(bytes: [])
            defer { self = RawMessage(bytes: bytes) }
            yield &bytes
        }
    }

    /// Its size in bytes, without a length prefix.
    @inlinable public var byteCount: Int { end - start }

    private var ownsBlock: Bool { byteCount == block.count }

    /// Calls `body` with the bytes, without a length prefix and without a copy. The memory is valid for the time of the call.
    @inlinable public func withUnsafeBytes<Result>(
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> Result {
        try block.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[start..<end])) }
    }

    public func encodedPayload(partial: Bool = false) -> [UInt8] { bytes }

    @inlinable public func withDelimitedBytes<Result>(
        partial: Bool = false,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        try withUnsafeBytes { bytes in
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

// Several at once.
extension RawMessage {
    /// What short ones share at most: 4 KiB.
    private static var blockByteCount: Int { 4 << 10 }
    /// From how many bytes on one has memory of its own: 1 KiB, of which allocating it is a small part of copying it.
    private static var longByteCount: Int { 1 << 10 }

    public static func decode(
        _ payloads: UnsafeBufferPointer<UnsafeRawBufferPointer>,
        into messages: inout [RawMessage],
        partial: Bool,
        options: DecodingOptions
    ) throws(MessageError) {
        var first = 0
        while first < payloads.count {
            var (next, byteCount) = (first + 1, payloads[first].count)
            if byteCount < longByteCount {
                while next < payloads.count, payloads[next].count < longByteCount,
                    byteCount + payloads[next].count <= blockByteCount
                {
                    byteCount += payloads[next].count
                    next += 1
                }
            }
            append(payloads, first..<next, byteCount, to: &messages)
            first = next
        }
    }

    /// Adds messages that share a block of so many bytes.
    private static func append(
        _ payloads: UnsafeBufferPointer<UnsafeRawBufferPointer>,
        _ indices: Range<Int>,
        _ byteCount: Int,
        to messages: inout [RawMessage]
    ) {
        let block = [UInt8](unsafeUninitializedCapacity: byteCount) { memory, initializedCount in
            for payload in payloads[indices] {
                UnsafeMutableRawBufferPointer(memory)[initializedCount...].copyBytes(from: payload)
                initializedCount += payload.count
            }
        }
        var start = 0
        for payload in payloads[indices] {
            messages.append(RawMessage(block, from: start, to: start + payload.count))
            start += payload.count
        }
    }
}

extension RawMessage: Hashable {
    public static func == (first: RawMessage, second: RawMessage) -> Bool {
        first.block[first.start..<first.end] == second.block[second.start..<second.end]
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(byteCount)
        withUnsafeBytes { hasher.combine(bytes: $0) }
    }
}
