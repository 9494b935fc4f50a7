internal import Lifeline
internal import LifelineMessages

/// A message of a framing, which carries an encoded message.
protocol CarriedContent: DelimitedMessage {
    /// Calls `body` with the encoded message.
    func withContent<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result
}

extension RawMessage: CarriedContent {
    func withContent<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result { withUnsafeBytes(body) }
}

/// The framing of encoded messages on a connection.
struct Carrier<Received: CarriedContent, Sent: DelimitedMessage>: Sendable {
    /// Puts an encoded message into one of the framing.
    let wrap: @Sendable (RawMessage) -> Sent
    /// The framing's own heartbeat.
    var heartbeat: HeartbeatMessages<Received, Sent>?
}

extension Carrier<RawMessage, RawMessage> {
    /// Each message after its length as a varint.
    static let delimited = Carrier { $0 }
}
