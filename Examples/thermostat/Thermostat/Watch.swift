internal import ArgumentParser
internal import Glibc
internal import Lifeline
internal import LifelineOlderFramings
internal import Logging

/// Reads the temperature again and again, over one connection after another.
struct Watch: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Watches a thermostat, and tells it a target.",
        discussion: """
            Standard output gets the temperatures. Standard error gets the device's pushes, and what becomes of the \
            connection. The program may be started before the device, and waits for it.

            Exit codes: 0 as many temperatures as asked for were read, 1 the device refuses the target, 64 wrong usage.
            """
    )

    @Option(help: ArgumentHelp("Where the device listens.", valueName: "url"))
    var to = "tcp://127.0.0.1:7000"

    @Option(help: ArgumentHelp("The temperature to heat up to.", valueName: "degrees"))
    var target = 21.0

    @Option(help: ArgumentHelp("End after so many temperatures. Without it, never.", valueName: "number"))
    var count: Int?

    @Option(help: ArgumentHelp("How long to wait after each temperature.", valueName: "seconds"))
    var interval = 1.0

    func validate() throws {
        guard -300...300 ~= target else { throw ValidationError("--target must be -300 to 300 degrees.") }
        guard 0...1e6 ~= interval else { throw ValidationError("--interval must be 0 to 1000000 seconds.") }
    }

    func run() async throws {
        var configuration = ClientConfiguration()
        // A device that is silent for 3 s is gone: it is asked after 1 s, and twice.
        configuration.connection.heartbeat.interval = .seconds(1)
        configuration.connection.heartbeat.timeout = .seconds(1)
        configuration.connection.heartbeat.allowedMisses = 2
        // It comes back sooner or later, and waits for nobody else.
        configuration.backoff.initialDelay = .milliseconds(100)
        configuration.backoff.cap = .seconds(2)
        configuration.backoff.maximumAttempts = nil
        try await withFixedHeaderClient(to: Endpoint(to), configuration: configuration, logger: silentLogger) {
            client in
            try await withThrowingDiscardingTaskGroup { group in
                group.addTask { for await event in client.events { writeError("\(event)\n") } }
                group.addTask { for try await push in client.pushes { try report(push) } }
                try await readTemperatures(client)
                // Ends the events and the pushes.
                await client.close()
            }
        }
    }

    private func readTemperatures(_ client: FixedHeaderClient) async throws {
        var readCount = 0
        while readCount < count ?? .max {
            do {
                // Waits for a connection, if there is none.
                let answer = try await client.request(url: Manual.temperature, timeout: .seconds(10))
                // The device says so when it was switched off meanwhile.
                if answer.status == Manual.Status.noTarget { try await setTarget(client) }
                try printNow("\(temperature(in: answer))\n")
            } catch let error as RequestError where [.connectionLost, .timedOut].contains(error.code) {
                // Asked again: a temperature may be read twice. Ask only once for what must not happen twice.
                writeError("\(error.code): asking again\n")
                continue
            }
            readCount += 1
            try await Task.sleep(for: .seconds(interval))
        }
    }

    private func setTarget(_ client: FixedHeaderClient) async throws {
        let wanted = Temperature(hundredths: Int32(target * 100))
        let answer = try await client.request(url: Manual.setTarget, content: wanted.content, timeout: .seconds(10))
        guard answer.status == Manual.Status.ok else {
            throw DeviceFailure(description: "The device refuses the target \(wanted): status \(answer.status).")
        }
    }

    private func report(_ push: FixedHeaderResponse) throws {
        guard push.url == Manual.targetReached else { return writeError("unknown push \(push.url)\n") }
        try writeError("target reached: \(temperature(in: push))\n")
    }

    private func temperature(in response: FixedHeaderResponse) throws -> Temperature {
        guard let temperature = Temperature(response.content) else {
            throw DeviceFailure(description: "The device sent \(response.content.count) bytes for a temperature.")
        }
        return temperature
    }
}

/// The device does something else than its manual says.
private struct DeviceFailure: Error, CustomStringConvertible {
    let description: String
}

/// Says nothing: the steps of the connection are printed.
private let silentLogger = Logger(label: "Thermostat") { _ in SwiftLogNoOpLogHandler() }

/// Prints a text at once, also into a file or a pipe.
private func printNow(_ text: String) {
    print(text, terminator: "")
    fflush(nil)
}

private func writeError(_ text: String) {
    _ = write(STDERR_FILENO, text, text.utf8.count)
}
