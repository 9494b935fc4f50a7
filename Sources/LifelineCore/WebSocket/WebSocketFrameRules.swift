/// The rules for the header of each frame (RFC 6455, section 5.2) that do not depend on earlier frames.
package struct WebSocketFrameRules: Sendable {
    /// The role of this side.
    package let role: WebSocketStateMachine.Role
    /// Whether the user receives messages, so that text is accepted.
    package let receivesMessages: Bool

    package init(role: WebSocketStateMachine.Role, receivesMessages: Bool) {
        self.role = role
        self.receivesMessages = receivesMessages
    }

    /// Checks a header's first byte, and the second one if it is known.
    func check(_ first: UInt8, _ second: UInt8?) throws(WebSocketClosure) {
        if first & 0x70 != 0 { throw .protocolError("a reserved bit is set, and no extension was agreed on") }
        let isControl = first & 0x08 != 0
        switch first & 0x0F {
        case 0x0, 0x2, 0x8...0xA: break
        case 0x1: if !receivesMessages { throw .textWhereFramesAreTaken }
        default: throw .protocolError("a \(isControl ? "control " : "")frame has a reserved opcode")
        }
        if isControl, first & 0x80 == 0 { throw .protocolError("a control frame is fragmented") }
        guard let second else { return }
        if (second & 0x80 != 0) != (role == .server) {
            throw .protocolError(role == .server ? "a client's frame is not masked" : "a server's frame is masked")
        }
        if isControl, second & 0x7F > 125 { throw .protocolError("a control frame is too long") }
    }
}

/// Reads the headers of frames byte by byte, so that an invalid frame is refused at its first bytes, and not after its
/// payload. It also checks the number of bytes of a length, which the codec does not report.
package struct WebSocketHeaderChecker {
    /// The received part of a header.
    private struct Header {
        var byteCount = 0
        var first: UInt8 = 0
        var second: UInt8 = 0
        var length: UInt64 = 0

        /// The number of bytes of the length after the second byte.
        var lengthByteCount: Int {
            switch second & 0x7F {
            case 126: 2
            case 127: 8
            default: 0
            }
        }
        var lengthEnd: Int { 2 + lengthByteCount }
        var end: Int { lengthEnd + (second & 0x80 != 0 ? 4 : 0) }
    }

    private enum State {
        /// Can go to: payload, violated.
        case header(Header)
        /// Has the number of bytes until the next header. Can go to: header.
        case payload(UInt64)
        /// Can go to: no other state.
        case violated
    }

    private let rules: WebSocketFrameRules
    private var state = State.header(Header())

    package init(_ rules: WebSocketFrameRules) {
        self.rules = rules
    }

    /// Checks received bytes.
    ///
    /// - Returns: the number of valid bytes, and the error of the next one; nil when all are valid.
    package mutating func check(_ bytes: UnsafeRawBufferPointer) -> (validCount: Int, violation: WebSocketClosure?) {
        var position = 0
        do throws(WebSocketClosure) {
            while position < bytes.count {
                switch state {
                case .violated:
                    return (position, nil)
                case .payload(let count):
                    let step = Int(clamping: min(count, UInt64(bytes.count - position)))
                    position += step
                    state = count == UInt64(step) ? .header(Header()) : .payload(count - UInt64(step))
                case .header(var header):
                    try take(bytes[position], into: &header)
                    position += 1
                    let isWhole = header.byteCount >= 2 && header.byteCount == header.end
                    state =
                        isWhole && header.length > 0 ? .payload(header.length) : .header(isWhole ? Header() : header)
                }
            }
            return (position, nil)
        } catch {
            state = .violated
            return (position, error)
        }
    }

    private func take(_ byte: UInt8, into header: inout Header) throws(WebSocketClosure) {
        switch header.byteCount {
        case 0:
            try rules.check(byte, nil)
            header.first = byte
        case 1:
            try rules.check(header.first, byte)
            header.second = byte
            if header.lengthByteCount == 0 { header.length = UInt64(byte & 0x7F) }
        case 2..<header.lengthEnd:
            header.length = header.length << 8 | UInt64(byte)
            if header.byteCount + 1 == header.lengthEnd { try check(header.length, header.lengthByteCount) }
        // A byte of the masking key.
        default: break
        }
        header.byteCount += 1
    }

    private func check(_ length: UInt64, _ byteCount: Int) throws(WebSocketClosure) {
        if length <= (byteCount == 2 ? 125 : 0xFFFF) {
            throw .protocolError("a length is written in more bytes than it needs")
        }
        if length > Int64.max { throw .protocolError("a length has its highest bit set") }
    }
}
