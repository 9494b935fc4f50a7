internal import BenchmarkReport
internal import CEpollPeer
internal import Foundation

let usage = """
    Usage: connection-benchmarks --netty CLASSPATH [--json FILE] [--svg DIR] [--quick] [--only CASE]...

    Use Benchmarks/run, which builds everything.
    """

do {
    try run(try Options(Array(CommandLine.arguments.dropFirst())))
} catch let error as UsageError {
    tell("\(error.reason)\n\(usage)")
    exit(64)
} catch {
    tell("connection-benchmarks: \(error)")
    exit(1)
}

struct UsageError: Error {
    let reason: String
}

struct Options {
    var netty = ""
    var json: String?
    var svg: String?
    var scale = Scale.thorough
    var only: [String] = []

    init(_ arguments: [String]) throws {
        var remaining = arguments[...]
        func value(of option: String) throws -> String {
            guard let value = remaining.popFirst() else { throw UsageError(reason: "\(option) needs a value.") }
            return value
        }
        while let argument = remaining.popFirst() {
            switch argument {
            case "--netty": netty = try value(of: argument)
            case "--json": json = try value(of: argument)
            case "--svg": svg = try value(of: argument)
            case "--quick": scale = .quick
            case "--only": only.append(try value(of: argument))
            default: throw UsageError(reason: "There is no option \(argument).")
            }
        }
    }
}

/// Prints a message apart from the results, such as the progress of the run.
func tell(_ text: String) {
    FileHandle.standardError.write(Data("\(text)\n".utf8))
}

func run(_ options: Options) throws {
    // A dead peer is noticed when it accepts no command.
    signal(SIGPIPE, SIG_IGN)
    let groups = Trial.groups(options.scale)
    let trials = groups.flatMap(\.trials)
    for trial in trials where !ContenderName.all.contains(trial.contender) {
        throw Incomplete(description: "\(trial.contender) is missing in ContenderName.all, and would not be shown.")
    }
    let cases = trials.map(\.case)
    for name in options.only where !cases.contains(name) {
        let known: [String] = cases.reduce(into: []) { if $0.last != $1 { $0.append($1) } }
        throw UsageError(reason: "There is no case \(name), but \(known.joined(separator: ", ")).")
    }
    let chosen = trials.filter { options.only.isEmpty || options.only.contains($0.case) }
    let peers = Peers(
        peerProgram: URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
            .appendingPathComponent("connection-peer"),
        nettyClasspath: options.netty,
        cores: availableCores()
    )
    let measurements = try measure(chosen, peers, options.scale)
    try report(measurements, groups, options)
    let missing = measurements.goals.filter { $0.verdict == nil }
    if options.only.isEmpty, !missing.isEmpty {
        let names = missing.map(\.name).joined(separator: "; ")
        throw Incomplete(description: "Goals for which nothing was measured: \(names)")
    }
}

struct Incomplete: Error, CustomStringConvertible {
    let description: String
}

/// A processor for clients and one for servers; nil if processes cannot be pinned.
func availableCores() -> (client: Int, server: Int)? {
    guard process_pin(0), process_unpin() else {
        tell("Processes cannot be pinned to processors here: numbers change more from run to run.")
        return nil
    }
    if ProcessInfo.processInfo.activeProcessorCount < 2 { tell("Client and server share the only processor here.") }
    return (client: 0, server: 1)
}

func report(_ measurements: Measurements, _ groups: [(name: String, trials: [Trial])], _ options: Options) throws {
    let results = measurements.results()
    print(results.table(of: ContenderName.all))
    print("\nGoals, with one processor for each side\n\(measurements.goals.table)")
    if let file = options.json { try results.encoded().write(to: URL(fileURLWithPath: file)) }
    guard let folder = options.svg.map({ URL(fileURLWithPath: $0) }) else { return }
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    for group in groups {
        let results = measurements.results(of: Set(group.trials.map(\.case)))
        guard !results.rows.isEmpty else { continue }
        let chart = Chart(
            results,
            title: group.name,
            contenders: ContenderName.all,
            footnote: "1 is Lifeline's own cost, 5 is five times that, or a fifth of the rate: shorter is better."
        )
        let name = group.name.lowercased().replacing(" ", with: "-")
        try Data(chart.svg.utf8).write(to: folder.appendingPathComponent("\(name).svg"))
    }
}
