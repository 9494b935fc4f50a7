internal import LifelineCore

/// What simulated peers send each other in a frame: a kind, a number and the user's bytes.
struct SimulatedMessage {
    enum Kind: UInt8 {
        case message, ping, pong
    }

    /// Kind and number.
    static let overhead = 9

    let kind: Kind
    let number: UInt64
    var payload: [UInt8] = []

    /// The frame, prefix included.
    func frame(_ encoder: FrameEncoder) throws(FramingError) -> [UInt8] {
        let length = SimulatedMessage.overhead + payload.count
        try encoder.checkPayload(ofLength: length)
        var frame = Varint.encoded(UInt64(length))
        frame.reserveCapacity(frame.count + length)
        frame.append(kind.rawValue)
        for shift in stride(from: 0, to: 64, by: 8) {
            frame.append(UInt8(truncatingIfNeeded: number &>> UInt64(shift)))
        }
        frame += payload
        return frame
    }

    init(kind: Kind, number: UInt64, payload: [UInt8] = []) {
        self.kind = kind
        self.number = number
        self.payload = payload
    }

    /// Nil when the bytes of a frame are no message.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= SimulatedMessage.overhead, let kind = Kind(rawValue: bytes[0]) else { return nil }
        self.kind = kind
        number = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 1, as: UInt64.self))
        payload = Array(bytes[SimulatedMessage.overhead...])
    }
}
