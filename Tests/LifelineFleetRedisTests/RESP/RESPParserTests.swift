import LifelineFleetRedis
import LifelineTestSupport
import NIOCore
import Testing

@testable import LifelineFleetRedis

@Suite struct RESPParserTests {
    private static let replies: [(wire: String, value: RedisValue)] = [
        ("+OK\r\n", .status("OK")),
        ("+\r\n", .status("")),
        ("-ERR no\r\n", .error(RedisReplyError("ERR no"))),
        (":0\r\n", .integer(0)),
        (":-12\r\n", .integer(-12)),
        (":9223372036854775807\r\n", .integer(.max)),
        (":-9223372036854775808\r\n", .integer(.min)),
        ("$0\r\n\r\n", .bytes(ByteBuffer())),
        ("$5\r\na\r\nbc\r\n", .bytes(ByteBuffer(string: "a\r\nbc"))),
        ("$-1\r\n", .null),
        ("*-1\r\n", .null),
        ("*0\r\n", .array([])),
        ("*2\r\n:1\r\n*0\r\n", .array([.integer(1), .array([])])),
        (
            "*3\r\n*2\r\n$1\r\na\r\n*1\r\n:7\r\n-ERR x\r\n$-1\r\n",
            .array([
                .array([.bytes(ByteBuffer(string: "a")), .array([.integer(7)])]), .error(RedisReplyError("ERR x")),
                .null,
            ])
        ),
    ]

    private static let invalid: [(wire: String, error: RESPError)] = [
        ("HTTP/1.1 400\r\n", .unknownType(0x48)),
        ("\r\n", .unknownType(0x0D)),
        (":\r\n", .invalidNumber),
        (":-\r\n", .invalidNumber),
        (":1a\r\n", .invalidNumber),
        (":+1\r\n", .invalidNumber),
        (":9223372036854775808\r\n", .invalidNumber),
        (":-9223372036854775809\r\n", .invalidNumber),
        (":12345678901234567890", .invalidNumber),
        (":1\rx", .unterminated),
        ("+OK\rx", .unterminated),
        ("$-2\r\n", .invalidLength),
        ("*-2\r\n", .invalidLength),
        ("$1\r\nabc", .unterminated),
        ("$101\r\n", .stringTooLong(limit: 100)),
        ("$9223372036854775807\r\n", .stringTooLong(limit: 100)),
        ("*11\r\n", .arrayTooLong(limit: 10)),
        ("*9223372036854775807\r\n", .arrayTooLong(limit: 10)),
        ("*1\r\n*1\r\n*1\r\n*1\r\n", .nestedTooDeeply(limit: 3)),
        ("*3\r\n$90\r\n" + String(repeating: "x", count: 90) + "\r\n$90\r\n", .replyTooLong(limit: 150)),
    ]

    private static let limits = {
        var limits = RedisReplyLimits()
        (limits.stringByteCount, limits.arrayCount, limits.depth, limits.byteCount) = (100, 10, 3, 150)
        return limits
    }()

    private func parse(_ pieces: some Sequence<ByteBuffer>) throws(RESPError) -> [RedisValue] {
        var parser = RESPParser(limits: Self.limits)
        var replies: [RedisValue] = []
        for piece in pieces { try parser.parse(piece, into: &replies) }
        return replies
    }

    @Test(arguments: replies)
    func readsEachReplyWholeAndByteByByte(wire: String, value: RedisValue) throws {
        #expect(try parse([ByteBuffer(string: wire)]) == [value])
        #expect(try parse(wire.utf8.map { ByteBuffer(bytes: [$0]) }) == [value])
    }

    @Test(arguments: invalid)
    func refusesWhatIsNoReply(wire: String, error: RESPError) {
        #expect(throws: error) { try parse([ByteBuffer(string: wire)]) }
        #expect(throws: error) { try parse(wire.utf8.map { ByteBuffer(bytes: [$0]) }) }
    }

    @Test func readsAStreamInRandomPieces() throws {
        let wire = Self.replies.map(\.wire).joined()
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<500 {
            var rest = ByteBuffer(string: wire)
            var pieces: [ByteBuffer] = []
            while rest.readableBytes > 0 {
                let length = Int.random(in: 1...min(rest.readableBytes, 40), using: &generator)
                pieces.append(rest.readSlice(length: length) ?? ByteBuffer())
            }
            #expect(try parse(pieces) == Self.replies.map(\.value))
        }
    }

    @Test func keepsTheRepliesBeforeABrokenOne() {
        var parser = RESPParser(limits: Self.limits)
        var replies: [RedisValue] = []
        #expect(throws: RESPError.unknownType(0x21)) {
            try parser.parse(ByteBuffer(string: ":1\r\n:2\r\n!"), into: &replies)
        }
        #expect(replies == [.integer(1), .integer(2)])
    }

    @Test func neverTrapsOnRandomBytes() {
        var generator = SeededGenerator(seed: 2)
        let bytes = Array("+-:$*0123456789\r\n\r\na".utf8)
        for _ in 0..<2_000 {
            let wire = (0..<Int.random(in: 1...40, using: &generator)).map { _ in
                bytes.randomElement(using: &generator) ?? 0
            }
            _ = try? parse([ByteBuffer(bytes: wire)])
            _ = try? parse(wire.map { ByteBuffer(bytes: [$0]) })
        }
    }

    /// Lines have no declared length, so only their limit bounds them.
    @Test func boundsALineWithoutEnd() {
        var parser = RESPParser(limits: RedisReplyLimits())
        var replies: [RedisValue] = []
        #expect(throws: RESPError.lineTooLong(limit: 65536)) {
            try parser.parse(ByteBuffer(string: "+"), into: &replies)
            while true { try parser.parse(ByteBuffer(repeating: 0x61, count: 1000), into: &replies) }
        }
        #expect(replies.isEmpty)
    }

    /// Parsing the whole reply again with each piece would take hours: a million pieces of a reply of megabytes.
    @Test(.timeLimit(.minutes(1)))
    func takesLinearTimeForManySmallPieces() throws {
        var limits = RedisReplyLimits()
        limits.stringByteCount = 1 << 20
        var parser = RESPParser(limits: limits)
        var replies: [RedisValue] = []
        let piece = ByteBuffer(repeating: 0x61, count: 4)
        try parser.parse(ByteBuffer(string: "*2\r\n$1048576\r\n"), into: &replies)
        for _ in 0..<262_144 { try parser.parse(piece, into: &replies) }
        try parser.parse(ByteBuffer(string: "\r\n*100000\r\n"), into: &replies)
        for _ in 0..<100_000 {
            try parser.parse(ByteBuffer(string: ":"), into: &replies)
            try parser.parse(ByteBuffer(string: "1\r\n"), into: &replies)
        }
        guard case .array(let parts)? = replies.first, parts.count == 2, case .bytes(let bytes) = parts[0],
            case .array(let numbers) = parts[1]
        else {
            Issue.record("The reply is another one.")
            return
        }
        #expect(bytes.readableBytes == 1_048_576)
        #expect(numbers == [RedisValue](repeating: .integer(1), count: 100_000))
    }
}

@Suite struct RedisCommandTests {
    @Test func encodesArguments() {
        let command = RedisCommand("SET", "kéy", -12, .bytes(ByteBuffer(bytes: [0, 13, 10])), "", .number(.min))
        let wire =
            "*6\r\n$3\r\nSET\r\n$4\r\nkéy\r\n$3\r\n-12\r\n$3\r\n\0\r\n\r\n$0\r\n\r\n$20\r\n-9223372036854775808\r\n"
        #expect(command.bytes == ByteBuffer(string: wire))
    }

    @Test(arguments: [0, 9, 10, 99, 100, 65_536])
    func encodesLengths(count: Int) {
        let command = RedisCommand("X", .text(String(repeating: "a", count: count)))
        #expect(
            command.bytes
                == ByteBuffer(string: "*2\r\n$1\r\nX\r\n$\(count)\r\n\(String(repeating: "a", count: count))\r\n")
        )
    }

    @Test func knowsScriptsByTheirDigest() {
        #expect(RedisScript("return 1").digest == "e0e1f9fabfc9d4800c877a703b823ac0578ff8db")
    }
}
