package import LifelineCore

/// A head in the form that precedes the content in Lifeline's own frames. This form exists between the layer of an
/// older framing and the connection's user, and never on the wire.
package protocol CarriedHead: Sendable {
    /// The most bytes of the form. The frame limit, which applies to the content, does not count them.
    static var maximumCarriedLength: Int { get }
    /// The number of bytes of the form.
    var carriedLength: Int { get }
    /// Returns the number of bytes of the form at the start of a frame's payload; all of the payload when it has no
    /// whole form.
    static func carriedLength(in payload: UnsafeRawBufferPointer) -> Int
    /// Writes the form to `destination`, which has room for it.
    ///
    /// - Parameter tag: the number of the request that this frame makes; 0 for none.
    func writeCarried(tag: UInt32, into destination: UnsafeMutableRawBufferPointer)
    /// Reads the form from the start of a frame's payload; nil when it is malformed.
    static func carried(in payload: UnsafeRawBufferPointer) -> (head: Self, tag: UInt32, length: Int)?
}

/// Lifeline's own frames with such heads.
package enum CarriedFrame {
    /// The most bytes of a content, so that the length of any frame with it fits into a prefix.
    package static let maximumContentLength = Int(UInt32.max) - HeadLine.maximumCarriedLength

    /// Returns a whole frame, prefix included.
    ///
    /// - Throws: `FramingError` `payloadTooLarge`, when its length does not fit into a prefix.
    package static func bytes(
        head: some CarriedHead,
        tag: UInt32 = 0,
        content: [UInt8]
    ) throws(FramingError) -> [UInt8] {
        let headLength = head.carriedLength
        guard content.count <= maximumContentLength, let length = UInt32(exactly: headLength + content.count) else {
            throw .payloadTooLarge(length: content.count, limit: maximumContentLength)
        }
        let prefixLength = Varint.encodedLength(of: UInt64(length))
        return Array(unsafeUninitializedCapacity: prefixLength + Int(length)) { buffer, count in
            let bytes = UnsafeMutableRawBufferPointer(buffer)
            Varint.encode(UInt64(length), into: bytes)
            head.writeCarried(tag: tag, into: UnsafeMutableRawBufferPointer(rebasing: bytes[prefixLength...]))
            UnsafeMutableRawBufferPointer(rebasing: bytes[(prefixLength + headLength)...]).copyBytes(from: content)
            count = prefixLength + Int(length)
        }
    }

    /// Returns the range of the next frame's payload in bytes of whole frames; nil when there is none.
    package static func nextPayload(in bytes: UnsafeRawBufferPointer, from offset: Int) -> Range<Int>? {
        guard case .value(let length, let prefixLength) = Varint.decode(bytes, at: offset) else { return nil }
        let start = offset + prefixLength
        return bytes.count - start < Int(length) ? nil : start..<(start + Int(length))
    }
}

extension FixedHeader.Request: CarriedHead {
    package static func carried(
        in payload: UnsafeRawBufferPointer
    ) -> (head: FixedHeader.Request, tag: UInt32, length: Int)? {
        guard payload.count >= byteCount else { return nil }
        let head = FixedHeader.Request(payload)
        // The serial is the request's number.
        return (head, head.meaning == .request ? head.serial : 0, byteCount)
    }
}

extension FixedHeader.Response: CarriedHead {
    package static func carried(
        in payload: UnsafeRawBufferPointer
    ) -> (head: FixedHeader.Response, tag: UInt32, length: Int)? {
        payload.count < byteCount ? nil : (FixedHeader.Response(payload), 0, byteCount)
    }
}

extension CarriedHead where Self: FixedHeaderFields {
    package static var maximumCarriedLength: Int { byteCount }
    package var carriedLength: Int { Self.byteCount }
    package static func carriedLength(in payload: UnsafeRawBufferPointer) -> Int { min(payload.count, byteCount) }

    package func writeCarried(tag: UInt32, into destination: UnsafeMutableRawBufferPointer) {
        write(into: destination)
    }
}

/// The form: the tag, the length of the type in 16 bits, and the type.
extension HeadLine: CarriedHead {
    private static var beforeType: Int { 6 }
    package static var maximumCarriedLength: Int { beforeType + HeadLineFraming.maximumHeadLength }
    package var carriedLength: Int { Self.beforeType + type.utf8.count }

    package static func carriedLength(in payload: UnsafeRawBufferPointer) -> Int {
        guard payload.count >= beforeType else { return payload.count }
        let typeLength = UInt16(bigEndian: payload.loadUnaligned(fromByteOffset: 4, as: UInt16.self))
        return min(payload.count, beforeType + Int(typeLength))
    }

    package func writeCarried(tag: UInt32, into destination: UnsafeMutableRawBufferPointer) {
        destination.storeBigEndian(tag, at: 0)
        // A type that fits into a head line is far shorter.
        destination.storeBytes(of: UInt16(clamping: type.utf8.count).bigEndian, toByteOffset: 4, as: UInt16.self)
        UnsafeMutableRawBufferPointer(rebasing: destination[Self.beforeType...]).copyBytes(from: type.utf8)
    }

    package static func carried(
        in payload: UnsafeRawBufferPointer
    ) -> (head: HeadLine, tag: UInt32, length: Int)? {
        guard payload.count >= beforeType else { return nil }
        let typeLength = Int(UInt16(bigEndian: payload.loadUnaligned(fromByteOffset: 4, as: UInt16.self)))
        let length = beforeType + typeLength
        guard payload.count >= length else { return nil }
        let text = UnsafeRawBufferPointer(rebasing: payload[beforeType..<length])
        guard let type = String(validating: text, as: UTF8.self) else { return nil }
        return (HeadLine(type: type), payload.bigEndian(at: 0), length)
    }
}
