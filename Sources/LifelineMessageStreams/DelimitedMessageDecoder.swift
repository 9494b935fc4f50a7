internal import LifelineCore
public import LifelineMessages

/// Cuts bytes that come piece by piece into messages: each of them stands behind its length as a varint, as
/// `writeDelimitedTo` of Java and `serialize_delimited` of Python write them.
///
///     var decoder = DelimitedMessageDecoder(of: Telemetry_Sample.self)
///     while let piece = nextPiece() {
///         for sample in try decoder.decode(piece) { … }
///     }
///     try decoder.finish()
///
/// It keeps only the message that has begun: at most twice the bytes of it that have come, and a constant.
public struct DelimitedMessageDecoder<Decoded: DelimitedMessage>: Sendable {
    private var assembler: FrameAssembler
    private var place = StreamPlace()
    private var failure: DelimitedStreamError?
    private let partial: Bool
    private let options: DecodingOptions

    /// Makes a decoder at the start of a stream.
    ///
    /// - Parameters:
    ///   - type: what the stream's messages are: a generated type, or `RawMessage`.
    ///   - maximumFrameLength: the most bytes that an encoded message may have. A longer one is refused before its
    ///     memory is allocated.
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

    /// How many messages were decoded.
    public var messageCount: Int { place.messageCount }

    /// How many bytes these had, with their lengths: where the next message begins.
    public var byteCount: Int { place.byteCount }

    /// Decodes the messages that `bytes` complete, and appends them.
    ///
    /// - Throws: `DelimitedStreamError`, at this call and all later ones. Messages before the one that failed are
    ///   appended.
    public mutating func decode(_ bytes: RawSpan, into messages: inout [Decoded]) throws(DelimitedStreamError) {
        if let failure { throw failure }
        var sink = DecodingSink(messages: messages, place: place, partial: partial, options: options)
        // The sink is to be the only owner, or the array is copied.
        messages = []
        defer { (messages, place) = (sink.messages, sink.place) }
        do {
            try bytes.withUnsafeBytes { try assembler.receive($0, into: &sink) }
        } catch {
            throw fail(sink.place, error)
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
            throw fail(place, error)
        }
    }

    private mutating func fail(_ place: StreamPlace, _ cause: any Error) -> DelimitedStreamError {
        let error = DelimitedStreamError(messageIndex: place.messageCount, byteOffset: place.byteCount, cause: cause)
        failure = error
        return error
    }
}

/// A place between two messages of a stream.
struct StreamPlace {
    /// How many messages stand before it.
    var messageCount = 0
    /// How many bytes they have, with their lengths.
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
