internal import ArgumentParser
internal import FoundationEssentials
internal import Glibc
internal import Lifeline
internal import LifelineCore
internal import LifelineReachability
internal import Logging

struct MonitorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "monitor",
        abstract: "Prints what the network allows, now and after every change.",
        discussion: """
            The first line is the network as it is; a line follows for each change, a tenth of a second after it has \
            settled. "satisfied" means that some interface is up, has carrier, an address that is valid beyond its link \
            and a route; "unsatisfied" that other machines cannot be reached. Runs until --count lines, --timeout or an \
            interrupt.

            With --reach, each line also tells whether that endpoint can be reached and why: routed (there is a route \
            over an interface that has carrier), local, noRoute, noCarrier, interfaceDown, nameNotFound. With --probe it \
            is connected to, too: accepted, refused, timedOut.

            Examples:
              lifeline monitor
              lifeline monitor --count 1                                  # the network as it is
              lifeline monitor --reach tcp://example.org:443 --probe
              lifeline monitor --json | jq --unbuffered .status

            Exit codes: 0 done, 64 wrong usage, 69 --timeout came before --count lines, 74 output failed.
            """
    )

    @Option(help: "Stop after this many lines.")
    var count: Int?

    @Option(help: "Stop after this many seconds.")
    var timeout: Double?

    @Flag(help: "Print a JSON object a line.")
    var json = false

    @Option(help: ArgumentHelp("Tell whether this endpoint can be reached.", valueName: "url"))
    var reach: String?

    @Flag(help: "Connect to the endpoint of --reach, and close the connection at once.")
    var probe = false

    func validate() throws {
        if let count, count < 1 { throw ValidationError("--count must be at least 1.") }
        if let timeout, !(timeout > 0 && timeout <= 1e9) { throw ValidationError("--timeout must be above 0.") }
        if probe && reach == nil { throw ValidationError("--probe needs --reach, which says what to connect to.") }
        _ = try endpoint
    }

    private var endpoint: Endpoint? {
        get throws { try reach.map(parseEndpoint) }
    }

    func run() async throws {
        try await exitingOnFailure {
            let isComplete = try await within(timeout.map { .seconds($0) }) { try await printPaths() } != nil
            guard let count, !isComplete else { return }
            throw CommandFailure(
                status: .unavailable,
                message: "The network changed too seldom: --count \(count) was not reached before --timeout."
            )
        }
    }

    /// Prints until there are enough lines or the task is cancelled.
    private func printPaths() async throws {
        let monitor = NetworkMonitor(logger: Logger(label: "lifeline", factory: StandardErrorLogHandler.init))
        let endpoint = try endpoint
        var printed = 0
        for await path in monitor.paths {
            let time = PathLine.Time.now
            var reachability: (Endpoint, Reachability)?
            if let endpoint { reachability = (endpoint, await monitor.reachability(of: endpoint, probing: probe)) }
            let line = PathLine(path: path, reachability: reachability, time: time)
            let text = json ? try line.json : line.text
            try await OutputFile.standardOutput.write(Array("\(text)\n".utf8))
            printed += 1
            if printed == count { break }
        }
    }
}

/// A network path in the forms that the command prints.
struct PathLine {
    /// The time at which the path was known.
    struct Time {
        var calendar: timespec
        var uptime: timespec

        static var now: Time {
            var time = Time(calendar: timespec(), uptime: timespec())
            clock_gettime(CLOCK_REALTIME, &time.calendar)
            clock_gettime(CLOCK_BOOTTIME, &time.uptime)
            return time
        }
    }

    let path: NetworkPath
    let reachability: (endpoint: Endpoint, result: Reachability)?
    let time: Time

    /// For people: `14:03:12.123 satisfied, IPv4, default route: eth0 (ethernet) 192.0.2.2`.
    var text: String {
        var line = "\(time.calendar.clockTime) \(path)"
        if let reachability { line += "; \(reachability.endpoint) \(reachability.result)" }
        return line
    }

    /// For programs: a `NetworkReport`.
    var json: String {
        get throws {
            String(decoding: try jsonLine(NetworkReport(self)), as: UTF8.self)
        }
    }
}

/// The output of `--json`.
private struct NetworkReport: Encodable {
    struct Interface: Encodable {
        let name: String
        let index: Int
        let kind: String
        let up: Bool
        let carrier: Bool
        let ipv4: Bool
        let ipv6: Bool
        let defaultRoute: Bool
        let addresses: [String]

        init(_ interface: NetworkInterface) {
            name = interface.name
            index = interface.index
            kind = interface.kind.rawValue
            up = interface.isUp
            carrier = interface.hasCarrier
            ipv4 = interface.usesIPv4
            ipv6 = interface.usesIPv6
            defaultRoute = interface.hasDefaultRoute
            addresses = interface.addresses.map(\.description)
        }
    }

    struct Reach: Encodable {
        let endpoint: String
        let reachable: Bool
        let reason: String
        let address: String?
        let interface: String?
        let detail: String?

        init(_ endpoint: Endpoint, _ result: Reachability) {
            self.endpoint = "\(endpoint)"
            reachable = result.isReachable
            reason = "\(result.reason)"
            address = result.address?.description
            interface = result.interface
            detail = result.detail
        }
    }

    /// The time in seconds, on a clock that also runs while the machine sleeps.
    let uptime: Decimal
    let status: String
    let known: Bool
    let ipv4: Bool
    let ipv6: Bool
    let defaultRoute: Bool
    let interfaces: [Interface]
    let reach: Reach?

    init(_ line: PathLine) {
        let (path, uptime) = (line.path, line.time.uptime)
        self.uptime = Decimal(uptime.tv_sec) + Decimal(uptime.tv_nsec) / 1_000_000_000
        status = path.status.rawValue
        known = path.isKnown
        ipv4 = path.usesIPv4
        ipv6 = path.usesIPv6
        defaultRoute = path.hasDefaultRoute
        interfaces = path.interfaces.map(Interface.init)
        reach = line.reachability.map { Reach($0.endpoint, $0.result) }
    }
}
