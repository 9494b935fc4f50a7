#if Store
internal import ArgumentParser
internal import Glibc
internal import Lifeline
internal import LifelineStore
internal import TelemetryProtos

/// Sends the lines of a file to a collector. It may be killed at any time, and goes on where it was.
@main struct TelemetryGateway: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "TelemetryGateway",
        abstract: "Sends measurements to a collector, each of them once.",
        discussion: """
            Each line of the file is a measurement: the seconds since 1970, the sensor's name, and the value. Others may \
            append lines meanwhile. A measurement is in the outbox, on the disk, before it is sent, and stays there until \
            the collector has it in its database.

            Without --follow the program ends when the collector has the whole file.

            Examples:
              TelemetryGateway --name cellar cellar.txt
              TelemetryGateway --name cellar --to tls://collector.example.org:7000 --follow cellar.txt
            """
    )

    @Argument(help: "The file of measurements.")
    var file: String

    @Option(help: "How the collector knows this gateway. Each gateway has another name, and one file.")
    var name: String

    @Option(help: ArgumentHelp("Where the collector listens.", valueName: "url"))
    var to = "tcp://127.0.0.1:7000"

    @Option(help: ArgumentHelp("The outbox. Without it, NAME.outbox.sqlite.", valueName: "file"))
    var outbox: String?

    @Flag(help: "Wait for more lines at the end of the file.")
    var follow = false

    func validate() throws {
        guard Example_Telemetry_V1_Measurement.isName(name) else {
            throw ValidationError("--name must be 1 to 64 letters, digits, points, dashes and underscores.")
        }
    }

    func run() async throws {
        let collector = try Endpoint(to)
        let outbox = try await Outbox(path: outbox ?? "\(name).outbox.sqlite", for: collector)
        var lines = try await LineFile(path: file, from: outbox.place())
        var configuration = SessionClientConfiguration()
        configuration.store = outbox.store
        // The collector may be away for days. Meanwhile, measurements are kept.
        configuration.client.backoff.maximumAttempts = nil
        configuration.client.backoff.initialDelay = .milliseconds(100)
        configuration.client.backoff.cap = .seconds(5)
        configuration.closeTimeout = .seconds(365 * 86_400)
        try await withSessionClient(to: collector, configuration: configuration) { session in
            let collector = Example_Telemetry_V1_CollectorClient(session)
            try await send(&lines, to: collector, noting: outbox)
            while follow {
                try await Task.sleep(for: .milliseconds(200))
                try await send(&lines, to: collector, noting: outbox)
            }
        }
        // The session has ended in order: nothing is left in the outbox.
        print("The collector has all \(lines.place.line) lines.")
    }

    /// Sends the lines that are there.
    private func send(
        _ lines: inout LineFile,
        to collector: Example_Telemetry_V1_CollectorClient,
        noting outbox: Outbox
    ) async throws {
        while let line = try lines.next() {
            if let measurement = measurement(in: line, number: lines.place.line) {
                // Returns when the measurement is on the disk.
                try await collector.report(measurement, delivery: .durable)
            } else {
                writeError("\(file):\(lines.place.line): no measurement\n")
            }
            // Not after each line, because each note waits for the disk. After a kill, the lines behind the last note are
            // sent again; the collector knows them by their numbers.
            if lines.place.line % 100 == 0 { try await outbox.note(lines.place) }
        }
        try await outbox.note(lines.place)
    }

    private func measurement(in line: String, number: Int) -> Example_Telemetry_V1_Measurement? {
        let words = line.split(separator: " ")
        guard words.count == 3, let time = Int64(words[0]), let value = Double(words[2]), value.isFinite,
            Example_Telemetry_V1_Measurement.isName(String(words[1]))
        else { return nil }
        return .with {
            ($0.gateway, $0.line) = (name, UInt64(number))
            ($0.time, $0.sensor, $0.value) = (time, String(words[1]), value)
        }
    }
}

private func writeError(_ text: String) {
    _ = write(STDERR_FILENO, text, text.utf8.count)
}
#else
@main enum TelemetryGateway {
    static func main() { print("It was built without the trait Store. Build it with --traits Store.") }
}
#endif
