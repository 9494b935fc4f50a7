package import LifelineCore

/// A framing whose frames have a head with more than the length of the content.
///
/// Head and content follow each other without anything between them. `HeadedFrameAssembler`, which joins the chunks of
/// a stream, uses nothing else of the framing. A framing has no state, and a separate type for each side of a
/// connection, so that the types of heads are known at compile time.
package protocol HeadedFraming: Sendable {
    /// The content of the peer's heads.
    associatedtype InboundHead: Sendable
    /// The content of this side's heads.
    associatedtype OutboundHead: Sendable

    /// The most bytes of a head in either direction, which bounds the memory for an incomplete one.
    static var maximumHeadLength: Int { get }
    /// The most bytes of a content in either direction, head excluded.
    var maximumContentLength: Int { get }

    /// Decodes the head at the start of `bytes`, and never reads past its end.
    ///
    /// A head is checked as soon as it is complete, so that a content over the limit is refused before a byte of it
    /// arrives.
    ///
    /// - Parameter scanned: the number of bytes when this last returned `incomplete`; 0 at first. They are not searched
    ///   again.
    /// - Throws: `FramingError`, when no bytes that may follow make this a head. After at most `maximumHeadLength`
    ///   bytes the result is no longer `incomplete`.
    func decodeHead(in bytes: UnsafeRawBufferPointer, scanned: Int) throws(FramingError) -> HeadStep<InboundHead>

    /// Returns the length of a frame's head, at most `maximumHeadLength`.
    ///
    /// - Throws: `FramingError`: `payloadTooLarge`, or `invalidHead` when this framing cannot express the head.
    func headLength(of head: OutboundHead, contentLength: Int) throws(FramingError) -> Int

    /// Writes a head to `destination`, which must have room for `headLength` bytes, and returns the number of bytes
    /// written.
    func writeHead(
        _ head: OutboundHead,
        contentLength: Int,
        into destination: UnsafeMutableRawBufferPointer
    ) throws(FramingError) -> Int
}

/// The result of decoding a head.
package enum HeadStep<Head> {
    /// A whole head, with its length, and the length of the content after it.
    case head(Head, length: Int, contentLength: Int)
    /// The bytes end inside the head. At least `missing` more are needed.
    case incomplete(missing: Int)
}

extension HeadStep: Equatable where Head: Equatable {}

/// Receives the frames that a `HeadedFrameAssembler` completes.
package protocol HeadedFrameSink<Head> {
    associatedtype Head
    /// Receives one frame. The content is valid only during the call. An error ends the chunk.
    mutating func receive(head: Head, content: UnsafeRawBufferPointer) throws
}

extension HeadedFraming {
    /// Throws when an outgoing content is over the limit.
    func checkContent(ofLength length: Int) throws(FramingError) {
        guard length <= maximumContentLength else {
            throw .payloadTooLarge(length: length, limit: maximumContentLength)
        }
    }

    /// Throws when a head declares a content over the limit.
    func checkDeclared(_ length: Int) throws(FramingError) {
        guard length <= maximumContentLength else {
            throw .frameTooLarge(declaredLength: length, limit: maximumContentLength)
        }
    }
}
