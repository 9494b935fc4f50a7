package import LifelineCore
package import LifelineMessages
package import LifelineTransport

/// A framing that a peer uses instead of delimited messages.
package struct MessageFraming: Sendable {
    /// The most bytes that the head of a peer's frame takes on the wire.
    let maximumHeadLength: Int
    /// Makes the layer that reads and writes this framing.
    let layer: @Sendable (_ maximumFrameLength: Int) -> any ChannelLayer

    package init(
        maximumHeadLength: Int,
        layer: @escaping @Sendable (_ maximumFrameLength: Int) -> any ChannelLayer
    ) {
        self.maximumHeadLength = maximumHeadLength
        self.layer = layer
    }
}

/// A message whose frame has bytes that the frame limit does not count.
package protocol CarriedMessage: SendableMetatype {
    /// The largest number of uncounted bytes.
    static var maximumUncountedLength: Int { get }
    /// Returns the number of uncounted bytes in a frame's payload.
    static func uncountedLength(in payload: UnsafeRawBufferPointer) -> Int
}

/// A message that is carried by a framing of its own.
package protocol FramedMessage: CarriedMessage {
    /// Returns the framing of connections that receive one type and send the other.
    ///
    /// - Throws: `ConnectionError` `invalidConfiguration`, if no framing carries both.
    static func framing(
        receiving: any DelimitedMessage.Type,
        sending: any DelimitedMessage.Type
    ) throws(ConnectionError) -> MessageFraming
}

extension WebSocketMessage: CarriedMessage {
    /// One byte for the kind of message.
    package static var maximumUncountedLength: Int { 1 }
    package static func uncountedLength(in payload: UnsafeRawBufferPointer) -> Int { min(payload.count, 1) }
}
