internal import LifelineCore
package import NIOCore

/// A command in its wire form.
package struct RedisCommand: Sendable {
    /// The command's name, escaped for the texts of errors: `EVALSHA`.
    package let name: String
    let bytes: ByteBuffer

    /// Encodes a command with its arguments.
    package init(_ name: String, _ arguments: RedisArgument...) { self.init(name, arguments) }

    /// Encodes a command with its arguments.
    package init(_ name: String, _ arguments: some Collection<RedisArgument>) {
        self.name = name.escaped(limit: 40)
        let name = RedisArgument.text(name)
        let byteCount = arguments.reduce(RESPWriter.headerLimit + name.encodedLimit) { $0 + $1.encodedLimit }
        var bytes = ByteBufferAllocator().buffer(capacity: byteCount)
        bytes.writeWithUnsafeMutableBytes(minimumWritableBytes: byteCount) { room in
            var writer = RESPWriter(room)
            writer.writeHeader(UInt8(ascii: "*"), 1 + arguments.count)
            writer.write(name)
            for argument in arguments { writer.write(argument) }
            return writer.byteCount
        }
        self.bytes = bytes
    }
}

/// An argument of a command.
package enum RedisArgument: Sendable, Hashable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral {
    case text(String)
    case number(Int64)
    case bytes(ByteBuffer)

    package init(stringLiteral text: String) { self = .text(text) }

    package init(integerLiteral number: Int64) { self = .number(number) }

    /// The most bytes of the argument on the wire.
    fileprivate var encodedLimit: Int {
        let byteCount =
            switch self {
            case .text(let text): text.utf8.count
            case .number: 20
            case .bytes(let bytes): bytes.readableBytes
            }
        return RESPWriter.headerLimit + byteCount + 2
    }
}

/// Writes RESP into memory that has room for all of it.
private struct RESPWriter {
    /// The most bytes of a type, a count and a line end.
    static let headerLimit = 1 + 19 + 2

    private let room: UnsafeMutableRawBufferPointer
    private(set) var byteCount = 0

    init(_ room: UnsafeMutableRawBufferPointer) { self.room = room }

    mutating func write(_ argument: RedisArgument) {
        switch argument {
        case .text(var text): text.withUTF8 { write(UnsafeRawBufferPointer($0)) }
        case .number(let number):
            var text = "\(number)"
            text.withUTF8 { write(UnsafeRawBufferPointer($0)) }
        case .bytes(let bytes): bytes.withUnsafeReadableBytes { write($0) }
        }
    }

    private mutating func write(_ bytes: UnsafeRawBufferPointer) {
        writeHeader(UInt8(ascii: "$"), bytes.count)
        UnsafeMutableRawBufferPointer(rebasing: room[byteCount...]).copyMemory(from: bytes)
        byteCount += bytes.count
        writeLineEnd()
    }

    mutating func writeHeader(_ type: UInt8, _ count: Int) {
        room[byteCount] = type
        var (digitCount, rest) = (1, count)
        while rest > 9 { (digitCount, rest) = (digitCount + 1, rest / 10) }
        rest = count
        for index in stride(from: byteCount + digitCount, to: byteCount, by: -1) {
            room[index] = UInt8(ascii: "0") + UInt8(rest % 10)
            rest /= 10
        }
        byteCount += 1 + digitCount
        writeLineEnd()
    }

    private mutating func writeLineEnd() {
        room[byteCount] = UInt8(ascii: "\r")
        room[byteCount + 1] = UInt8(ascii: "\n")
        byteCount += 2
    }
}
