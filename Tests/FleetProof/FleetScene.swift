import FaultSupport
import FleetProofSupport
import Foundation

/// Redis, three servers, their proxies, and the clients, in a network of their own.
///
/// Redis and two of the servers run at the network's server node. The third server runs at its client node, as do the
/// proxies and the clients. So the router can cut the path between that server and Redis, and no other path.
actor FleetScene {
    /// The number of clients, and how they send.
    struct Load {
        var clientCount = 2_000
        var processCount = 2
        var interval = Duration.seconds(4)
        var openingRate: Int?
        var spoil: Spoil?
        /// The time before a fault. After 10 s a connection is stable, and its client reconnects at once.
        var timeBefore = Duration.seconds(12)
        /// The time between the restarts of two servers.
        var timeBetween = Duration.seconds(13)
        /// The time after a fault.
        var timeAfter = Duration.seconds(3)
    }

    private struct Server {
        let letter: String
        let node: TestNetwork.Node
        let port: UInt16
        var runCount = 0
        var program: LineProgram?
    }

    static let redisPort: UInt16 = 6_379
    private static let firstProxyPort: UInt16 = 7_000

    let network: TestNetwork
    let load: Load
    private let folder: URL
    private let address: String
    private var redis: SystemProgram?
    private var servers: [Server]
    private var proxies: [SystemProgram] = []
    private var clients: [LineProgram] = []
    private var records: [RecordReader] = []
    private var reportCount = 0

    /// The time without messages after which missing ones are lost: servers compare their groups every 5 s.
    private static let silence = Duration.seconds(12)
    /// The longest time that a step may take on a busy machine.
    private static let patience = Duration.seconds(120)

    init(_ load: Load, in network: TestNetwork, folder: URL) {
        (self.load, self.network, self.folder) = (load, network, folder)
        address = network.serverAddress(.ipv4)
        servers = [
            Server(letter: "a", node: .server, port: 7_100),
            Server(letter: "b", node: .server, port: 7_101),
            Server(letter: "c", node: .client, port: 7_102),
        ]
    }

    var serverCount: Int { servers.count }

    // MARK: Beginning and end

    /// Starts everything. Returns when all clients are in their groups.
    func start() async throws {
        try await startRedis()
        for index in servers.indices { try await startServer(index) }
        let count = load.clientCount / load.processCount
        for process in 0..<load.processCount {
            let port = FleetScene.firstProxyPort + UInt16(process)
            try await startProxy(port, clientCount: count)
            clients.append(
                try LineProgram(
                    product: "FleetProof",
                    [
                        "clients", "--to", "tcp://127.0.0.1:\(port)", "--first", "\(process * count)",
                        "--count", "\(count)", "--every", "\(Int(load.interval.milliseconds))",
                    ],
                    at: .client,
                    of: network
                )
            )
        }
        try await tellClients("ready")
        while try await memberCount() < count * load.processCount { try await Task.sleep(for: .milliseconds(100)) }
        try await tellClients("begin")
        for server in servers { try await tell(server.program, "begin") }
    }

    /// Stops all senders, waits until no more messages arrive, and returns the result.
    func settle() async throws -> (tally: FleetTally, reports: [ClientReport]) {
        try await tellClients("stop")
        for server in servers { try await tell(server.program, "stop") }
        var (count, changed) = (0, ContinuousClock.now)
        while true {
            // Reports are read before records: no server has processed a message that its client has not sent.
            let reports = try await reports()
            let tally = FleetTally(reports, try summary(), automaticGroup: FleetGroups.automatic)
            if tally.deliveredCount > count {
                (count, changed) = (tally.deliveredCount, .now)
            } else if tally.isClean || .now - changed > FleetScene.silence {
                // Messages that were reported lost, or that arrive twice, would have arrived by now.
                return (tally, reports)
            }
            try await Task.sleep(for: .milliseconds(500))
        }
    }

    /// Ends everything.
    func end() async throws {
        for program in clients {
            let status = try await program.finish(within: FleetScene.patience)
            if status != 0 { throw FaultFailure("A process with clients ended with status \(status).") }
        }
        for index in servers.indices { try await drainServer(index) }
        for proxy in proxies { try await proxy.kill() }
        try await redis?.kill()
    }

    // MARK: Clients

    func tellClients(_ command: String, within time: Duration = patience) async throws {
        for program in clients { try program.tell(command) }
        for program in clients { try await done(program, command, within: time) }
    }

    private func reports() async throws -> [ClientReport] {
        reportCount += 1
        var reports: [ClientReport] = []
        for (index, program) in clients.enumerated() {
            let file = folder.appending(path: "clients-\(index)-\(reportCount).json")
            try await tell(program, "report \(file.path)")
            reports += try JSONDecoder().decode([ClientReport].self, from: Data(contentsOf: file))
            try FileManager.default.removeItem(at: file)
        }
        return reports
    }

    @discardableResult
    private func tell(_ program: LineProgram?, _ command: String) async throws -> FaultEvent {
        guard let program else { throw FaultFailure("A command is for a server that does not run: \(command)") }
        try program.tell(command)
        return try await done(program, command, within: FleetScene.patience)
    }

    @discardableResult
    private func done(_ program: LineProgram, _ command: String, within time: Duration) async throws -> FaultEvent {
        try await program.next("the end of the command \(command)", within: time) { $0.event == .done }
    }

    // MARK: Servers

    private func startServer(_ index: Int, sending: Bool = false) async throws {
        servers[index].runCount += 1
        let server = servers[index]
        let name = "\(server.letter)\(server.runCount)"
        let record = folder.appending(path: "server-\(name)").path
        let host = server.node == .server ? address : "127.0.0.1"
        var arguments = [
            "server", "--name", name, "--on", "tcp://\(host):\(server.port)", "--record", record,
            "--redis", "redis://\(address):\(FleetScene.redisPort)",
            "--every", "\(Int(load.interval.milliseconds))", "--spread", "2000",
        ]
        if let rate = load.openingRate { arguments += ["--opening-rate", "\(rate)"] }
        if let spoil = load.spoil { arguments += ["--plant", spoil.rawValue] }
        if sending { arguments.append("--begin") }
        let program = try LineProgram(product: "FleetProof", arguments, at: server.node, of: network)
        servers[index].program = program
        _ = try await program.next("where it listens", within: FleetScene.patience) { $0.event == .listening }
        records.append(RecordReader(path: record))
    }

    func restartServer(_ index: Int) async throws { try await startServer(index, sending: true) }

    /// Ends a server as an orchestrator does. Returns how long it took.
    @discardableResult
    func drainServer(_ index: Int) async throws -> Duration {
        let began = ContinuousClock.now
        let program = try take(index)
        try program.signal(SIGTERM)
        let status = try await program.waitForEnd(within: FleetScene.patience)
        if status != 0 { throw FaultFailure("A drained server ended with status \(status).") }
        return .now - began
    }

    /// Kills servers, all at once.
    func killServers(_ indices: Range<Int>) async throws {
        let programs = try indices.map(take)
        for program in programs { try program.signal(SIGKILL) }
        for program in programs { try await program.waitForEnd() }
    }

    private func take(_ index: Int) throws -> LineProgram {
        guard let program = servers[index].program else { throw FaultFailure("A server that should end does not run.") }
        servers[index].program = nil
        return program
    }

    private func memberCount() async throws -> Int {
        var count = 0
        for server in servers { count += try await tell(server.program, "members").count ?? 0 }
        return count
    }

    /// Returns the summary of the records of all servers.
    func summary() throws -> ServerSummary {
        for record in records { try record.read() }
        return records.reduce(into: ServerSummary()) { summary, record in
            for entry in record.entries { summary.add(entry) }
        }
    }

    // MARK: Redis and proxies

    func startRedis() async throws {
        redis = try SystemProgram(
            "redis-server",
            [
                "--port", "\(FleetScene.redisPort)", "--bind", address, "--protected-mode", "no",
                "--dir", folder.path, "--save", "", "--appendonly", "no",
            ],
            at: .server,
            of: network,
            output: folder.appending(path: "redis.log").path
        )
        let end = ContinuousClock.now + FleetScene.patience
        while true {
            do {
                return try await commandRedis(["ping"])
            } catch  where ContinuousClock.now < end {
                try await Task.sleep(for: .milliseconds(50))
            }
        }
    }

    func killRedis() async throws { try await redis?.kill() }

    func commandRedis(_ command: [String]) async throws {
        let place = ["-h", address, "-p", "\(FleetScene.redisPort)", "-e"]
        try await network.run("redis-cli", place + command, at: .server)
    }

    /// Starts a proxy for one process of clients. A proxy needs two descriptors for each client.
    private func startProxy(_ port: UInt16, clientCount: Int) async throws {
        let hosts = servers.map { server in
            let host = server.node == .server ? address : "127.0.0.1"
            return "    server \(server.letter) \(host):\(server.port) check inter 100ms fall 1 rise 1"
        }
        // Each connection goes to the server with the fewest, as HAProxy recommends for long ones.
        let lines = [
            "global", "    maxconn \(clientCount * 3 / 2 + 200)",
            "defaults", "    mode tcp", "    timeout connect 1s", "    timeout client 1h", "    timeout server 1h",
            "    timeout check 1s", "    retries 3", "    option redispatch 1",
            "frontend clients", "    bind 127.0.0.1:\(port)", "    default_backend servers",
            "backend servers", "    balance leastconn",
        ]
        let file = folder.appending(path: "haproxy-\(port).cfg")
        try Data(((lines + hosts).joined(separator: "\n") + "\n").utf8).write(to: file)
        proxies.append(
            try SystemProgram(
                "haproxy",
                ["-db", "-f", file.path],
                at: .client,
                of: network,
                output: folder.appending(path: "haproxy.log").path
            )
        )
        let end = ContinuousClock.now + FleetScene.patience
        while try await network.run("ss", ["-Hltn", "sport", "=", ":\(port)"], at: .client).output.isEmpty {
            guard ContinuousClock.now < end else { throw FaultFailure("HAProxy does not listen: see haproxy.log.") }
            try await Task.sleep(for: .milliseconds(50))
        }
    }
}

/// Reads a record while it grows.
private final class RecordReader {
    private let path: String
    private var offset: UInt64 = 0
    private(set) var entries: [ServerEntry] = []

    init(path: String) { self.path = path }

    func read() throws {
        let file = try FileHandle(forReadingFrom: URL(filePath: path))
        try file.seek(toOffset: offset)
        let bytes = try file.readToEnd() ?? Data()
        // The last line may be incomplete.
        guard let end = bytes.lastIndex(of: UInt8(ascii: "\n")) else { return }
        let lines = bytes[...end]
        offset += UInt64(lines.count)
        for line in String(decoding: lines, as: UTF8.self).split(separator: "\n") {
            guard let entry = ServerEntry(line: line) else { throw FaultFailure("\(path) has the line \(line).") }
            entries.append(entry)
        }
    }
}
