internal import BenchmarkReport
internal import Foundation

// Benchmarks/run calls this program: once to measure time, once to measure memory with a counting allocator, and once
// to report both.

let usage = """
    usage: message-benchmarks time [--quick] >FILE
           message-benchmarks memory >FILE
           message-benchmarks report FILE... [--json FILE] [--svg FILE]
           message-benchmarks repeat CASE WORKLOAD CONTENDER COUNT

    Use Benchmarks/run, which builds everything and calls the first three in their order. The last one is for profilers:
    it does one thing, as in `valgrind --tool=callgrind message-benchmarks repeat parse mix lifeline 100`.
    """

do {
    try run(Array(CommandLine.arguments.dropFirst()))
} catch is UsageError {
    FileHandle.standardError.write(Data("\(usage)\n".utf8))
    exit(64)
} catch {
    FileHandle.standardError.write(Data("message-benchmarks: \(error)\n".utf8))
    exit(1)
}

struct UsageError: Error {}

func run(_ arguments: [String]) throws {
    switch arguments.first {
    case "time" where arguments.count == 1: try print(measureTime(.thorough))
    case "time" where arguments.dropFirst() == ["--quick"]: try print(measureTime(.quick))
    case "memory" where arguments.count == 1: try print(measureMemory())
    case "report" where arguments.count > 1: try report(Array(arguments.dropFirst()))
    case "repeat" where arguments.count == 5: try repeatPass(arguments[1], arguments[2], arguments[3], arguments[4])
    default: throw UsageError()
    }
}

func repeatPass(_ measured: String, _ workload: String, _ contender: String, _ count: String) throws {
    guard
        let workload = try Workload.all().first(where: { $0.name == workload }),
        let contender = try Contender.all(on: workload).first(where: { $0.name == contender }),
        let pass = Case(rawValue: measured).flatMap({ contender.passes[$0] }),
        let count = Int(count)
    else { throw UsageError() }
    for _ in 0..<count { _ = try pass() }
}

func print(_ results: Results) throws {
    FileHandle.standardOutput.write(try results.encoded())
}

func report(_ arguments: [String]) throws {
    var results = Results()
    var remaining = arguments[...]
    var outputs: [(path: String, make: (Results) throws -> Data)] = []
    func popPath() throws -> String {
        guard let path = remaining.popFirst() else { throw UsageError() }
        return path
    }
    while let argument = remaining.popFirst() {
        switch argument {
        case "--json":
            outputs.append((try popPath(), { try $0.encoded() }))
        case "--svg":
            outputs.append((try popPath(), { Data(chart(of: $0).svg.utf8) }))
        default:
            let file = try Data(contentsOf: URL(fileURLWithPath: argument))
            results.rows += try JSONDecoder().decode(Results.self, from: file).rows
        }
    }
    let sizes = try Workload.all().map { "\($0.name) \($0.averageSize)" }.joined(separator: ", ")
    print("Bytes of an encoded message: \(sizes)\n\n\(results.table(of: Contender.names))")
    for output in outputs { try output.make(results).write(to: URL(fileURLWithPath: output.path)) }
}

func chart(of results: Results) -> Chart {
    Chart(
        results,
        title: "Cost of messages",
        contenders: Contender.names,
        footnote: "1 is lifeline's own time or memory, 5 is five times that: shorter is better."
    )
}
