internal import LifelineCore

/// Pieces of a delimited stream that arrives byte by byte. A length is one piece, and a message is one or more. A piece
/// for each byte would cost a hundred times as much as the byte.
public struct FramePieces<Base: AsyncSequence>: AsyncSequence where Base.Element == UInt8 {
    @usableFromInline let base: Base

    @inlinable init(base: Base) { self.base = base }

    /// Starts with the first length.
    @inlinable public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: base.makeAsyncIterator()) }

    /// Collects the bytes of one piece at a time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        @usableFromInline static var longestPiece: Int { 64 << 10 }

        @usableFromInline var base: Base.AsyncIterator
        /// The number of bytes of the message that are still to come.
        @usableFromInline var missing = 0

        @inlinable init(base: Base.AsyncIterator) { self.base = base }

        /// Returns the next piece; nil at the end.
        ///
        /// - Throws: the errors of the base sequence.
        @inlinable public mutating func next(isolation actor: isolated (any Actor)?) async throws -> [UInt8]? {
            var piece: [UInt8] = []
            if missing > 0 {
                let length = Swift.min(missing, Self.longestPiece)
                while piece.count < length, let byte = try await base.next(isolation: actor) {
                    piece.append(byte)
                }
                missing -= piece.count
            } else {
                while let byte = try await base.next(isolation: actor) {
                    piece.append(byte)
                    if byte < 0x80 || piece.count == longestPrefix { break }
                }
                missing = declaredLength(piece)
            }
            return piece.isEmpty ? nil : piece
        }

        /// Returns the next piece; nil at the end.
        ///
        /// - Throws: the errors of the base sequence.
        @inlinable public mutating func next() async throws -> [UInt8]? { try await next(isolation: nil) }
    }
}

extension FramePieces: Sendable where Base: Sendable {}

@usableFromInline let longestPrefix = Varint.maximumLength

/// The length in a prefix; 0 if it is not a prefix, which the decoder refuses.
@usableFromInline func declaredLength(_ prefix: [UInt8]) -> Int {
    prefix.withUnsafeBytes { if case .value(let length, _) = Varint.decode($0) { Int(length) } else { 0 } }
}
