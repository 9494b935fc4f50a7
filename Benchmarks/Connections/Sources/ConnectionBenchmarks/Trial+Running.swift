internal import BenchmarkReport

extension Trial {
    /// The size of a burst that a connection has to hold: 60 KB.
    private static let burst = 60_000

    /// Runs the trial once.
    func run(_ peers: Peers, _ scale: Scale) throws -> [Sample] {
        switch kind {
        case .steady(let command):
            try runSteady(command, connections: 1, on: peers.pair(for: self), scale).all(workload)
        case .manyConnections(let command, let count):
            try runSteady(command, connections: count, on: peers.freshPair(for: self), scale).serverCosts(workload)
        case .paced(let perSecond, let count):
            try runPaced(perSecond: perSecond, count: count, on: peers.freshPair(for: self), scale)
        case .memory(let count): try measureMemory(count: count, on: peers.freshPair(for: self))
        case .accept(let count): try measureAccepting(count: count, on: peers.freshPair(for: self))
        case .manyMessages(let part, let parts):
            try compareParts(of: part, parts, on: peers.freshPair(for: self))
        }
    }

    private func runSteady(
        _ command: String,
        connections: Int,
        on pair: Peers.Pair,
        _ scale: Scale
    ) throws -> Run {
        _ = try pair.perform("open \(pair.port) \(connections)")
        _ = try pair.perform("\(command) \(scale.warmUp) 0")
        let run = try Run(of: "\(command) \(scale.measured) 0", on: pair)
        _ = try pair.perform("close")
        return run
    }

    private func runPaced(perSecond: Int, count: Int, on pair: Peers.Pair, _ scale: Scale) throws -> [Sample] {
        _ = try pair.perform("open \(pair.port) \(count)")
        _ = try pair.perform("paced 32 \(perSecond) \(scale.warmUp)")
        return try Run(of: "paced 32 \(perSecond) \(scale.paced)", on: pair).serverCosts(workload)
    }

    private func measureMemory(count: Int, on pair: Peers.Pair) throws -> [Sample] {
        // The first connection has one-time costs. It is closed, and only the others are counted.
        _ = try pair.perform("open \(pair.port) 1")
        _ = try pair.perform("each \(Self.burst)")
        _ = try pair.perform("close")
        let before = (client: try pair.client.memory, server: try pair.server.memory)
        func samples(_ workload: String) throws -> [Sample] {
            let client = Double(try pair.client.memory) - Double(before.client)
            let server = Double(try pair.server.memory) - Double(before.server)
            let ofClient = Sample(workload: workload, metric: .clientMemory, value: client / Double(count))
            let ofServer = Sample(workload: workload, metric: .serverMemory, value: server / Double(count))
            // If the other end is C, only the contender's side is reported.
            if self.client == self.server { return [ofClient, ofServer] }
            return self.client == ContenderName.c ? [ofServer] : [ofClient]
        }
        _ = try pair.perform("open \(pair.port) \(count)")
        _ = try pair.perform("each 32")
        let idle = try samples(WorkloadName.idle)
        _ = try pair.perform("each \(Self.burst)")
        return idle + (try samples(WorkloadName.afterBurst))
    }

    private func measureAccepting(count: Int, on pair: Peers.Pair) throws -> [Sample] {
        _ = try pair.perform("open \(pair.port) 10")
        _ = try pair.perform("each 32")
        _ = try pair.perform("close")
        let run = try Run(on: pair) {
            _ = try pair.perform("open \(pair.port) \(count)")
            return try pair.perform("each 32")
        }
        return [Sample(workload: workload, metric: .serverCPUPerConnection, value: run.serverCPU)]
    }

    private func compareParts(of part: Int, _ parts: Int, on pair: Peers.Pair) throws -> [Sample] {
        _ = try pair.perform("open \(pair.port) 1")
        var runs: [Run] = []
        for _ in 0..<parts { runs.append(try Run(of: "echo 32 64 0 \(part)", on: pair)) }
        // The very first messages also find cold caches.
        return runs[1].costs("second \(part)") + runs[parts - 1].costs("last \(part)")
    }
}

/// The result of one command, and its cost for the two processes.
private struct Run {
    let messages: Double
    let nanoseconds: Double
    let median: Double
    let percentile99: Double
    /// Nanoseconds a message.
    let clientCPU: Double
    let serverCPU: Double

    init(of command: String, on pair: Peers.Pair) throws {
        try self.init(on: pair) { try pair.perform(command) }
    }

    init(on pair: Peers.Pair, _ perform: () throws -> [Double]) throws {
        let before = (client: try pair.client.cpuTime, server: try pair.server.cpuTime)
        let numbers = try perform()
        guard numbers[0] > 0 else { throw PeerFailure(description: "\(pair.client.name): it sent nothing.") }
        let after = (client: try pair.client.cpuTime, server: try pair.server.cpuTime)
        (messages, nanoseconds, median, percentile99) = (numbers[0], numbers[1], numbers[2], numbers[3])
        clientCPU = Double(after.client - before.client) / messages
        serverCPU = Double(after.server - before.server) / messages
    }

    func costs(_ workload: String) -> [Sample] {
        [Sample(workload: workload, metric: .clientCPU, value: clientCPU)] + serverCosts(workload)
    }

    func serverCosts(_ workload: String) -> [Sample] {
        [Sample(workload: workload, metric: .serverCPU, value: serverCPU)]
    }

    func all(_ workload: String) -> [Sample] {
        let rate = Sample(workload: workload, metric: .rate, value: messages / nanoseconds * 1e9)
        guard median > 0 else { return costs(workload) + [rate] }
        return costs(workload) + [
            Sample(workload: workload, metric: .median, value: median / 1000),
            Sample(workload: workload, metric: .percentile99, value: percentile99 / 1000),
        ]
    }
}
