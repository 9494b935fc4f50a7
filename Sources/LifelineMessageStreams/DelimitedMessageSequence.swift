public import LifelineMessages

extension AsyncSequence where Element: Sequence<UInt8> {
    /// The messages in these pieces of a delimited stream, however it was cut.
    ///
    /// Iterating throws `DelimitedStreamError`, after the messages before the one that failed, and what this sequence
    /// throws.
    ///
    /// - Parameters: as `DelimitedMessageDecoder` has them.
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

    /// Decodes the messages of each piece at once. Inlined, so that it is compiled for the very types: looking
    /// these up at run time took most of the time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        @usableFromInline var base: Base.AsyncIterator
        @usableFromInline var decoder: DelimitedMessageDecoder<Decoded>
        /// The messages of a piece, the last first.
        @usableFromInline var waiting: [Decoded] = []
        @usableFromInline var isAtEnd = false

        @inlinable init(base: Base.AsyncIterator, decoder: DelimitedMessageDecoder<Decoded>) {
            self.base = base
            self.decoder = decoder
        }

        /// The next message; nil when the stream has ended behind a message.
        @inlinable public mutating func next(isolation actor: isolated (any Actor)?) async throws -> Decoded? {
            while true {
                if let message = waiting.popLast() { return message }
                if isAtEnd {
                    try decoder.finish()
                    return nil
                }
                guard let piece = try await base.next(isolation: actor) else {
                    isAtEnd = true
                    continue
                }
                do throws(DelimitedStreamError) {
                    try decoder.decode(piece, into: &waiting)
                } catch {
                    // `finish()` throws it again, behind the messages before it.
                    isAtEnd = true
                }
                waiting.reverse()
            }
        }

        /// The next message; nil when the stream has ended behind a message.
        @inlinable public mutating func next() async throws -> Decoded? {
            try await next(isolation: nil)
        }
    }
}

extension DelimitedMessageSequence: Sendable where Base: Sendable {}
