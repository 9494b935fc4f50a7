internal import LifelineCore
internal import LifelineMessages
internal import LifelineTransport

/// An older framing that two types of messages are carried by.
enum OlderFraming {
    case fixedHeaderClient, fixedHeaderServer, headLine

    /// Nil: they are delimited messages.
    init?<Received: DelimitedMessage, Sent: DelimitedMessage>(receiving: Received.Type, sending: Sent.Type) {
        if Received.self == FixedHeaderResponse.self, Sent.self == FixedHeaderRequest.self {
            self = .fixedHeaderClient
        } else if Received.self == FixedHeaderRequest.self, Sent.self == FixedHeaderResponse.self {
            self = .fixedHeaderServer
        } else if Received.self == HeadLineMessage.self,
            Sent.self == HeadLineMessage.self || Sent.self == HeadLineRequest.self
        {
            self = .headLine
        } else {
            return nil
        }
    }

    /// The most bytes that the head of a frame of the peer's takes on the wire.
    var maximumHeadLength: Int {
        switch self {
        case .fixedHeaderClient: FixedHeader.ClientFraming.maximumHeadLength
        case .fixedHeaderServer: FixedHeader.ServerFraming.maximumHeadLength
        case .headLine: HeadLineFraming.maximumHeadLength
        }
    }

    /// The layer that speaks it.
    ///
    /// - Parameter observer: learns which requests are written.
    func layer(maximumFrameLength: Int, observer: (any RequestObserver)?) -> any ChannelLayer {
        let limit = min(maximumFrameLength, CarriedFrame.maximumContentLength)
        return switch self {
        case .fixedHeaderClient:
            HeadedFramingLayer(FixedHeader.ClientFraming(maximumContentLength: limit), observer: observer)
        case .fixedHeaderServer:
            HeadedFramingLayer(FixedHeader.ServerFraming(maximumContentLength: limit), observer: observer)
        case .headLine:
            HeadedFramingLayer(HeadLineFraming(maximumContentLength: limit), observer: observer)
        }
    }
}

/// A message that has bytes in its frame which the frame limit does not count.
protocol CarriedMessage {
    static var uncountedByteCount: Int { get }
}

extension FixedHeaderRequest: CarriedMessage {
    static var uncountedByteCount: Int { FixedHeader.Request.carriedOverhead }
}

extension FixedHeaderResponse: CarriedMessage {
    static var uncountedByteCount: Int { FixedHeader.Response.carriedOverhead }
}

extension HeadLineMessage: CarriedMessage {
    static var uncountedByteCount: Int { HeadLine.carriedOverhead }
}

extension HeadLineRequest: CarriedMessage {
    static var uncountedByteCount: Int { HeadLine.carriedOverhead }
}

extension WebSocketMessage: CarriedMessage {
    /// Its kind.
    static var uncountedByteCount: Int { 1 }
}
