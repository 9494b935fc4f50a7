/// A whole WebSocket message as a Lifeline frame: the payload is a byte for its kind, and the message's bytes. It
/// exists only between the layer and the connection's user, never on the wire.
package enum WebSocketMessageFrame {
    package static let text: UInt8 = 1
    package static let binary: UInt8 = 2

    /// Returns the bytes before those of a message: the frame's prefix and the kind.
    package static func head(of kind: WebSocketStateMachine.Kind, byteCount: Int) -> [UInt8] {
        Varint.encoded(UInt64(UInt32(clamping: byteCount + 1))) + [kind == .text ? text : binary]
    }

    /// Returns the position of the next message in bytes of whole frames.
    package static func next(
        in bytes: UnsafeRawBufferPointer
    ) -> (kind: WebSocketStateMachine.Kind, headLength: Int, byteCount: Int)? {
        guard case .value(let length, let prefixLength) = Varint.decode(bytes), length > 0,
            prefixLength + Int(length) <= bytes.count
        else { return nil }
        return (bytes[prefixLength] == text ? .text : .binary, prefixLength + 1, Int(length) - 1)
    }
}
