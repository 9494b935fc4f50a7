internal import LifelineCore
public import LifelineMessages

extension AsyncSequence where Element: Sequence<UInt8> {
    /// The messages in these pieces of a delimited stream. A piece may end anywhere.
    ///
    /// Iterating throws `DelimitedStreamError`, after the messages before the one that failed, and the errors of this
    /// sequence. It throws `CancellationError` when the task was cancelled and this sequence has ended inside a
    /// message, because an `AsyncStream` ends when the task is cancelled.
    ///
    /// The messages of a long piece are decoded 64 KiB at a time.
    ///
    /// - Parameters:
    ///   - type: the type of the messages: a generated one, or `RawMessage`.
    ///   - maximumFrameLength: the most bytes that an encoded message may have. Values below 0 count as 0, and those
    ///     above 2³²−1 as 2³²−1.
    ///   - partial: whether `required` fields may be absent.
    ///   - options: the limits of each message.
    @inlinable public func delimitedMessages<Decoded: DelimitedMessage>(
        of type: Decoded.Type,
        maximumFrameLength: Int = 4 << 20,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) -> DelimitedMessageSequence<Self, Decoded> {
        let decoder = DelimitedMessageDecoder(
            of: type,
            maximumFrameLength: maximumFrameLength,
            partial: partial,
            options: options
        )
        return DelimitedMessageSequence(base: self, decoder: decoder)
    }
}

extension AsyncSequence where Element == UInt8 {
    /// The messages in these bytes of a delimited stream. A sequence of pieces, where there is one, takes less time.
    ///
    /// See `delimitedMessages(of:maximumFrameLength:partial:options:)` of a sequence of pieces.
    @inlinable public func delimitedMessages<Decoded: DelimitedMessage>(
        of type: Decoded.Type,
        maximumFrameLength: Int = 4 << 20,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) -> DelimitedMessageSequence<FramePieces<Self>, Decoded> {
        FramePieces(base: self)
            .delimitedMessages(
                of: type,
                maximumFrameLength: maximumFrameLength,
                partial: partial,
                options: options
            )
    }
}

/// The messages of a delimited stream.
public struct DelimitedMessageSequence<Base: AsyncSequence, Decoded: DelimitedMessage>: AsyncSequence
where Base.Element: Sequence<UInt8> {
    @usableFromInline let base: Base
    @usableFromInline let decoder: DelimitedMessageDecoder<Decoded>

    @inlinable init(base: Base, decoder: DelimitedMessageDecoder<Decoded>) {
        self.base = base
        self.decoder = decoder
    }

    /// Starts with the first message.
    @inlinable public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(base: base.makeAsyncIterator(), decoder: decoder)
    }

    /// Decodes up to 64 KiB of a piece at once. Inlined, so that it is compiled for the specific types: looking them up
    /// at run time took most of the time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        /// Empty messages take a byte each, and a hundred times that in memory.
        @usableFromInline static var partLength: Int { 64 << 10 }

        @usableFromInline var base: Base.AsyncIterator
        @usableFromInline var decoder: DelimitedMessageDecoder<Decoded>
        @usableFromInline var piece: [UInt8] = []
        /// The number of bytes of the piece that were decoded.
        @usableFromInline var offset = 0
        /// The messages of a part of the piece, the last one first.
        @usableFromInline var waiting: [Decoded] = []
        @usableFromInline var isAtEnd = false

        @inlinable init(base: Base.AsyncIterator, decoder: DelimitedMessageDecoder<Decoded>) {
            self.base = base
            self.decoder = decoder
        }

        /// Returns the next message; nil when the stream has ended after a message.
        ///
        /// - Throws: `DelimitedStreamError`, after the messages before the one that failed, and again at every later
        ///   call; the errors of the base sequence; `CancellationError` when the task was cancelled and the base
        ///   sequence has ended inside a message.
        @inlinable public mutating func next(isolation actor: isolated (any Actor)?) async throws -> Decoded? {
            while waiting.isEmpty {
                guard try await decodePart(isolation: actor) else { return nil }
            }
            return waiting.popLast()
        }

        /// Returns the next message; nil when the stream has ended after a message.
        ///
        /// - Throws: as `next(isolation:)` does.
        @inlinable public mutating func next() async throws -> Decoded? {
            try await next(isolation: nil)
        }

        /// Decodes the next part. Returns false at the end. Apart from `next(isolation:)`, so that this is short enough
        /// to be inlined.
        @inlinable mutating func decodePart(isolation actor: isolated (any Actor)?) async throws -> Bool {
            if offset == piece.count, !isAtEnd {
                (piece, offset) = ([], 0)
                if let next = try await base.next(isolation: actor) { piece = [UInt8](next) } else { isAtEnd = true }
            }
            if isAtEnd {
                try finish()
                return false
            }
            do throws(DelimitedStreamError) {
                // A span of the property would prevent changes of the others.
                let piece = piece
                let rest = piece.span.bytes.extracting(droppingFirst: offset)
                offset += try decoder.decodePart(of: rest, byteCount: Self.partLength, into: &waiting)
            } catch {
                // `finish()` throws it again, after the messages before it.
                (piece, isAtEnd) = ([], true)
            }
            waiting.reverse()
            return true
        }

        @usableFromInline mutating func finish() throws {
            do throws(DelimitedStreamError) {
                try decoder.finish()
            } catch {
                // Sequences such as `AsyncStream` end when the task is cancelled, which is not the stream's end.
                let isTruncated = (error.cause as? FramingError)?.code == .truncatedFrame
                throw isTruncated && Task.isCancelled ? CancellationError() : error
            }
        }
    }
}

extension DelimitedMessageSequence: Sendable where Base: Sendable {}
