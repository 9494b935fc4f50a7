package import LifelineCore

/// A framing whose frames have a head that says more than the length of the content.
///
/// Head and content follow each other without anything between them. What joins the chunks of a stream
/// (`HeadedFrameAssembler`) knows nothing else of the framing. A framing has no state, and a type of its own for each
/// side of a connection, so that which heads come and which go is known when code is compiled.
package protocol HeadedFraming: Sendable {
    /// What the peer's heads say.
    associatedtype InboundHead: Sendable
    /// What our heads say.
    associatedtype OutboundHead: Sendable

    /// The most bytes that a head may take, either way: what is held of one that is not complete.
    static var maximumHeadLength: Int { get }
    /// The most bytes that a content may have, either way, head excluded.
    var maximumContentLength: Int { get }

    /// Looks at the head at the start of `bytes`, and never past its end.
    ///
    /// A head is judged as soon as it is complete, so that a content over the limit is refused before a byte of it
    /// came.
    ///
    /// - Parameter scanned: how many of `bytes` were there when this last answered `incomplete`; 0 at first. They are
    ///   not searched again.
    /// - Throws: `FramingError`, when no bytes that may follow make this a head. After at most `maximumHeadLength`
    ///   bytes the answer is no longer `incomplete`.
    func decodeHead(in bytes: UnsafeRawBufferPointer, scanned: Int) throws(FramingError) -> HeadStep<InboundHead>

    /// How many bytes the head of a frame takes: at most `maximumHeadLength`.
    ///
    /// - Throws: `FramingError`: `payloadTooLarge`, or `invalidHead` when this framing cannot say what the head says.
    func headLength(of head: OutboundHead, contentLength: Int) throws(FramingError) -> Int

    /// Writes a head to `destination`, which must have room for `headLength` bytes, and returns how many it wrote.
    func writeHead(
        _ head: OutboundHead,
        contentLength: Int,
        into destination: UnsafeMutableRawBufferPointer
    ) throws(FramingError) -> Int
}

/// What stands at the start of a run of bytes.
package enum HeadStep<Head> {
    /// A whole head: what it says, how many bytes it takes, and how many bytes of content follow it.
    case head(Head, length: Int, contentLength: Int)
    /// The bytes end inside the head. At least `missing` more are needed.
    case incomplete(missing: Int)
}

extension HeadStep: Equatable where Head: Equatable {}

/// Takes the frames that a `HeadedFrameAssembler` completes.
package protocol HeadedFrameSink<Head> {
    associatedtype Head
    /// Takes one frame. The content is valid for the call only. What this throws ends the chunk.
    mutating func receive(head: Head, content: UnsafeRawBufferPointer) throws
}

extension HeadedFraming {
    /// Throws when a content to be sent is over the limit.
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
