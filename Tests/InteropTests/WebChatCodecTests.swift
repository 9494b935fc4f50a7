import Foundation
import Lifeline
import LifelineCore
import LifelineProtos
import LifelineTestSupport
import LifelineWellKnownTypes
import Testing

/// The page's protobuf code, in Chromium, with messages of Lifeline.
@Suite(.timeLimit(.minutes(2)), .serialized) struct WebChatCodecTests {
    /// A message in the page's form, with 64-bit numbers as text.
    private struct Seen: Codable, Equatable {
        struct Time: Codable, Equatable {
            var seconds: String
            var nanos: Int32
        }
        var id, from, text: String
        var mentions: [String]
        var kind: Int
        var nonce, position: String
        var sentAt: Time?

        init(_ message: ChatMessage) {
            (id, from, text) = (message.id, message.from, message.text)
            mentions = message.mentions.map(String.init)
            kind = message.kind.rawValue
            (nonce, position) = (String(message.nonce), String(message.position))
            if message.hasSentAt {
                sentAt = Time(seconds: String(message.sentAt.seconds), nanos: message.sentAt.nanos)
            }
        }
    }

    /// Messages with the fields that the page has.
    private let messages: [ChatMessage] = [
        ChatMessage(),
        .with {
            $0.id = "1"
            $0.from = "Ada"
            $0.text = "Grüezi 🎉 \0 \u{FEFF}"
            $0.kind = .image
            $0.sentAt.seconds = 1_790_000_000
            $0.sentAt.nanos = 123_456_789
        },
        .with {
            $0.text = "\u{FEFF}begins with a byte order mark"
            $0.mentions = [0, 1, 127, 128, 1 << 53 + 1, .max]
            $0.nonce = .max
            $0.position = .min
            $0.sentAt.seconds = .min
            $0.sentAt.nanos = -1
            $0.kind = .UNRECOGNIZED(-5)
        },
        .with {
            $0.nonce = 1 << 63
            $0.position = .max
            $0.sentAt.seconds = .max
            $0.sentAt.nanos = .max
            $0.kind = .UNRECOGNIZED(Int(Int32.max))
            $0.text = String(repeating: "long ", count: 10_000)
        },
        .with { $0.sentAt = .init() },
    ]

    private let everything = ChatMessage.with {
        $0.text = "with what the page does not know"
        $0.attachments.append(.with { $0.content = [1, 2, 3] })
        $0.headers["a"] = "b"
        $0.author.name = "Ada"
        $0.ttl = 0
        $0.replyTo.replyTo.text = "inner"
        $0.poll.votes[1] = 2
        $0.utcOffset = -3600
        $0.zoneVersion = -1
        $0.signal = [1.5, -2]
        $0.kindsSeen = [.text, .system]
        $0.position = -1
    }

    /// Valid messages that our encoders never make.
    private let unusual: [[UInt8]] = [
        // Numbers that are not packed, packed twice, and mixed.
        [0x38, 1, 0x3A, 2, 2, 3, 0x38, 4, 0x3A, 0],
        // The last one counts; messages are merged; a wrong kind of field is skipped.
        [0x22, 1, 0x61, 0x22, 1, 0x62], [0x6A, 2, 8, 7, 0x6A, 2, 16, 9], [0x20, 5],
        // Groups, one in another.
        [0xA3, 6, 0x08, 1, 0xAB, 6, 0x12, 1, 0xFF, 0xAC, 6, 0xA4, 6, 0x22, 1, 0x61],
        // More bytes than needed, and more bits than the field has.
        [0x22, 0x81, 0x00, 0x61], [0x40, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F],
        [0xA8, 0x01, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01],
        [0xFD, 0xFF, 0xFF, 0xFF, 0x0F, 1, 2, 3, 4],
    ]

    private let malformed: [[UInt8]] = [
        [0x22], [0x22, 5], [0x22, 5, 0x61], [0x40], [0x40, 0x80], [0x61, 1, 2, 3], [0x6A, 2, 8], [0x6A, 1, 8],
        // More than 64 bits, in ten bytes and in eleven; field 0, no such wire type, a length of 2⁶⁴−1, a tag of over
        // 32 bits.
        [0x40] + [UInt8](repeating: 0xFF, count: 9) + [2], [0x40] + [UInt8](repeating: 0xFF, count: 10) + [1],
        [0x00, 0], [0x06], [0x27],
        [0x22] + [UInt8](repeating: 0xFF, count: 9) + [1], [0x80, 0x80, 0x80, 0x80, 0x10, 1],
        // Groups that do not end, that another one ends, or that have not begun.
        [0xA3, 6], [0xA3, 6, 0xAC, 6], [0xA4, 6],
        // Text that is not UTF-8: truncated, overlong, a surrogate, beyond Unicode.
        [0x22, 1, 0xC3], [0x22, 2, 0xC0, 0x80], [0x22, 3, 0xED, 0xA0, 0x80], [0x22, 4, 0xF4, 0x90, 0x80, 0x80],
        // 1,000 groups in one another.
        [UInt8]((0..<1_000).map { _ in [0xA3, 6] }.joined()),
    ]

    @Test func readsWhatLifelineWrites() async throws {
        try await withCodec { page in
            let known = try messages.map { try $0.serializedBytes() }
            let others = try [everything.serializedBytes()] + unusual
            let seen = try await decode(known + others, in: page)
            for (bytes, seen) in zip(known + others, seen) {
                #expect(try seen.value == Seen(ChatMessage(serializedBytes: bytes)), "\(Hex.text(bytes.prefix(100)))")
            }
            // And back.
            let encoded: [String] = try await page.evaluate(
                "\(inputs(known)).map((bytes) => toHex(ChatMessage.encode(ChatMessage.decode(bytes))))"
            )
            #expect(try encoded.map { try ChatMessage(serializedBytes: Hex.bytes($0)) } == messages)
        }
    }

    @Test func refusesWhatIsNoMessage() async throws {
        try await withCodec { page in
            for (bytes, seen) in zip(malformed, try await decode(malformed, in: page)) {
                #expect(seen.error == "WireError", "\(Hex.text(bytes.prefix(100)))")
                #expect(throws: MessageError.self) { try ChatMessage(serializedBytes: bytes) }
            }
        }
    }

    @Test func refusesNumbersThatDoNotFit() async throws {
        try await withCodec { page in
            let errors: [String] = try await page.evaluate(
                """
                [{ nonce: 2n ** 64n }, { nonce: -1n }, { position: 2n ** 63n }, { kind: 2 ** 31 }, { kind: 0.5 },
                 { mentions: [1n, -1n] }, { sentAt: { seconds: 1n, nanos: -(2 ** 31) - 1 } }]
                  .map((message) => { try { ChatMessage.encode(message); return "none"; } catch (e) { return e.name; } })
                """
            )
            #expect(errors == [String](repeating: "RangeError", count: 7))
        }
    }

    /// If Lifeline accepts a damaged message, the page reads the same content. The page may accept more, because it
    /// skips more fields.
    @Test func readsDamagedMessagesAsLifelineDoes() async throws {
        var random = SeededGenerator(seed: 5)
        let originals =
            try (messages.filter { $0.text.count < 1_000 } + [everything]).map { try $0.serializedBytes() } + unusual
        let damaged = (0..<5_000).map { _ in
            var bytes = originals.randomElement(using: &random) ?? []
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let place = Int.random(in: 0...bytes.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes.insert(.random(in: 0...255, using: &random), at: place)
                case 1 where place < bytes.count: bytes.remove(at: place)
                default: if place < bytes.count { bytes[place] = .random(in: 0...255, using: &random) }
                }
            }
            return bytes
        }
        try await withCodec { page in
            var (takenCount, refusedCount) = (0, 0)
            for (bytes, seen) in zip(damaged, try await decode(damaged, in: page)) {
                #expect(seen.error == nil || seen.error == "WireError", "\(Hex.text(bytes))")
                if let message = try? ChatMessage(serializedBytes: bytes) {
                    takenCount += 1
                    #expect(seen.value == Seen(message), "\(Hex.text(bytes))")
                } else if seen.error != nil {
                    refusedCount += 1
                }
            }
            #expect(takenCount > 500 && refusedCount > 500)
        }
    }

    // MARK: Frames

    @Test func findsFramesHoweverTheStreamIsCut() async throws {
        let payloads =
            try [[], [1], []] + messages.map { try $0.serializedBytes() } + [[UInt8](repeating: 7, count: 65_536)]
        var stream: [UInt8] = []
        for payload in payloads { try RawMessage(bytes: payload).withDelimitedBytes { stream += $0 } }
        try await withCodec { page in
            let counts: [Int] = try await page.evaluate(
                """
                (() => {
                  const [stream] = \(inputs([stream])), expected = \(literal(payloads.map { Hex.text($0) }.joined(separator: ",")));
                  let seed = 1;
                  const random = (limit) => (seed = seed * 48271 % 0x7fffffff) % limit;
                  const cuts = [() => stream.length, () => 1, () => 2, () => random(10), () => random(100_000)];
                  return cuts.map((cut) => {
                    const decoder = new DelimitedDecoder(65_536), frames = [];
                    for (let at = 0; at < stream.length;) {
                      const end = at + cut();
                      decoder.push(stream.slice(at, end), (payload) => frames.push(toHex(payload)));
                      at = end;
                    }
                    return frames.join() === expected && decoder.isBetweenFrames ? frames.length : -1;
                  });
                })()
                """
            )
            #expect(counts == [Int](repeating: payloads.count, count: 5))
            let written: [String] = try await page.evaluate(
                "\(inputs(payloads)).map((payload) => toHex(delimited(payload)))"
            )
            #expect(written.joined() == Hex.text(stream))
        }
    }

    @Test func judgesPrefixesAsLifelineDoes() async throws {
        let cases: [(bytes: String, outcome: String)] = [
            ("00 00 00", "3"), ("80 80 80 80", "0, inside"), ("80 80 80 80 80 01", "its length is malformed"),
            ("FF FF FF FF 0F", "it is too large"), ("FF FF FF FF 1F", "its length is malformed"), ("80 00", "1"),
            ("80 80 04", "0, inside"), ("81 80 04", "it is too large"), ("02 01", "0, inside"), ("", "0"),
        ]
        try await withCodec { page in
            let outcomes: [String] = try await page.evaluate(
                """
                \(inputs(cases.map { Hex.bytes($0.bytes) })).map((bytes) => {
                  const decoder = new DelimitedDecoder(65_536);
                  let count = 0;
                  try {
                    decoder.push(bytes, () => count += 1);
                    return count + (decoder.isBetweenFrames ? "" : ", inside");
                  } catch (error) {
                    return error.message;
                  }
                })
                """
            )
            #expect(outcomes == cases.map(\.outcome))
        }
    }

    // MARK: -

    /// The result of decoding bytes.
    private struct Outcome: Decodable {
        let value: Seen?
        let error: String?
    }

    private func decode(_ inputs: [[UInt8]], in page: BrowserPage) async throws -> [Outcome] {
        try await page.evaluate(
            """
            \(self.inputs(inputs)).map((bytes) => {
              try {
                return { value: JSON.parse(JSON.stringify(ChatMessage.decode(bytes), asText)) };
              } catch (error) {
                return { error: error.name };
              }
            })
            """
        )
    }

    /// An expression for an array of byte arrays.
    private func inputs(_ inputs: [[UInt8]]) -> String {
        "\(literal(inputs.map { Hex.text($0) }.joined(separator: ","))).split(',').map(fromHex)"
    }

    /// Opens the page, and lets expressions use its modules.
    private func withCodec(_ body: (BrowserPage) async throws -> Void) async throws {
        try await WebChat.servePage { origin in
            try await Browser.run { browser in
                let page = try await browser.open(origin)
                try await page.run(
                    """
                    Object.assign(window, await import("/chat-message.js"), await import("/delimited.js"), {
                      fromHex: (text) => Uint8Array.from(text.match(/../g) ?? [], (digits) => parseInt(digits, 16)),
                      toHex: (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(""),
                      asText: (key, value) => typeof value === "bigint" ? String(value) : value,
                    });
                    """
                )
                try await body(page)
            }
        }
    }
}

/// Bytes as hexadecimal digits.
enum Hex {
    static func bytes(_ text: String) -> [UInt8] {
        let digits = text.compactMap { UInt8(String($0), radix: 16) }
        return stride(from: 0, to: digits.count - 1, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }

    static func text(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789abcdef")
        return String(bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
    }
}
