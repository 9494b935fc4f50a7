internal import ArgumentParser
internal import Glibc
internal import Lifeline
internal import LifelineProtos
internal import LifelineWellKnownTypes
internal import SampleServices

struct CallWatch: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Prints the server's ticks: their numbers, and the time by its clock.",
        discussion: """
            The ticks are one stream: they go on over another connection where they were. When the session is lost, because the \
            server was restarted, the stream is over, and the command fails with 74.

            Examples:
              lifeline call watch                            (until it is interrupted)
              lifeline call watch --count 5 --interval 0.5
            """
    )

    @Option(help: "Stop after this many ticks.")
    var count: Int?

    @Option(help: ArgumentHelp("From one tick to the next.", valueName: "seconds"))
    var interval = 1.0

    @OptionGroup var timeout: TimeoutOption

    @OptionGroup var call: CallOptions

    func validate() throws {
        if let count, !(1...Int(UInt32.max) ~= count) { throw ValidationError("--count must be 1 to 4,294,967,295.") }
        _ = try parseSeconds(interval, of: "--interval")
    }

    func run() async throws {
        try await exitingOnFailure {
            let interval = try parseSeconds(interval, of: "--interval")
            let request = Sample_Room_V1_WatchRequest.with {
                ($0.count, $0.interval) = (UInt32(count ?? 0), Google_Protobuf_Duration(interval))
            }
            let timeout = try timeout.duration
            do {
                try await call.withRoom { room in
                    room.news.stop()
                    for try await tick in room.watch(request, timeout: timeout) {
                        try await writeToStandardOutput(Array("\(tick.number) \(tick.time.clockTime)\n".utf8))
                    }
                    try Task.checkCancellation()
                }
            } catch is Interrupted where count == nil {
                // Nothing else ends it.
            }
        }
    }
}

extension Google_Protobuf_Timestamp {
    fileprivate var clockTime: String { timespec(tv_sec: Int(seconds), tv_nsec: Int(nanos)).clockTime }
}
