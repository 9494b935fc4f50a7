/// A quantity that is measured for connections.
public enum Metric: String, CaseIterable, Sendable {
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

/// A number of a trial's result.
public struct Sample: Sendable {
    public let workload: String
    public let metric: Metric
    public let value: Double

    public init(workload: String, metric: Metric, value: Double) {
        self.workload = workload
        self.metric = metric
        self.value = value
    }
}
