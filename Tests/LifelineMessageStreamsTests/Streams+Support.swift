internal import LifelineMessageStreams
internal import LifelineMessages
internal import LifelineProtos
internal import LifelineTestSupport

/// A stream of messages that differ in length, some of them empty.
struct SampleStream {
    let messages: [Sample_Chat_V1_ChatMessage]
    let bytes: [UInt8]

    init(count: Int = 40) throws {
        messages = (0..<count).map { number in
            .with {
                if number % 7 == 3 { return }
                $0.id = "\(number)"
                $0.text = String(repeating: "x", count: number * 11)
            }
        }
        var bytes: [UInt8] = []
        for message in messages { try bytes.append(delimited: message) }
        self.bytes = bytes
    }

    /// The position of each message.
    var offsets: [Int] {
        get throws {
            try messages.reduce(into: [0]) { offsets, message in
                var one: [UInt8] = []
                try one.append(delimited: message)
                offsets.append(offsets[offsets.count - 1] + one.count)
            }
        }
    }
}

extension [UInt8] {
    /// In pieces of a number of bytes.
    func cut(into length: Int) -> [ArraySlice<UInt8>] {
        stride(from: 0, to: count, by: length).map { self[$0..<Swift.min($0 + length, count)] }
    }

    /// In pieces of 0 to 99 bytes.
    func cutRandomly(using random: inout SeededGenerator) -> [ArraySlice<UInt8>] {
        var (pieces, rest) = ([ArraySlice<UInt8>](), self[...])
        while !rest.isEmpty {
            let length = Int.random(in: 0...99, using: &random)
            pieces.append(rest.prefix(length))
            rest = rest.dropFirst(length)
        }
        return pieces
    }
}

/// The elements of a sequence, each after the consumer was suspended, and then a failure, if there is one.
struct Suspending<Base: Sequence & Sendable>: AsyncSequence, Sendable where Base.Element: Sendable {
    let base: Base
    var failure: (any Error)?

    struct AsyncIterator: AsyncIteratorProtocol {
        var base: Base.Iterator
        let failure: (any Error)?

        mutating func next() async throws -> Base.Element? {
            await Task.yield()
            if let element = base.next() { return element }
            if let failure { throw failure }
            return nil
        }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: base.makeIterator(), failure: failure) }
}

struct Interrupted: Error {}

/// The error that `body` throws. `#expect(throws:)` cannot use readers and writers, which cannot be copied.
func streamError(_ body: () throws -> Void) -> DelimitedStreamError? {
    do {
        try body()
        return nil
    } catch {
        return error as? DelimitedStreamError
    }
}
