internal import LifelineCore
public import LifelineMessages

/// Decodes messages from a stream that arrives in pieces. Each message follows its length, a varint, as in what
/// `writeDelimitedTo` of Java and `serialize_delimited` of Python write.
///
///     var decoder = DelimitedMessageDecoder(of: Telemetry_Sample.self)
///     var samples: [Telemetry_Sample] = []
///     while let piece = nextPiece() {
///         try decoder.decode(piece, into: &samples)
///         …
///     }
///     try decoder.finish()
///
/// Decodes all messages of a piece at once: an empty message takes one byte of input and about 100 bytes of memory or
/// more. Keep pieces of untrusted bytes short, such as 64 KiB. Between pieces, a decoder keeps only the message that
/// has begun: at most twice its bytes so far, and a constant.
public struct DelimitedMessageDecoder<Decoded: DelimitedMessage>: Sendable {
    private var assembler: FrameAssembler
    private var place = StreamPlace()
    private var failure: DelimitedStreamError?
    private let partial: Bool
    private let options: DecodingOptions

    /// Makes a decoder at the start of a stream.
    ///
    /// - Parameters:
    ///   - type: the type of the messages: a generated one, or `RawMessage`.
    ///   - maximumFrameLength: the most bytes that an encoded message may have. A longer one is refused before its
    ///     memory is allocated. Values below 0 count as 0, and those above 2³²−1 as 2³²−1.
    ///   - partial: whether `required` fields may be absent.
    ///   - options: the limits of each message.
    public init(
        of type: Decoded.Type = Decoded.self,
        maximumFrameLength: Int = 4 << 20,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) {
        assembler = FrameAssembler(decoder: FrameDecoder(maximumFrameLength: maximumFrameLength))
        self.partial = partial
        self.options = options
    }

    /// The number of messages that were decoded.
    public var messageCount: Int { place.messageCount }

    /// The number of bytes of these messages, with their lengths: the offset of the next message.
    public var byteCount: Int { place.byteCount }

    /// Decodes the messages that `bytes` complete, and appends them.
    ///
    /// - Throws: `DelimitedStreamError`, at this call and all later ones. Messages before the one that failed are
    ///   appended.
    public mutating func decode(_ bytes: RawSpan, into messages: inout [Decoded]) throws(DelimitedStreamError) {
        _ = try decodePart(of: bytes, byteCount: .max, into: &messages)
    }

    /// Decodes the message that earlier bytes began, and those that begin within the next `byteCount` bytes.
    ///
    /// - Returns: the number of bytes that were taken. The next call must have the rest.
    @usableFromInline mutating func decodePart(
        of bytes: RawSpan,
        byteCount: Int,
        into messages: inout [Decoded]
    ) throws(DelimitedStreamError) -> Int {
        if let failure { throw failure }
        let limit = PartLimit(byteCount: byteCount)
        var sink = DecodingSink(messages: messages, place: place, partial: partial, options: options)
        // The sink must be the only owner, or the array is copied.
        messages = []
        do {
            defer { (messages, place) = (sink.messages, sink.place) }
            return try bytes.withUnsafeBytes { try assembler.receivePart(of: $0, limit: limit, into: &sink) }
        } catch {
            throw fail(error)
        }
    }

    /// Decodes the messages that `bytes` complete.
    ///
    /// - Throws: `DelimitedStreamError`, at this call and all later ones. Messages before the one that failed are lost:
    ///   see `decode(_:into:)`.
    @inlinable public mutating func decode(_ bytes: some Sequence<UInt8>) throws(DelimitedStreamError) -> [Decoded] {
        var messages: [Decoded] = []
        try decode(bytes, into: &messages)
        return messages
    }

    /// Decodes the messages that `bytes` complete, and appends them. See `decode(_:into:)` of a span.
    @inlinable public mutating func decode(
        _ bytes: some Sequence<UInt8>,
        into messages: inout [Decoded]
    ) throws(DelimitedStreamError) {
        let result: Result<Void, DelimitedStreamError>? = bytes.withContiguousStorageIfAvailable { bytes in
            do throws(DelimitedStreamError) {
                return .success(try decode(bytes.span.bytes, into: &messages))
            } catch {
                return .failure(error)
            }
        }
        if let result { return try result.get() }
        try decode(Array(bytes).span.bytes, into: &messages)
    }

    /// Checks that the stream may end here.
    ///
    /// - Throws: `DelimitedStreamError` inside a message, or when decoding has failed before.
    public mutating func finish() throws(DelimitedStreamError) {
        if let failure { throw failure }
        do throws(FramingError) {
            try assembler.finish()
        } catch {
            throw fail(error)
        }
    }

    /// Returns the error that all later calls throw.
    mutating func fail(_ cause: any Error) -> DelimitedStreamError {
        let error = DelimitedStreamError(messageIndex: place.messageCount, byteOffset: place.byteCount, cause: cause)
        failure = error
        return error
    }
}

/// A place between two messages of a stream.
struct StreamPlace {
    /// The number of messages before it.
    var messageCount = 0
    /// The number of their bytes, with their lengths.
    var byteCount = 0
}

/// Decodes frames, and counts those that were messages.
private struct DecodingSink<Decoded: DelimitedMessage>: FrameRunSink {
    var messages: [Decoded]
    var place: StreamPlace
    let partial: Bool
    let options: DecodingOptions

    mutating func receive(_ run: FrameRun) throws {
        let before = messages.count
        var decoded = run.makeIterator()
        defer {
            for _ in before..<messages.count { place.byteCount += decoded.skip() ?? 0 }
            place.messageCount += messages.count - before
        }
        try run.withPayloads { try Decoded.decode($0, into: &messages, partial: partial, options: options) }
    }
}
