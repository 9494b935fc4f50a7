internal import LifelineCore

extension SessionGoodbye {
    /// Parses the message of a goodbye.
    ///
    /// - Throws: `.undecodable` for malformed protobuf, and for a text that is not UTF-8
    package init(parsing body: UnsafeRawBufferPointer) throws(SessionViolation) {
        var (code, pause) = (UInt32(0), UInt64(0))
        var message = UnsafeRawBufferPointer(start: nil, count: 0)
        var reader = FieldReader(body)
        while let tag = reader.next() {
            switch tag {
            case .varint(1): code = reader.uint32()
            case .delimited(2): message = try reader.text()
            case .varint(3): pause = reader.varint()
            default: reader.skip(tag)
            }
        }
        try reader.finish()
        self.init(
            Code(rawValue: code),
            String(decoding: message, as: UTF8.self),
            pause: Duration(wireMilliseconds: pause)
        )
    }

    /// Appends the frame with its length prefix.
    package func write(to bytes: inout [UInt8]) {
        FieldWriter.appendFrame(.goodbye, to: &bytes) { body in
            FieldWriter.appendField(1, UInt64(code?.rawValue ?? 0), to: &body)
            if !message.isEmpty { FieldWriter.appendField(2, message, to: &body) }
            FieldWriter.appendField(3, pause.wireMilliseconds, to: &body)
        }
    }
}

/// A ping or a pong.
package enum HeartbeatFrame {
    /// Parses the number of a ping or pong.
    ///
    /// - Throws: `.undecodable` for malformed protobuf
    package static func number(parsing body: UnsafeRawBufferPointer) throws(SessionViolation) -> UInt64 {
        var number: UInt64 = 0
        var reader = FieldReader(body)
        while let tag = reader.next() {
            switch tag {
            case .varint(1): number = reader.varint()
            default: reader.skip(tag)
            }
        }
        try reader.finish()
        return number
    }

    /// Appends a ping or pong with its length prefix.
    package static func write(kind: FrameKind, number: UInt64, to bytes: inout [UInt8]) {
        precondition(kind == .ping || kind == .pong, "the kind is no heartbeat")
        FieldWriter.appendFrame(kind, to: &bytes) { FieldWriter.appendField(1, number, to: &$0) }
    }
}

extension Duration {
    /// Makes a duration from a number on the wire. More than 365 days count as 365 days.
    init(wireMilliseconds: UInt64) {
        self = min(.milliseconds(Int64(clamping: wireMilliseconds)), .longest)
    }

    /// Whole milliseconds, rounded up; 0 for a negative duration.
    var wireMilliseconds: UInt64 {
        let nanoseconds = UInt64(max(saturatedNanoseconds, 0))
        return nanoseconds / 1_000_000 + (nanoseconds % 1_000_000 == 0 ? 0 : 1)
    }
}
