internal import LifelineCore

/// The content of a frame between simulated peers: a kind, a number and the user's bytes.
package struct SimulatedMessage {
    package enum Kind: UInt8 {
        case message, ping, pong
    }

    /// Kind and number.
    package static let overhead = 9

    package let kind: Kind
    package let number: UInt64
    package var payload: [UInt8] = []

    /// The frame, prefix included.
    func frame(_ encoder: FrameEncoder) throws(FramingError) -> [UInt8] {
        let length = SimulatedMessage.overhead + payload.count
        try encoder.checkPayload(ofLength: length)
        return Varint.encoded(UInt64(length)) + bytes
    }

    /// The frame without its prefix.
    package var bytes: [UInt8] {
        var bytes = [kind.rawValue]
        bytes.reserveCapacity(SimulatedMessage.overhead + payload.count)
        for shift in stride(from: 0, to: 64, by: 8) {
            bytes.append(UInt8(truncatingIfNeeded: number &>> UInt64(shift)))
        }
        return bytes + payload
    }

    package init(kind: Kind, number: UInt64, payload: [UInt8] = []) {
        self.kind = kind
        self.number = number
        self.payload = payload
    }

    /// Nil if the bytes of a frame are not a message.
    package init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= SimulatedMessage.overhead, let kind = Kind(rawValue: bytes[0]) else { return nil }
        self.kind = kind
        number = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 1, as: UInt64.self))
        payload = Array(bytes[SimulatedMessage.overhead...])
    }
}
