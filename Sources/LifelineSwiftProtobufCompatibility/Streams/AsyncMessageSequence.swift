internal import LifelineCore
internal import LifelineMessageStreams
internal import LifelineMessages

extension AsyncSequence where Element == UInt8 {
    /// The messages in these bytes, each after its length.
    ///
    /// - Parameters:
    ///   - messageType: The type of the messages.
    ///   - extensions: Extensions to check.
    ///   - partial: Whether proto2 `required` fields may be absent.
    ///   - options: The limits of each message.
    public func binaryProtobufDelimitedMessages<M: SwiftProtobufMessage>(
        of messageType: M.Type = M.self,
        extensions: (any ExtensionMap)? = nil,
        partial: Bool = false,
        options: BinaryDecodingOptions = BinaryDecodingOptions()
    ) -> AsyncMessageSequence<Self, M> {
        AsyncMessageSequence(base: self, extensions: extensions, partial: partial, options: options)
    }
}

/// The messages in a sequence of bytes, each after its length.
public struct AsyncMessageSequence<Base: AsyncSequence, M: SwiftProtobufMessage>: AsyncSequence
where Base.Element == UInt8 {
    public typealias Element = M

    private let base: Base
    private let extensions: (any ExtensionMap)?
    private let partial: Bool
    private let options: BinaryDecodingOptions

    /// Makes a sequence of the messages in `base`, an asynchronous sequence of bytes.
    public init(
        base: Base,
        extensions: (any ExtensionMap)? = nil,
        partial: Bool = false,
        options: BinaryDecodingOptions = BinaryDecodingOptions()
    ) {
        (self.base, self.extensions, self.partial, self.options) = (base, extensions, partial, options)
    }

    public func makeAsyncIterator() -> AsyncIterator {
        let frames = base.delimitedMessages(of: RawMessage.self, maximumFrameLength: Int(Int32.max))
        return AsyncIterator(frames: frames.makeAsyncIterator()) { [extensions, partial, options] in
            try M(serializedBytes: $0, extensions: extensions, partial: partial, options: options)
        }
    }

    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate typealias Frames = DelimitedMessageSequence<FramePieces<Base>, RawMessage>

        private var frames: Frames.AsyncIterator?
        private let decode: ([UInt8]) throws -> M

        fileprivate init(frames: Frames.AsyncIterator, decode: @escaping ([UInt8]) throws -> M) {
            (self.frames, self.decode) = (frames, decode)
        }

        /// Returns the next message; nil at the end.
        ///
        /// - Throws: `SwiftProtobufError`, `BinaryDelimited.Error`, `BinaryDecodingError`, or an error of the base
        ///   sequence.
        public mutating func next() async throws -> M? {
            do {
                guard let frame = try await frames?.next() else {
                    frames = nil
                    return nil
                }
                return try decode(frame.bytes)
            } catch let error as DelimitedStreamError {
                frames = nil
                throw Self.error(for: error)
            }
        }

        /// The error of swift-protobuf in place of one of Lifeline's.
        private static func error(for error: DelimitedStreamError) -> any Error {
            switch (error.cause as? FramingError)?.code {
            case .truncatedFrame: BinaryDelimited.Error.truncated
            case .frameTooLarge: SwiftProtobufError.BinaryDecoding.tooLarge()
            default: SwiftProtobufError.BinaryStreamDecoding.malformedLength()
            }
        }
    }
}

extension AsyncMessageSequence: Sendable where Base: Sendable {}

@available(*, unavailable)
extension AsyncMessageSequence.AsyncIterator: Sendable {}
