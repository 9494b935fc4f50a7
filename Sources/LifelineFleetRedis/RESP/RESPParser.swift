internal import Glibc
internal import NIOCore

/// Reads replies from bytes that come in pieces.
///
/// The parsed part of an incomplete reply is kept, so that the time is linear in the number of bytes, however small the
/// pieces are. Memory depends on the received bytes, not on the lengths that they announce.
struct RESPParser {
    /// An array that lacks elements.
    private struct OpenArray {
        var elements: [RedisValue] = []
        let count: Int
    }

    private enum Step {
        case value(RedisValue)
        /// An array has begun.
        case opened
        case incomplete
    }

    /// The most bytes of a status or an error. Redis sends some hundred, and may quote an argument.
    private static let lineLimit = 64 << 10
    /// The most digits of a number.
    private static let digitLimit = 19

    private var limits: RedisReplyLimits
    /// The bytes that are not parsed.
    private var buffer = ByteBuffer()
    /// The number of bytes at the start of `buffer` that were searched for the end of the line.
    private var searchedByteCount = 0
    /// The length of the string at the start of `buffer`; nil if something else begins there.
    private var stringLength: Int?
    /// The arrays around the next value, the innermost last.
    private var openArrays: [OpenArray] = []
    /// The number of parsed bytes of the incomplete reply.
    private var parsedByteCount = 0

    init(limits: RedisReplyLimits) {
        self.limits = limits
        // A `ByteBuffer` has to hold a string together with the read that ends it.
        self.limits.stringByteCount = min(limits.stringByteCount, 1 << 30)
    }

    /// Parses bytes, and adds the completed replies to `replies`.
    ///
    /// - Throws: an error when the bytes are not RESP, or exceed a limit. Then the parser is unusable; the added
    ///   replies are valid.
    mutating func parse(_ bytes: ByteBuffer, into replies: inout [RedisValue]) throws(RESPError) {
        append(bytes)
        let buffer = buffer
        var offset = 0
        defer { self.buffer.moveReaderIndex(forwardBy: offset) }
        var failure: RESPError?
        buffer.withUnsafeReadableBytes { bytes in
            do throws(RESPError) {
                while let reply = try parseReply(bytes, &offset, of: buffer) { replies.append(reply) }
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
    }

    private mutating func append(_ bytes: ByteBuffer) {
        if buffer.readableBytes == 0 {
            buffer = bytes
        } else if buffer.readerIndex == 0 {
            buffer.writeImmutableBuffer(bytes)
        } else {
            // Values share the old memory, so a write to it would copy all of it.
            var joined = ByteBufferAllocator().buffer(capacity: buffer.readableBytes + bytes.readableBytes)
            joined.writeImmutableBuffer(buffer)
            joined.writeImmutableBuffer(bytes)
            buffer = joined
        }
    }

    // MARK: Values

    /// Returns the next reply; nil if it is incomplete. Moves `offset` past the parsed bytes.
    private mutating func parseReply(
        _ bytes: UnsafeRawBufferPointer,
        _ offset: inout Int,
        of buffer: ByteBuffer
    ) throws(RESPError) -> RedisValue? {
        while true {
            let start = offset
            let step = try parseStep(bytes, &offset, of: buffer)
            // The limit of a string covers a reply of one value.
            if case .value(let value) = step, openArrays.isEmpty, parsedByteCount == 0 { return value }
            parsedByteCount += offset - start
            guard parsedByteCount + (stringLength ?? 0) <= limits.byteCount else {
                throw .replyTooLong(limit: limits.byteCount)
            }
            switch step {
            case .incomplete:
                return nil
            case .opened:
                continue
            case .value(let value):
                guard let reply = place(value) else { continue }
                parsedByteCount = 0
                return reply
            }
        }
    }

    /// Puts a value into the array that it belongs to. Returns the reply that it completes, if any.
    private mutating func place(_ value: RedisValue) -> RedisValue? {
        var value = value
        while let last = openArrays.indices.last {
            openArrays[last].elements.append(value)
            if openArrays[last].elements.count < openArrays[last].count { return nil }
            value = .array(openArrays.removeLast().elements)
        }
        return value
    }

    @inline(__always)
    private mutating func parseStep(
        _ bytes: UnsafeRawBufferPointer,
        _ offset: inout Int,
        of buffer: ByteBuffer
    ) throws(RESPError) -> Step {
        if let stringLength { return try parseString(stringLength, bytes, &offset, of: buffer) }
        guard offset < bytes.count else { return .incomplete }
        switch bytes[offset] {
        case UInt8(ascii: "+"):
            return try parseLine(bytes, &offset).map { .value(.status($0)) } ?? .incomplete
        case UInt8(ascii: "-"):
            return try parseLine(bytes, &offset).map { .value(.error(RedisReplyError($0))) } ?? .incomplete
        case UInt8(ascii: ":"):
            return try parseNumber(bytes, &offset).map { .value(.integer($0)) } ?? .incomplete
        case UInt8(ascii: "$"):
            guard let length = try parseNumber(bytes, &offset) else { return .incomplete }
            if length == -1 { return .value(.null) }
            guard length >= 0 else { throw .invalidLength }
            guard length <= limits.stringByteCount else { throw .stringTooLong(limit: limits.stringByteCount) }
            return try parseString(Int(length), bytes, &offset, of: buffer)
        case UInt8(ascii: "*"):
            guard let count = try parseNumber(bytes, &offset) else { return .incomplete }
            return try openArray(count, unparsedByteCount: bytes.count - offset)
        case let byte:
            throw .unknownType(byte)
        }
    }

    private mutating func openArray(_ count: Int64, unparsedByteCount: Int) throws(RESPError) -> Step {
        if count == -1 { return .value(.null) }
        guard count >= 0 else { throw .invalidLength }
        guard count <= limits.arrayCount else { throw .arrayTooLong(limit: limits.arrayCount) }
        guard openArrays.count < limits.depth else { throw .nestedTooDeeply(limit: limits.depth) }
        if count == 0 { return .value(.array([])) }
        var array = OpenArray(count: Int(count))
        // The shortest element has three bytes.
        array.elements.reserveCapacity(min(array.count, unparsedByteCount / 3 + 1))
        openArrays.append(array)
        return .opened
    }

    @inline(__always)
    private mutating func parseString(
        _ length: Int,
        _ bytes: UnsafeRawBufferPointer,
        _ offset: inout Int,
        of buffer: ByteBuffer
    ) throws(RESPError) -> Step {
        guard bytes.count - offset >= length + 2 else {
            stringLength = length
            return .incomplete
        }
        stringLength = nil
        guard bytes[offset + length] == UInt8(ascii: "\r"), bytes[offset + length + 1] == UInt8(ascii: "\n"),
            let string = buffer.getSlice(at: buffer.readerIndex + offset, length: length)
        else { throw .unterminated }
        offset += length + 2
        return .value(.bytes(string))
    }

    // MARK: Lines

    private mutating func parseLine(
        _ bytes: UnsafeRawBufferPointer,
        _ offset: inout Int
    ) throws(RESPError) -> String? {
        let line = UnsafeRawBufferPointer(rebasing: bytes[(offset + 1)...])
        let unsearched = UnsafeRawBufferPointer(rebasing: line[searchedByteCount...])
        guard let start = unsearched.baseAddress, let found = memchr(start, Int32(UInt8(ascii: "\r")), unsearched.count)
        else {
            guard line.count <= Self.lineLimit else { throw .lineTooLong(limit: Self.lineLimit) }
            searchedByteCount = line.count
            return nil
        }
        let length = searchedByteCount + (UnsafeRawPointer(found) - start)
        guard length <= Self.lineLimit else { throw .lineTooLong(limit: Self.lineLimit) }
        guard length + 1 < line.count else {
            searchedByteCount = length
            return nil
        }
        guard line[length + 1] == UInt8(ascii: "\n") else { throw .unterminated }
        searchedByteCount = 0
        offset += length + 3
        return String(decoding: line[..<length], as: UTF8.self)
    }

    /// Reads the number after a type's byte. Searching so few bytes again costs little.
    @inline(__always)
    private func parseNumber(
        _ bytes: UnsafeRawBufferPointer,
        _ offset: inout Int
    ) throws(RESPError) -> Int64? {
        var index = offset + 1
        let isNegative = index < bytes.count && bytes[index] == UInt8(ascii: "-")
        if isNegative { index += 1 }
        let firstDigit = index
        // 19 digits fit.
        var value: UInt64 = 0
        while index < bytes.count {
            let digit = bytes[index] &- UInt8(ascii: "0")
            guard digit <= 9 else { break }
            guard index - firstDigit < Self.digitLimit else { throw .invalidNumber }
            value = value &* 10 &+ UInt64(digit)
            index += 1
        }
        guard index < bytes.count else { return nil }
        guard index > firstDigit, bytes[index] == UInt8(ascii: "\r"),
            value <= Int64.max.magnitude + (isNegative ? 1 : 0)
        else { throw .invalidNumber }
        guard index + 1 < bytes.count else { return nil }
        guard bytes[index + 1] == UInt8(ascii: "\n") else { throw .unterminated }
        offset = index + 2
        return Int64(truncatingIfNeeded: isNegative ? 0 &- value : value)
    }
}

/// An error in a server's bytes.
enum RESPError: Error, Hashable, CustomStringConvertible {
    case unknownType(UInt8)
    case invalidNumber
    case invalidLength
    case unterminated
    case lineTooLong(limit: Int)
    case stringTooLong(limit: Int)
    case arrayTooLong(limit: Int)
    case nestedTooDeeply(limit: Int)
    case replyTooLong(limit: Int)

    var description: String {
        switch self {
        case .unknownType(let byte): "no reply begins with the byte 0x\(String(byte, radix: 16))"
        case .invalidNumber: "a number is none, or does not fit in 64 bits"
        case .invalidLength: "a length is below -1"
        case .unterminated: "a line or a string does not end with CR and LF"
        case .lineTooLong(let limit): "a line has more than \(limit) bytes"
        case .stringTooLong(let limit): "a string has more than \(limit) bytes"
        case .arrayTooLong(let limit): "an array has more than \(limit) elements"
        case .nestedTooDeeply(let limit): "arrays are nested more than \(limit) deep"
        case .replyTooLong(let limit): "a reply has more than \(limit) bytes"
        }
    }
}
