package import Lifeline
package import LifelineCore
package import LifelineMessages
internal import LifelineTransport

/// A framing for two types of messages.
enum OlderFraming {
    case fixedHeaderClient, fixedHeaderServer, headLine

    /// - Throws: `ConnectionError` `invalidConfiguration`, if no framing has both types in these directions.
    init(receiving: any DelimitedMessage.Type, sending: any DelimitedMessage.Type) throws(ConnectionError) {
        switch (receiving, sending) {
        case (is FixedHeaderResponse.Type, is FixedHeaderRequest.Type): self = .fixedHeaderClient
        case (is FixedHeaderRequest.Type, is FixedHeaderResponse.Type): self = .fixedHeaderServer
        case (is HeadLineMessage.Type, is HeadLineMessage.Type): self = .headLine
        default: throw .typesThatDoNotMatch(receiving: receiving, sending: sending)
        }
    }

    /// The framing for connections.
    ///
    /// - Parameter observer: is informed of written requests.
    func messageFraming(observer: (any RequestObserver)?) -> MessageFraming {
        switch self {
        case .fixedHeaderClient:
            .headed(observer) { FixedHeader.ClientFraming(maximumContentLength: $0) }
        case .fixedHeaderServer:
            .headed(observer) { FixedHeader.ServerFraming(maximumContentLength: $0) }
        case .headLine:
            .headed(observer) { HeadLineFraming(maximumContentLength: $0) }
        }
    }
}

extension MessageFraming {
    fileprivate static func headed<Framing: HeadedFraming>(
        _ observer: (any RequestObserver)?,
        _ framing: @escaping @Sendable (_ maximumContentLength: Int) -> Framing
    ) -> MessageFraming where Framing.InboundHead: CarriedHead, Framing.OutboundHead: CarriedHead {
        MessageFraming(maximumHeadLength: Framing.maximumHeadLength) { maximumFrameLength in
            let limit = min(maximumFrameLength, CarriedFrame.maximumContentLength)
            return HeadedFramingLayer(framing(limit), observer: observer)
        }
    }
}

/// A message of an older framing.
package protocol OlderFramingMessage: FramedMessage {
    /// The form of its head.
    associatedtype CarriedForm: CarriedHead
}

extension OlderFramingMessage {
    package static var maximumUncountedLength: Int { CarriedForm.maximumCarriedLength }

    package static func uncountedLength(in payload: UnsafeRawBufferPointer) -> Int {
        CarriedForm.carriedLength(in: payload)
    }

    package static func framing(
        receiving: any DelimitedMessage.Type,
        sending: any DelimitedMessage.Type
    ) throws(ConnectionError) -> MessageFraming {
        try OlderFraming(receiving: receiving, sending: sending).messageFraming(observer: nil)
    }
}

extension FixedHeaderRequest: OlderFramingMessage {
    package typealias CarriedForm = FixedHeader.Request
}

extension FixedHeaderResponse: OlderFramingMessage {
    package typealias CarriedForm = FixedHeader.Response
}

extension HeadLineMessage: OlderFramingMessage {
    package typealias CarriedForm = HeadLine
}

extension ConnectionError {
    fileprivate static func typesThatDoNotMatch(receiving: Any.Type, sending: Any.Type) -> ConnectionError {
        ConnectionError(
            code: .invalidConfiguration,
            message: "No framing receives \(receiving) and sends \(sending). "
                + "A client receives FixedHeaderResponse and sends FixedHeaderRequest, a server the other way round; "
                + "with head lines, both do both with HeadLineMessage."
        )
    }
}
