internal import CLifelineNetlink

// Every bound is checked first, to throw an error where the span itself would trap.
extension RawSpan {
    /// Returns the structure at the beginning; nil when there are too few bytes. `Value` must have no invalid bit
    /// patterns.
    package func loadNetlink<Value: BitwiseCopyable>(_: Value.Type, at offset: Int = 0) -> Value? {
        guard offset >= 0, byteCount >= MemoryLayout<Value>.size, offset <= byteCount - MemoryLayout<Value>.size else {
            return nil
        }
        return unsafeLoadUnaligned(fromByteOffset: offset, as: Value.self)
    }

    /// Calls `body` for each message of a datagram.
    package func forEachNetlinkMessage(
        _ body: (_ header: NetlinkHeader, _ payload: RawSpan) throws(NetlinkError) -> Void
    ) throws(NetlinkError) {
        var offset = 0
        while offset < byteCount {
            guard let header = loadNetlink(nlmsghdr.self, at: offset) else { throw .truncatedHeader }
            let length = Int(header.nlmsg_len)
            guard length >= netlinkHeaderSize, length <= byteCount - offset else {
                throw .invalidMessageLength(header.nlmsg_len)
            }
            let payload = extracting((offset + netlinkHeaderSize)..<(offset + length))
            try body(NetlinkHeader(header), payload)
            offset += netlinkAligned(length)
        }
    }

    /// Calls `body` for each attribute from `start`, which is the size of the structure before them.
    package func forEachNetlinkAttribute(
        from start: Int = 0,
        _ body: (_ type: UInt16, _ value: RawSpan) throws(NetlinkError) -> Void
    ) throws(NetlinkError) {
        var offset = netlinkAligned(start)
        while offset < byteCount {
            guard let header = loadNetlink(nlattr.self, at: offset) else {
                throw .invalidAttributeLength(UInt16(clamping: byteCount - offset))
            }
            let length = Int(header.nla_len)
            guard length >= MemoryLayout<nlattr>.size, length <= byteCount - offset else {
                throw .invalidAttributeLength(header.nla_len)
            }
            // Two bits of the type are flags: nested, network byte order.
            let type = header.nla_type & LIFELINE_NLA_TYPE_MASK
            try body(type, extracting((offset + MemoryLayout<nlattr>.size)..<(offset + length)))
            offset += netlinkAligned(length)
        }
    }

    /// Returns the number in an attribute.
    package func netlinkNumber<Number: FixedWidthInteger & BitwiseCopyable>(
        _: Number.Type,
        ofAttribute type: UInt16
    ) throws(NetlinkError) -> Number {
        guard byteCount == MemoryLayout<Number>.size, let number = loadNetlink(Number.self) else {
            throw .invalidAttribute(type: type)
        }
        return number
    }

    /// Returns the text in an attribute, up to its NUL. Invalid UTF-8 is replaced.
    package func netlinkText(ofAttribute type: UInt16, maximumLength: Int) throws(NetlinkError) -> String {
        var bytes: [UInt8] = []
        for index in 0..<byteCount {
            let byte = unsafeLoad(fromByteOffset: index, as: UInt8.self)
            if byte == 0 { break }
            guard bytes.count < maximumLength else { throw .invalidAttribute(type: type) }
            bytes.append(byte)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Returns the address in an attribute.
    package func netlinkAddress(
        _ version: IPAddress.Version,
        ofAttribute type: UInt16
    ) throws(NetlinkError) -> IPAddress {
        guard let address = IPAddress(version: version, bytes: self) else { throw .invalidAttribute(type: type) }
        return address
    }
}

/// The header of each message.
package struct NetlinkHeader: Hashable, Sendable {
    /// The type of the message: one of the kernel's `RTM_…` and `NLMSG_…`.
    package let type: UInt16
    /// The kernel's `NLM_F_…`.
    package let flags: UInt16
    /// The number of the request that it answers.
    package let sequence: UInt32
    /// The socket whose request it answers; 0 for an event without a request.
    package let port: UInt32

    init(_ header: nlmsghdr) {
        (type, flags) = (header.nlmsg_type, header.nlmsg_flags)
        (sequence, port) = (header.nlmsg_seq, header.nlmsg_pid)
    }

    /// Whether something changed during a dump, so that it may be incomplete.
    package var isInterrupted: Bool { flags & UInt16(NLM_F_DUMP_INTR) != 0 }
}

let netlinkHeaderSize = MemoryLayout<nlmsghdr>.size

/// Messages and attributes begin at multiples of four.
func netlinkAligned(_ length: Int) -> Int { (length + 3) & ~3 }

extension IPAddress.Version {
    /// Makes a version from an address family; nil for other protocols.
    init?(family: UInt8) {
        // AF_INET and AF_INET6, which are part of the kernel's interface on every architecture.
        switch family {
        case 2: self = .v4
        case 10: self = .v6
        default: return nil
        }
    }

    var family: UInt8 { self == .v4 ? 2 : 10 }
}
