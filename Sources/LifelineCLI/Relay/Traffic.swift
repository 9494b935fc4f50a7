internal import Glibc
internal import Lifeline
internal import LifelineMessages

/// Where a message goes that a relay passes on.
enum TrafficDirection: String, Codable {
    case toServer
    case toClient

    /// As people see it.
    var arrow: String { self == .toServer ? "→" : "←" }
}

/// A message that passed a relay.
struct PassedMessage {
    /// In seconds since the relay has begun.
    let time: Double
    let connection: Int
    let direction: TrafficDirection
    let message: RawMessage
}

/// Shows and records the messages that pass a relay.
///
/// While the output takes nothing, no connection's next batch is passed on.
actor Traffic {
    private let text: TrafficText
    private let output: OutputFile
    private let record: TrafficRecord?
    private let start = ContinuousClock.now
    private var connectionCount: Int
    /// Ends the command.
    nonisolated let end = CommandEnd()

    init(text: TrafficText, output: OutputFile, record: TrafficRecord?) {
        self.text = text
        self.output = output
        self.record = record
        connectionCount = record?.connectionCount ?? 0
    }

    /// The number of a connection that begins.
    func nextConnection() -> Int {
        connectionCount += 1
        return connectionCount
    }

    /// Records and shows messages that are about to be passed on.
    ///
    /// - Throws: `CommandFailure` when they cannot be written, which ends the command; `CancellationError`.
    func pass(_ batch: [some CarriedContent], _ direction: TrafficDirection, of connection: Int) async throws {
        // To the microsecond, which is more than two ends of a connection agree on.
        let time = ((ContinuousClock.now - start) / .microseconds(1)).rounded() / 1_000_000
        let clock = timespec.now
        do {
            var lines: [UInt8] = []
            for message in batch {
                let message = RawMessage(bytes: message.withContent { [UInt8]($0) })
                let passed = PassedMessage(time: time, connection: connection, direction: direction, message: message)
                try await record?.append(passed)
                try text.append(passed, at: clock, to: &lines)
                if lines.count >= PrintedMessages.batchLength {
                    try await output.write(lines)
                    lines = []
                }
            }
            try await output.write(lines)
        } catch let failure as CommandFailure {
            end.finish(throwing: failure)
            throw failure
        }
    }
}
