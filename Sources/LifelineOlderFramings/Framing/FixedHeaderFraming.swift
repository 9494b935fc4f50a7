package import LifelineCore

/// Frames with a header of fixed big-endian fields. `FixedHeader` describes and draws them.
package struct FixedHeaderFraming<InboundHead: FixedHeaderFields, OutboundHead: FixedHeaderFields>: HeadedFraming {
    /// The most bytes of a content in either direction, header excluded.
    package let maximumContentLength: Int

    /// Makes a framing. A limit below 0 counts as 0, one that a header cannot declare as 2³²−1.
    package init(maximumContentLength: Int) {
        self.maximumContentLength = FrameDecoder.clamped(maximumContentLength)
    }

    private static var lengthByteCount: Int { 4 }

    package static var maximumHeadLength: Int { max(InboundHead.byteCount, OutboundHead.byteCount) + lengthByteCount }

    package func decodeHead(
        in bytes: UnsafeRawBufferPointer,
        scanned: Int
    ) throws(FramingError) -> HeadStep<InboundHead> {
        let headLength = InboundHead.byteCount + Self.lengthByteCount
        guard bytes.count >= headLength else { return .incomplete(missing: headLength - bytes.count) }
        let contentLength = Int(bytes.bigEndian(at: InboundHead.byteCount))
        try checkDeclared(contentLength)
        return .head(InboundHead(bytes), length: headLength, contentLength: contentLength)
    }

    package func headLength(of head: OutboundHead, contentLength: Int) throws(FramingError) -> Int {
        try checkContent(ofLength: contentLength)
        try head.checkSendable()
        return OutboundHead.byteCount + Self.lengthByteCount
    }

    package func writeHead(
        _ head: OutboundHead,
        contentLength: Int,
        into destination: UnsafeMutableRawBufferPointer
    ) throws(FramingError) -> Int {
        let length = try headLength(of: head, contentLength: contentLength)
        head.write(into: destination)
        destination.storeBigEndian(UInt32(contentLength), at: OutboundHead.byteCount)
        return length
    }
}

extension FixedHeader {
    /// A client sends requests and receives responses.
    package typealias ClientFraming = FixedHeaderFraming<Response, Request>
    /// A server receives requests and sends responses.
    package typealias ServerFraming = FixedHeaderFraming<Request, Response>
}
