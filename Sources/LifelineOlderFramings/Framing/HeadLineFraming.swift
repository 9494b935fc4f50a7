package import LifelineCore

/// Frames with a head line: a JSON object with a `type` and a `size`, CRLF, then `size` bytes of content. Both
/// directions have the same form:
///
///     {"type":"greeting","size":5}\r\n
///     hello
///
/// The strict rules for a head:
/// - One JSON object by RFC 8259, in valid UTF-8 without a byte order mark, at most 4 KiB with its CRLF. Space and tab
///   are allowed where JSON has white space. A line feed only ends the head, so no byte of it is searched twice.
/// - `type` is a string, `size` a number of decimal digits, or a string of them, without sign, point, exponent or
///   leading zeros. Both are required.
/// - Other members are checked and skipped, because they are not used here. Their values may be nested 32 deep.
/// - No two members have the same name, in any escaped form. (Within skipped values this is not checked.)
/// - Strings with half a surrogate pair are refused, because they are not text.
///
/// The head does not identify the request that a frame answers. That follows from the order, see `AnswerMatching`.
package struct HeadLineFraming: HeadedFraming {
    /// The most bytes of a content in either direction, head excluded.
    package let maximumContentLength: Int

    /// Makes a framing. A limit below 0 counts as 0, one over 2³²−1 as that, as for the other framings.
    package init(maximumContentLength: Int) {
        self.maximumContentLength = FrameDecoder.clamped(maximumContentLength)
    }

    package static var maximumHeadLength: Int { 4096 }

    package func decodeHead(
        in bytes: UnsafeRawBufferPointer,
        scanned: Int
    ) throws(FramingError) -> HeadStep<HeadLine> {
        // Fail at once, rather than after 4 KiB, when the peer uses another protocol.
        if scanned == 0, let first = bytes.first, first != UInt8(ascii: "{"), !HeadLineReader.isSpace(first) {
            throw .malformedHead("there is no JSON object", at: 0)
        }
        let end = min(bytes.count, Self.maximumHeadLength)
        var index = scanned
        while index < end, bytes[index] != UInt8(ascii: "\n") { index += 1 }
        guard index < end else {
            if end == Self.maximumHeadLength { throw .headTooLarge(limit: end) }
            return .incomplete(missing: 1)
        }
        guard index > 0, bytes[index - 1] == UInt8(ascii: "\r") else {
            throw .malformedHead("the line does not end with CRLF", at: index)
        }
        var reader = HeadLineReader(UnsafeRawBufferPointer(rebasing: bytes[..<(index - 1)]))
        let (type, size) = try reader.read()
        try checkDeclared(size)
        return .head(HeadLine(type: type), length: index + 1, contentLength: size)
    }

    package func headLength(of head: HeadLine, contentLength: Int) throws(FramingError) -> Int {
        try checkContent(ofLength: contentLength)
        let length = head.writtenLength(contentLength: contentLength)
        guard length <= Self.maximumHeadLength else {
            throw .invalidHead("A type of \(head.type.utf8.count) bytes does not fit into a head line. Shorten it.")
        }
        return length
    }

    package func writeHead(
        _ head: HeadLine,
        contentLength: Int,
        into destination: UnsafeMutableRawBufferPointer
    ) throws(FramingError) -> Int {
        let length = try headLength(of: head, contentLength: contentLength)
        head.write(contentLength: contentLength, into: destination)
        return length
    }
}
