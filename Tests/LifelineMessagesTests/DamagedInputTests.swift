import LifelineMessages
import LifelineTestSupport
import Testing

/// Every kind of field, truncated and damaged in every place: the result is a message or an error, never a trap.
@Suite(.timeLimit(.minutes(5))) struct DamagedInputTests {
    /// Decodes as `M`. A resulting message has to survive encoding. Returns whether there is one.
    @discardableResult
    private func expectMessageOrError<M: Message>(_ bytes: [UInt8], as _: M.Type) throws -> Bool {
        let message: M
        do throws(MessageError) {
            message = try M(serializedBytes: bytes, partial: true)
        } catch {
            #expect(error.message != "")
            return false
        }
        let encoded = try message.serializedBytes(partial: true)
        let again = try M(serializedBytes: encoded, partial: true)
        #expect(again == message, "\(bytes)")
        #expect(try again.serializedBytes(partial: true) == encoded, "\(bytes)")
        return true
    }

    private func expectRoundTrip<M: Message>(_ message: M) throws {
        let bytes = try message.serializedBytes()
        let decoded = try M(serializedBytes: bytes)
        #expect(decoded == message)
        #expect(decoded.unknownFields == [])
        #expect(try decoded.serializedBytes() == bytes)
    }

    @Test(arguments: MessageCorpus.all.indices) func theWholeIsDecoded(index: Int) throws {
        try expectRoundTrip(MessageCorpus.all[index].message)
    }

    @Test(arguments: MessageCorpus.all.indices) func everyTruncation(index: Int) throws {
        try expectEveryTruncation(of: MessageCorpus.all[index].message)
    }

    private func expectEveryTruncation<M: Message>(of message: M) throws {
        let bytes = try message.serializedBytes()
        var decodedCount = 0
        for count in 0...bytes.count {
            if try expectMessageOrError(Array(bytes.prefix(count)), as: M.self) { decodedCount += 1 }
        }
        #expect(decodedCount >= 1, "the whole at least")
        #expect(decodedCount <= bytes.count / 2 + 1, "a field has two bytes at least, so that a cut is noticed")
    }

    /// Every byte in turn, each of its bits, and some other values.
    @Test(arguments: MessageCorpus.all.indices) func everySingleByteDamaged(index: Int) throws {
        try expectEveryByteDamaged(in: MessageCorpus.all[index].message, seed: UInt64(index))
    }

    private func expectEveryByteDamaged<M: Message>(in message: M, seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let bytes = try message.serializedBytes()
        for position in bytes.indices {
            var values: Set<UInt8> = [0, 0xFF, bytes[position] &+ 1, .random(in: 0...255, using: &generator)]
            for bit in 0..<8 { values.insert(bytes[position] ^ 1 << UInt8(bit)) }
            for value in values.sorted() {
                var damaged = bytes
                damaged[position] = value
                try expectMessageOrError(damaged, as: M.self)
            }
        }
    }

    /// The bytes of one message decoded as another: fields of other wire types, bytes that are not lengths.
    @Test func everyMessageAsEveryOther() throws {
        for (_, message) in MessageCorpus.all {
            let bytes = try message.serializedBytes()
            for (_, other) in MessageCorpus.all { try expectMessageOrError(bytes, asThat: other) }
        }
    }

    private func expectMessageOrError<M: Message>(_ bytes: [UInt8], asThat _: M) throws {
        try expectMessageOrError(bytes, as: M.self)
    }

    /// Two encodings one after the other are one message, as the specification says; so is merging.
    @Test(arguments: MessageCorpus.all.indices) func concatenationIsMerging(index: Int) throws {
        try expectConcatenationIsMerging(MessageCorpus.all[index].message)
    }

    private func expectConcatenationIsMerging<M: Message>(_ message: M) throws {
        let bytes = try message.serializedBytes()
        for count in 0...bytes.count {
            let part = Array(bytes.prefix(count))
            guard let first = try? M(serializedBytes: part) else { continue }
            let whole = try M(serializedBytes: part + bytes)
            var merged = first
            try merged.merge(serializedBytes: bytes)
            #expect(merged == whole)
            var failed = merged
            #expect(throws: MessageError.self) { try failed.merge(serializedBytes: bytes + [0x07]) }
            #expect(failed == whole)
        }
    }
}
