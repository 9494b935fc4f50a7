internal import FoundationEssentials
internal import Glibc
internal import Lifeline
internal import LifelineMessages

/// Shows and records the messages that pass a relay.
///
/// While the output blocks, no further batch of any connection is passed on.
actor Traffic {
    private let text: TrafficText
    private let output: OutputFile
    private let start = ContinuousClock.now
    private var record: TrafficRecord?
    private var connectionCount = 0
    /// Whether connections may begin; nil when that is not decided yet.
    private var beginning: Result<Void, any Error>?
    /// Connections that wait for `begin`.
    private var waiting: [CheckedContinuation<Void, any Error>] = []
    nonisolated let commandEnd = CommandEnd()

    init(text: TrafficText, output: OutputFile) {
        (self.text, self.output) = (text, output)
    }

    /// Lets connections begin, with numbers after those of the record.
    ///
    /// - Parameter record: the file to record messages in; nil for none.
    /// - Throws: `CommandFailure` when the record cannot be used.
    func begin(recordingIn path: String?) async throws {
        let result: Result<Void, any Error>
        do {
            record = if let path { try await TrafficRecord(appendingTo: path) } else { nil }
            connectionCount = record?.connectionCount ?? 0
            result = .success(())
        } catch {
            result = .failure(error)
        }
        beginning = result
        for connection in waiting { connection.resume(with: result) }
        waiting = []
        try result.get()
    }

    /// Returns the number of a new connection.
    ///
    /// - Throws: the reason why none may begin.
    func nextConnection() async throws -> Int {
        if let beginning {
            try beginning.get()
        } else {
            try await withCheckedThrowingContinuation { waiting.append($0) }
        }
        connectionCount += 1
        return connectionCount
    }

    /// Records and shows messages that are about to be passed on.
    ///
    /// - Throws: `CommandFailure` when they cannot be written, which ends the command; `CancellationError`.
    func show(_ batch: [some CarriedContent], _ direction: TrafficDirection, of connection: Int) async throws {
        // Rounded to microseconds, more precise than the clocks of two ends agree.
        let time = ((ContinuousClock.now - start) / .microseconds(1)).rounded() / 1_000_000
        let clock = timespec.now
        let messages = batch.map { message in
            PassedMessage(
                time: time,
                connection: connection,
                direction: direction,
                frame: message.withContent { Data($0) }
            )
        }
        do {
            try record?.append(messages)
            var lines: [UInt8] = []
            for message in messages {
                try text.append(message, at: clock, to: &lines)
                if lines.count >= PrintedMessages.batchLength {
                    try await output.write(lines)
                    lines = []
                }
            }
            try await output.write(lines)
        } catch let failure as CommandFailure {
            commandEnd.finish(throwing: failure)
            throw failure
        }
    }
}
