internal import LifelineScenarios

var failures = 0
let arguments = CommandLine.arguments.dropFirst()
if arguments.first == "--scenario", let seed = arguments.dropFirst().first.flatMap({ UInt64($0) }) {
    let result = Scenario(seed: seed, isTracing: true).run()
    for line in result.trace { print(line) }
    print(result.failure ?? "ok", result.eventCount, result.simulatedTime)
} else {
    let count = UInt64(arguments.first ?? "") ?? 1000
    var events = 0
    let started = ContinuousClock.now
    for seed in 0..<count {
        let result = Scenario(seed: seed, isTracing: false).run()
        events += result.eventCount
        if let failure = result.failure {
            print("scenario \(seed) failed: \(failure)")
            failures += 1
            if failures > 20 { break }
        }
    }
    print(count, events, ContinuousClock.now - started)
}
