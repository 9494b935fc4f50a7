package import LifelineCore
package import LifelineMessages
package import LifelineTransport

/// A framing that a peer speaks instead of delimited messages.
package struct MessageFraming: Sendable {
    /// The most bytes that the head of a frame of the peer's takes on the wire.
    let maximumHeadLength: Int
    /// Makes the layer that speaks it.
    let layer: @Sendable (_ maximumFrameLength: Int) -> any ChannelLayer

    package init(
        maximumHeadLength: Int,
        layer: @escaping @Sendable (_ maximumFrameLength: Int) -> any ChannelLayer
    ) {
        self.maximumHeadLength = maximumHeadLength
        self.layer = layer
    }
}

/// A message that has bytes in its frame which the frame limit does not count.
package protocol CarriedMessage: SendableMetatype {
    /// The most of them.
    static var maximumUncountedLength: Int { get }
    /// How many a frame's payload has.
    static func uncountedLength(in payload: UnsafeRawBufferPointer) -> Int
}

/// A message that is carried by a framing of its own.
package protocol FramedMessage: CarriedMessage {
    /// Returns the framing of connections that receive the one type and send the other.
    ///
    /// - Throws: `ConnectionError` `invalidConfiguration`, if no framing has both.
    static func framing(
        receiving: any DelimitedMessage.Type,
        sending: any DelimitedMessage.Type
    ) throws(ConnectionError) -> MessageFraming
}

extension WebSocketMessage: CarriedMessage {
    /// Its kind.
    package static var maximumUncountedLength: Int { 1 }
    package static func uncountedLength(in payload: UnsafeRawBufferPointer) -> Int { min(payload.count, 1) }
}
