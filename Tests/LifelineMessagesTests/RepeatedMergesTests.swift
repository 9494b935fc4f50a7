import Glibc
import LifelineMessages
import LifelineProtos
import TestProtos
import Testing

/// Submessages that come in thousands of parts, a few bytes each: the right result, in linear time.
@Suite(.timeLimit(.minutes(5))) struct RepeatedMergesTests {
    private static let count = 262_144

    private func many(_ part: [UInt8], count: Int = count) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(part.count * count)
        for _ in 0..<count { bytes += part }
        return bytes
    }

    @Test func listsGrow() throws {
        let numbers = try ChatMessage(serializedBytes: many([0x72, 2, 0x38, 1]))
        #expect(numbers.replyTo.mentions.count == Self.count)
        #expect(numbers.replyTo.mentions.last == 1)
        let packed = try ChatMessage(serializedBytes: many([0x72, 4, 0x3A, 2, 1, 2]))
        #expect(packed.replyTo.mentions.count == 2 * Self.count)
        let messages = try ChatMessage(serializedBytes: many([0x72, 2, 0x2A, 0]), options: .init(memoryLimit: 1 << 28))
        #expect(messages.replyTo.attachments.count == Self.count)
    }

    @Test func theLastOneCounts() throws {
        let bytes = many([0x52, 2, 0x08, 1]) + [0x52, 2, 0x08, 2]
        let message = try ChatMessage(serializedBytes: bytes)
        #expect(message == .with { $0.author.id = 2 })
        let text = try ChatMessage(serializedBytes: many([0x52, 3, 0x12, 1, 0x61]) + [0x52, 3, 0x12, 1, 0x62])
        #expect(text == .with { $0.author.name = "b" })
    }

    /// Field 6 of a user is unknown: each part has a separate record, because the parts are not adjacent.
    @Test func unknownFieldsAreGathered() throws {
        let message = try ChatMessage(serializedBytes: many([0x52, 2, 0x30, 1]), options: .init(memoryLimit: 1 << 28))
        #expect(message.author.unknownFields == many([0x30, 1]))
        #expect(try message.author.serializedBytes() == many([0x30, 1]))
        let mixed = try ChatMessage(serializedBytes: many([0x30, 1, 0x40, 1]), options: .init(memoryLimit: 1 << 28))
        #expect(mixed.kind == .text)
        #expect(mixed.unknownFields == many([0x30, 1]))
    }

    @Test func membersOfAOneofAreMerged() throws {
        let merged = try ChatMessage(serializedBytes: many([0x7A, 2, 0x20, 2]))
        #expect(merged == .with { $0.location.altitude = 1 })
        let byTurns = try ChatMessage(
            serializedBytes: many([0x7A, 2, 0x20, 2, 0x8A, 1, 0]),
            options: .init(memoryLimit: 1 << 28)
        )
        #expect(byTurns == .with { $0.sticker = "" })
    }

    @Test func deepMerges() throws {
        // Three levels at once, the innermost with a list.
        let part: [UInt8] = [0x72, 6, 0x72, 4, 0x72, 2, 0x38, 1]
        let message = try ChatMessage(serializedBytes: many(part))
        #expect(message.replyTo.replyTo.replyTo.mentions.count == Self.count)
    }

    /// A quarter of the input takes about a quarter of the time: sixteen times as much would be quadratic.
    @Test(
        arguments: [
            [0x52, 2, 0x08, 1], [0x72, 2, 0x38, 1], [0x52, 2, 0x30, 1], [0x7A, 2, 0x20, 2],
            [0x72, 4, 0x32, 2, 0x0A, 0],
            [0x30, 1, 0x40, 1],
        ] as [[UInt8]]
    ) func timeIsLinear(part: [UInt8]) throws {
        let options = DecodingOptions(memoryLimit: 1 << 28)
        func time(_ count: Int) throws -> Double {
            let bytes = many(part, count: count)
            return try #require(
                try (0..<3).map { _ in
                    let start = Self.threadSeconds()
                    _ = try ChatMessage(serializedBytes: bytes, options: options)
                    return Self.threadSeconds() - start
                }.min()
            )
        }
        let (quarter, whole) = (try time(Self.count / 4), try time(Self.count))
        #expect(whole < quarter * 12 + 0.05)
    }

    /// The thread's own time, so that other tests do not count.
    private static func threadSeconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
