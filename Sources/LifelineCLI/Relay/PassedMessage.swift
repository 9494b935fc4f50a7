internal import FoundationEssentials
internal import LifelineMessages

/// The direction of a message that a relay passes on.
enum TrafficDirection: String, Codable {
    case toServer
    case toClient

    /// The direction in the form for people.
    var arrow: String { self == .toServer ? "→" : "←" }
}

/// A message that passed a relay. Its JSON is a line of a record.
struct PassedMessage: Codable {
    /// The first bytes of each line of a record, because keys are sorted.
    static let beginning = #"{"connection":"#
    /// A thousand years. Longer times are rejected: they could overflow when they are printed.
    private static let maximumTime = 3e10
    /// JSON is exact up to this number, and later connections can still be numbered.
    private static let maximumConnection = 1 << 53

    /// The time in seconds since the start of the relay.
    let time: Double
    let connection: Int
    let direction: TrafficDirection
    /// The encoded message.
    let frame: Data

    /// Reads a line of a record; nil for other lines.
    init?(line: ArraySlice<UInt8>) {
        guard let passed = try? JSONDecoder().decode(PassedMessage.self, from: Data(line)),
            (1...Self.maximumConnection).contains(passed.connection), (0...Self.maximumTime).contains(passed.time)
        else { return nil }
        self = passed
    }

    init(time: Double, connection: Int, direction: TrafficDirection, frame: Data) {
        (self.time, self.connection, self.direction, self.frame) = (time, connection, direction, frame)
    }

    var message: RawMessage { RawMessage(bytes: [UInt8](frame)) }
}
