internal import LifelineCore
internal import LifelineMessages
internal import LifelineTransport

/// An older framing that two types of messages are carried by.
enum OlderFraming {
    case fixedHeaderClient, fixedHeaderServer, headLine

    /// Nil: they are delimited messages.
    ///
    /// - Throws: `ConnectionError` `invalidConfiguration`, when a framing has one of the types, but not for this direction.
    init?<Received: DelimitedMessage, Sent: DelimitedMessage>(
        receiving: Received.Type,
        sending: Sent.Type
    ) throws(ConnectionError) {
        switch (Received.self as? any OlderFramingMessage.Type, Sent.self as? any OlderFramingMessage.Type) {
        case (nil, nil): return nil
        case (is FixedHeaderResponse.Type, is FixedHeaderRequest.Type): self = .fixedHeaderClient
        case (is FixedHeaderRequest.Type, is FixedHeaderResponse.Type): self = .fixedHeaderServer
        case (is HeadLineMessage.Type, is HeadLineMessage.Type), (is HeadLineMessage.Type, is HeadLineRequest.Type):
            self = .headLine
        default: throw .typesThatDoNotMatch(receiving: Received.self, sending: Sent.self)
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

/// A message of an older framing.
private protocol OlderFramingMessage {}

extension FixedHeaderRequest: OlderFramingMessage {}
extension FixedHeaderResponse: OlderFramingMessage {}
extension HeadLineMessage: OlderFramingMessage {}
extension HeadLineRequest: OlderFramingMessage {}

/// A message that has bytes in its frame which the frame limit does not count.
protocol CarriedMessage: SendableMetatype {
    /// The most of them.
    static var maximumUncountedLength: Int { get }
    /// How many a frame's payload has.
    static func uncountedLength(in payload: UnsafeRawBufferPointer) -> Int
}

/// The form of a head.
private protocol HeadCarryingMessage: CarriedMessage {
    associatedtype CarriedForm: CarriedHead
}

extension HeadCarryingMessage {
    static var maximumUncountedLength: Int { CarriedForm.maximumCarriedLength }
    static func uncountedLength(in payload: UnsafeRawBufferPointer) -> Int { CarriedForm.carriedLength(in: payload) }
}

extension FixedHeaderRequest: HeadCarryingMessage {
    fileprivate typealias CarriedForm = FixedHeader.Request
}

extension FixedHeaderResponse: HeadCarryingMessage {
    fileprivate typealias CarriedForm = FixedHeader.Response
}

extension HeadLineMessage: HeadCarryingMessage {
    fileprivate typealias CarriedForm = HeadLine
}

extension HeadLineRequest: HeadCarryingMessage {
    fileprivate typealias CarriedForm = HeadLine
}

extension WebSocketMessage: CarriedMessage {
    /// Its kind.
    static var maximumUncountedLength: Int { 1 }
    static func uncountedLength(in payload: UnsafeRawBufferPointer) -> Int { min(payload.count, 1) }
}

extension ConnectionError {
    fileprivate static func typesThatDoNotMatch(receiving: Any.Type, sending: Any.Type) -> ConnectionError {
        ConnectionError(
            code: .invalidConfiguration,
            message: "No framing has \(receiving) for what is received and \(sending) for what is sent. "
                + "A client receives FixedHeaderResponse and sends FixedHeaderRequest, a server the other way round; "
                + "with head lines, both do both with HeadLineMessage."
        )
    }
}
