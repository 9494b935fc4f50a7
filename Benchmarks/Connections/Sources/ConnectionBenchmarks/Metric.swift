/// What is measured of a trial.
enum Metric: String, CaseIterable {
    case rate = "messages/s"
    case median = "µs, median"
    case percentile99 = "µs, 99th percentile"
    case clientCPU = "client CPU ns/message"
    case serverCPU = "server CPU ns/message"
    case serverCPUPerConnection = "server CPU ns/connection"
    case clientMemory = "client bytes/connection"
    case serverMemory = "server bytes/connection"

    var isRate: Bool { self == .rate }
}

/// A number that a trial came to.
struct Sample {
    let workload: String
    let metric: Metric
    let value: Double
}
