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

/// How encoded messages travel on a connection.
struct Carrier<Received: CarriedContent, Sent: DelimitedMessage>: Sendable {
    /// Puts an encoded message into one of the framing.
    let wrap: @Sendable (RawMessage) -> Sent
    /// The framing's own heartbeat.
    var heartbeat: HeartbeatMessages<Received, Sent>?
}

extension Carrier<RawMessage, RawMessage> {
    /// Each message behind its length, a varint.
    static let delimited = Carrier { $0 }
}
